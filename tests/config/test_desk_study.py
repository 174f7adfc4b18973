"""The run file of the desk study: its experiments are those of the paper's rows, but small."""

import csv
import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
import yaml
from checkout import ROOT
from studies import unpacked

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Experiment, Settings
from t5repro.estimate.run_files import load_run_files
from t5repro.plan.run_plan import RunPlan
from t5repro.report.published_scores import rows_named
from t5repro.report.scaling import OF_COMPUTE

SIZES = {  # of an experiment, in proportion to the run
    "pretrain.targets_length",
    "pretrain.unique_tokens",
    "model.num_encoder_layers",
    "model.num_decoder_layers",
}


def values_of(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def load(*names: str) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load_run_files([Path("configs") / name for name in names])


@pytest.fixture(scope="module")
def run() -> Settings:
    return load("desk_study.yaml", "desk_study_rows.yaml")


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def first_seeds(run: Settings) -> list[Experiment]:
    """Return the experiments, without their second and third seeds."""
    return [one for one in run.experiments if "_seed_" not in one.name]


def test_each_of_26_experiments_has_three_seeds_and_a_training_of_its_own(run: Settings) -> None:
    names = Counter(one.name.split("_seed_")[0] for one in run.experiments)
    assert set(names.values()) == {3}
    assert len(names) == 26
    # Without pre-training, weights are drawn from the seed: a node as well.
    assert len(set(RunPlan(run).nodes_of("pretrain").values())) == 3 * 26


def test_the_further_rows_begin_with_the_experiments_of_the_study(run: Settings) -> None:
    study = load("desk_study.yaml").experiments
    assert run.experiments[: len(study)] == study
    assert {one.name for one in study if "_seed_" not in one.name} == {"baseline", "no_pretraining"}


def test_the_tables_of_the_paper_have_the_rows_of_the_study(run: Settings) -> None:
    tables = Counter(
        published.table for one in first_seeds(run) if one.row for published in rows_named(one.row)
    )
    assert {number: tables[number] for number in (2, 4, 5, 6, 7, 9)} == {
        2: 4, 4: 3, 5: 3, 6: 3, 7: 4, 9: 3,
    }  # fmt: skip


def test_an_experiment_changes_what_that_of_the_papers_row_changes(run: Settings) -> None:
    paper = {
        entry["row"]: entry.get("change", {})
        for entry in values_of("configs/paper_rows.yaml")["experiments"]
        if "row" in entry and not entry["name"].startswith("again_")
    }
    for one in first_seeds(run):
        if one.row:
            changes = {
                key: value for key, value in one.change.items() if key not in SIZES | {"seed"}
            }
            expected = {key: value for key, value in paper[one.row].items() if key not in SIZES}
            assert changes == expected, one.name


def test_repeated_text_is_repeated_as_often_as_in_the_paper(run: Settings) -> None:
    for repeats in (64, 256, 1024):
        pretrain = settings_of_experiment(run, f"repeats_{repeats}").pretrain
        tokens = pretrain.steps * pretrain.batch_size * pretrain.inputs_length
        assert tokens / pretrain.unique_tokens == repeats


def test_half_of_the_layers_are_half_of_the_layers(run: Settings) -> None:
    half = settings_of_experiment(run, "half_layers").model
    assert (2 * half.num_encoder_layers, 2 * half.num_decoder_layers) == (
        run.model.num_encoder_layers,
        run.model.num_decoder_layers,
    )


def test_the_objectives_by_themselves_differ_from_the_study_in_steps_and_targets(
    run: Settings,
) -> None:
    alone, study = load("desk_objectives.yaml"), load("desk_study.yaml")
    for name in ("data", "corpus", "c4", "vocab", "tokens", "model", "tasks", "finetune"):
        assert getattr(alone, name) == getattr(study, name), name
    changed = {"steps", "targets_length", "learning_rate", "checkpoint_every_steps",
               "validation_every_steps"}  # fmt: skip
    assert alone.pretrain.model_dump(exclude=changed) == study.pretrain.model_dump(exclude=changed)
    assert 2 * alone.pretrain.steps == study.pretrain.steps
    rows = {one.name: one for one in run.experiments}
    for one in alone.experiments:
        changes = {key: value for key, value in rows[one.name].change.items() if key not in SIZES}
        assert {key: value for key, value in one.change.items() if key not in SIZES} == changes
        assert one.row == rows[one.name].row


def test_the_recipes_differ_from_the_study_in_steps_and_change_what_its_rows_change(
    run: Settings,
) -> None:
    recipes, study = load("desk_recipes.yaml"), load("desk_study.yaml")
    for name in ("data", "corpus", "c4", "vocab", "tokens", "model", "tasks", "finetune"):
        assert getattr(recipes, name) == getattr(study, name), name
    changed = {"steps", "learning_rate", "checkpoint_every_steps", "validation_every_steps"}
    assert recipes.pretrain.model_dump(exclude=changed) == study.pretrain.model_dump(
        exclude=changed
    )
    rows = {one.name: one for one in run.experiments}
    for one in first_seeds(recipes):
        changes, expected = one.change, rows[one.name].change
        if one.name == "adamw_cosine":  # its warm-up is a share of the steps
            changes, expected = (
                {key: change[key] for key in change if key != "pretrain.learning_rate"}
                for change in (changes, expected)
            )
        assert changes == expected, one.name


def test_the_computes_of_the_law_are_five_over_a_factor_of_30_and_change_nothing_else() -> None:
    scaling, study = load("desk_study.yaml", "desk_scaling.yaml"), load("desk_study.yaml")
    untrained, *trained = first_seeds(scaling)
    assert untrained.change["pretrain.steps"] == 0
    steps = [one.change["pretrain.steps"] for one in trained]
    assert (len(steps), max(steps) / min(steps)) == (5, 30)
    for one in trained:
        settings = settings_of_experiment(scaling, one.name)
        pretrain = settings.pretrain
        assert 50 * pretrain.learning_rate.warmup_steps == pretrain.steps
        # The loss after the last step is measured.
        assert pretrain.steps % pretrain.validation_every_steps == 0
        same = study.pretrain.model_dump(exclude=OF_COMPUTE)
        assert pretrain.model_dump(exclude=OF_COMPUTE) == same
        assert settings.finetune == study.finetune


PAGE = (ROOT / "docs/desk_study.md").read_text(encoding="utf-8")
TITLES = {"sst2": "SST-2", "stsb": "STS-B", "cola": "CoLA", "wmt_en_de": "English–German"}


def table_below(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of the page, without its head."""
    lines = PAGE.partition(f"\n## {heading}\n")[2].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 1 :])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


@pytest.mark.parametrize(
    ("heading", "study", "experiments"),
    [
        ("What has been run", "desk_study", ("baseline", "no_pretraining")),
        (
            "The objectives of table 4",
            "desk_objectives",
            ("prefix_language_modeling", "bert_style", "deshuffling"),
        ),
    ],
)
def test_the_page_has_the_scores_of_the_committed_report(
    heading: str, study: str, experiments: tuple[str, ...]
) -> None:
    scores = defaultdict(list)
    report = ROOT / "studies" / study / "scores.csv"
    for row in csv.DictReader(report.read_text(encoding="utf-8").splitlines()):
        if row["value"] and row["runs"] == "1":
            scores[row["task"], row["metric"], row["experiment"]].append(float(row["value"]))
    expected = {}
    for task, metric, _ in scores:
        cells = [scores[task, metric, experiment] for experiment in experiments]
        assert [len(cell) for cell in cells] == [3] * len(experiments)
        name = task.removeprefix("glue_")
        expected[TITLES.get(name, name.upper()), metric] = [mean_and_sd(cell) for cell in cells]
    rows = table_below(heading)
    assert {(row[0], row[1]): row[-len(experiments) :] for row in rows} == expected


def mean_and_sd(values: Sequence[float], decimals: int = 2) -> str:
    return f"{mean(values):.{decimals}f} ± {stdev(values):.{decimals}f}"


def test_the_page_has_the_losses_of_the_committed_recipes() -> None:
    histories = unpacked("desk_recipes") / "results/desk_recipes/pretrain"
    losses: dict[str, list[float]] = {}
    for name in ("baseline", "adamw_cosine", "per_layer_bias", "rotary", "swiglu"):
        for seed in ("", "_seed_1", "_seed_2"):
            text = (histories / f"{name}{seed}/history.csv").read_text(encoding="utf-8")
            last = list(csv.DictReader(text.splitlines()))[-1]
            assert last["step"] == "1000"
            losses.setdefault(name, []).append(float(last["validation_loss"]))
    expected = {}
    for name, values in losses.items():
        pairs = zip(values, losses["baseline"], strict=True)
        differences = [value - other for value, other in pairs]
        shown = f"{mean(differences):+.3f} ± {stdev(differences):.3f}".replace("-", "−")
        expected[name] = (mean_and_sd(values, 3), "" if name == "baseline" else shown)
    rows = table_below("Later recipes")
    assert {row[0].strip("`"): (row[1], row[2]) for row in rows} == expected
