"""The run file of the desk study: its experiments are those of the paper's rows, but small."""

from collections import Counter
from typing import Any

import pytest
import yaml
from checkout import ROOT
from run_files import load_committed

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Experiment, Settings
from t5repro.plan.run_plan import RunPlan
from t5repro.report.published_scores import rows_named
from t5repro.report.scaling import OF_COMPUTE

SIZES = {  # of an experiment, in proportion to the run
    "pretrain.targets_length",
    "pretrain.unique_tokens",
    "model.num_encoder_layers",
    "model.num_decoder_layers",
}

# None changes a weight.
INTERVALS = {"checkpoint_every_steps", "log_every_steps", "validation_every_steps"}


BEFORE_TRAINING = ("data", "corpus", "c4", "vocab", "tokens", "model")


def assert_equal(first: Settings, second: Settings, *sections: str) -> None:
    for name in sections:
        assert getattr(first, name) == getattr(second, name), name


def values_of(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run() -> Settings:
    return load_committed("desk_study_rows")


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def pretraining_of(study: Settings, name: str) -> dict[str, Any]:
    """Return what decides the weights of an experiment's pre-training."""
    pretrain = settings_of_experiment(study, name).pretrain
    return pretrain.model_dump(exclude=INTERVALS)


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
    study = load_committed("desk_study").experiments
    assert run.experiments[: len(study)] == study
    assert {one.name for one in study if "_seed_" not in one.name} == {"baseline", "no_pretraining"}


def test_the_tables_of_the_paper_have_the_rows_of_the_study(run: Settings) -> None:
    tables = Counter(
        published.table for one in first_seeds(run) if one.row for published in rows_named(one.row)
    )
    assert {number: tables[number] for number in (2, 4, 5, 6, 7, 9)} == {
        2: 4, 4: 3, 5: 3, 6: 3, 7: 4, 9: 3,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["desk_study_rows", "desk_language_modeling"])
def test_an_experiment_changes_what_that_of_the_papers_row_changes(name: str) -> None:
    paper = {
        entry["row"]: entry.get("change", {})
        for entry in values_of("configs/paper_rows.yaml")["experiments"]
        if "row" in entry and not entry["name"].startswith("again_")
    }
    for one in first_seeds(load_committed(name)):
        if one.row:
            changes = {
                key: value for key, value in one.change.items() if key not in SIZES | {"seed"}
            }
            expected = {key: value for key, value in paper[one.row].items() if key not in SIZES}
            assert changes == expected, one.name


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("desk_study_rows", (64, 256, 1024)), ("desk_repeats", (64, 256, 1024, 4096))],
)
def test_repeated_text_is_repeated_as_often_as_in_the_paper(
    name: str, numbers: tuple[int, ...]
) -> None:
    study = load_committed(name)
    for repeats in numbers:
        pretrain = settings_of_experiment(study, f"repeats_{repeats}").pretrain
        tokens = pretrain.steps * pretrain.batch_size * pretrain.inputs_length
        assert tokens / pretrain.unique_tokens == repeats


def test_the_repeats_of_table_9_start_from_the_baseline_of_the_architectures() -> None:
    repeats = load_committed("desk_repeats")
    tables = {rows_named(one.row)[0].table for one in first_seeds(repeats)[1:]}
    assert tables == {9}
    architectures = load_committed("desk_architectures")
    assert_equal(repeats, architectures, *BEFORE_TRAINING, "tasks", "finetune", "evaluate")
    assert pretraining_of(repeats, "baseline") == pretraining_of(architectures, "baseline")


def test_the_rows_of_table_2_with_language_modeling_are_all_and_differ_in_nothing_else() -> None:
    modeling, architectures = map(load_committed, ("desk_language_modeling", "desk_architectures"))
    for study, objective in ((architectures, "denoising"), (modeling, "LM")):
        rows = {one.row: rows_named(one.row)[0].table for one in first_seeds(study)}
        assert list(rows.values()) == [2] * 5
        assert {row.rpartition(", ")[2] for row in rows} == {objective}
    sections = (*BEFORE_TRAINING, "pretrain", "tasks", "finetune", "evaluate")
    assert_equal(modeling, architectures, *sections)


def test_half_of_the_layers_are_half_of_the_layers(run: Settings) -> None:
    half = settings_of_experiment(run, "half_layers").model
    assert (2 * half.num_encoder_layers, 2 * half.num_decoder_layers) == (
        run.model.num_encoder_layers,
        run.model.num_decoder_layers,
    )


def test_the_objectives_by_themselves_differ_from_the_study_in_steps_and_targets(
    run: Settings,
) -> None:
    alone, study = load_committed("desk_objectives"), load_committed("desk_study")
    assert_equal(alone, study, *BEFORE_TRAINING, "tasks", "finetune")
    changed = {"steps", "targets_length", "learning_rate", "checkpoint_every_steps",
               "validation_every_steps"}  # fmt: skip
    assert alone.pretrain.model_dump(exclude=changed) == study.pretrain.model_dump(exclude=changed)
    assert 2 * alone.pretrain.steps == study.pretrain.steps
    rows = {one.name: one for one in run.experiments}
    for one in alone.experiments:
        changes = {key: value for key, value in rows[one.name].change.items() if key not in SIZES}
        assert {key: value for key, value in one.change.items() if key not in SIZES} == changes
        assert one.row == rows[one.name].row


def test_the_recipes_are_those_of_the_rows_with_the_baseline_of_the_architectures(
    run: Settings,
) -> None:
    recipes, architectures = load_committed("desk_recipes"), load_committed("desk_architectures")
    assert_equal(recipes, architectures, *BEFORE_TRAINING, "tasks", "finetune", "evaluate")
    assert pretraining_of(recipes, "baseline") == pretraining_of(architectures, "baseline")
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
    scaling, study = load_committed("desk_scaling"), load_committed("desk_study")
    assert_equal(scaling, study, *BEFORE_TRAINING, "evaluate")
    assert set(scaling.tasks.names) < set(study.tasks.names)
    untrained, *trained = first_seeds(scaling)
    assert untrained.change["pretrain.steps"] == 0
    pretrainings = [settings_of_experiment(scaling, one.name).pretrain for one in trained]
    steps = [pretrain.steps for pretrain in pretrainings]
    assert (len(steps), max(steps) / min(steps)) == (5, 30)
    same = study.pretrain.model_dump(exclude=OF_COMPUTE["pretrain"])
    for one, pretrain in zip(trained, pretrainings, strict=True):
        assert pretrain.model_dump(exclude=OF_COMPUTE["pretrain"]) == same
        assert pretrain.learning_rate.warmup_steps == pretrain.steps // 50
        # The loss after the last step is measured.
        assert pretrain.steps % pretrain.validation_every_steps == 0
        assert settings_of_experiment(scaling, one.name).finetune == scaling.finetune


def test_the_architectures_of_table_2_are_those_of_the_rows_in_the_study_of_compute(
    run: Settings,
) -> None:
    architectures, scaling = load_committed("desk_architectures"), load_committed("desk_scaling")
    changes = {one.row: one.change for one in first_seeds(run)}
    baseline, *others = first_seeds(architectures)
    assert baseline.change == {"seed": 0}
    for one in others:
        assert one.change == changes[one.row], one.name
    assert pretraining_of(architectures, "baseline") == pretraining_of(scaling, "steps_1000")
    assert_equal(architectures, scaling, *BEFORE_TRAINING, "tasks", "finetune")


def test_the_methods_of_table_10_start_from_a_pretraining_of_the_study_of_compute() -> None:
    methods, scaling = load_committed("desk_adapters"), load_committed("desk_scaling")
    paper = {
        entry["row"]: entry.get("change", {})
        for entry in values_of("configs/paper_rows.yaml")["experiments"]
        if "row" in entry
    }
    for one in first_seeds(methods)[1:]:
        change = {key: value for key, value in one.change.items() if key != "seed"}
        assert change == paper[one.row], one.name
    assert pretraining_of(methods, "all_parameters") == pretraining_of(scaling, "steps_2000")
    group = scaling.finetune.groups["wmt_en_de"]
    assert methods.finetune.steps == group["finetune.steps"]
    assert methods.finetune.learning_rate.factor == group["finetune.learning_rate.factor"]


RATES = ("mixture", "mixture_limit", "mixture_temperature", "mixture_examples", "corpus_examples")


def test_the_mixtures_of_table_11_have_the_rates_of_the_papers_rows() -> None:
    mixing, paper = load_committed("desk_mixing"), load_committed("paper_rows")
    rows = {one.name: one.row for one in paper.experiments}
    of_paper = [one for one in first_seeds(mixing) if one.name != "baseline"]
    assert {one.name: one.row for one in of_paper}.items() <= rows.items()
    tables = Counter(entry.table for one in of_paper for entry in rows_named(one.row))
    assert tables == {11: 10}
    for one in of_paper:
        ours = settings_of_experiment(mixing, one.name).finetune
        theirs = settings_of_experiment(paper, one.name).finetune
        assert [getattr(ours, name) for name in RATES] == [
            getattr(theirs, name) for name in RATES
        ], one.name
        # As in the paper, English-German has more examples than any K.
        assert ours.mixture_weights["wmt_en_de"] > ours.mixture_limit


def test_multi_task_training_is_as_long_as_pretraining_and_the_longest_fine_tuning() -> None:
    mixing, architectures = load_committed("desk_mixing"), load_committed("desk_architectures")
    assert_equal(mixing, architectures, *BEFORE_TRAINING, "pretrain", "evaluate")
    pretrain, groups = mixing.pretrain, mixing.finetune.groups
    both = settings_of_experiment(mixing, "multi_k19").finetune
    assert groups["wmt_en_de"] == architectures.finetune.groups["wmt_en_de"]
    assert both.steps == pretrain.steps + groups["wmt_en_de"]["finetune.steps"]
    rate, of_pretraining = both.learning_rate, pretrain.learning_rate
    assert (rate.schedule, rate.factor) == (of_pretraining.schedule, of_pretraining.factor)
    assert rate.warmup_steps == 0.02 * both.steps
    for name in ("batch_size", "inputs_length", "dropout_rate", "optimizer"):
        assert getattr(both, name) == getattr(pretrain, name), name
