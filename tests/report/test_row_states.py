"""The list of the paper's rows, and the figures that the paper states against the settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import yaml
from checkout import ROOT

from t5repro.cli.main import main
from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.tree import merge
from t5repro.model.sizes import parameter_count
from t5repro.published.tables import system_tables_content
from t5repro.report.published_scores import published_row, published_rows
from t5repro.report.row_states import (
    ARMS,
    EXACT,
    FINAL_MODELS,
    IMPOSSIBLE,
    row_states,
    row_states_text,
    system_row_states,
    system_state,
)
from t5repro.task_groups import RELEASED_GROUPS

FORMS = re.compile(r"(exact|stand-in: .+|cannot be had: .+)(; .+)?")
LENGTH = 512  # tokens of an input (section 3.1.2)
ROUNDED = 0.3  # the paper counts parameters as multiples of those of a stack of 12 layers


def run_of(name: str) -> dict[str, Settings]:
    """Return experiment -> its settings, of a run file in addition to that of the baseline."""
    values: dict[str, object] = {}
    for path in ("base.yaml", name):  # as Snakemake merges them
        merge(values, yaml.safe_load((ROOT / "configs" / path).read_text(encoding="utf-8")))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        run = load_settings(values)
        return {arm.name: settings_of_experiment(run, arm.name) for arm in run.experiments}


@pytest.fixture(scope="module")
def experiments() -> Mapping[str, Mapping[str, Settings]]:
    return {name: run_of(f"{name}.yaml") for name in ("paper_rows", "final_models")}


def arms_of(text: str, experiments: Mapping[str, Mapping[str, Settings]]) -> dict[str, Settings]:
    """Return the experiments that the list names for a row, the first one first."""
    run = experiments["final_models" if text.startswith(FINAL_MODELS) else "paper_rows"]
    arms: dict[str, Settings] = {}
    for name in text.removeprefix(FINAL_MODELS).split(", "):
        if name.endswith("…"):
            named = [arm for arm in run if arm.startswith(name[:-1])]
        elif between := re.fullmatch(r"(\w+_)(\d+) to \1(\d+)", name):
            named = [f"{between[1]}{n}" for n in range(int(between[2]), int(between[3]) + 1)]
        else:
            named = [name]
        assert named, name
        arms |= {arm: run[arm] for arm in named}
    return arms


def test_the_list_has_each_printed_row_once() -> None:
    printed = [(row.table, row.name) for row in published_rows()]
    assert [(table, row) for table, rows in ARMS.items() for row in rows] == printed
    assert all(FORMS.fullmatch(state.state) for state in row_states())


def test_each_row_that_can_be_had_names_its_experiments(
    experiments: Mapping[str, Mapping[str, Settings]],
) -> None:
    for state in row_states():
        assert bool(state.arm) != state.state.startswith("cannot be had")
        if state.arm:
            assert arms_of(state.arm, experiments)


def test_each_experiment_of_the_run_files_is_that_of_a_row_of_the_list(
    experiments: Mapping[str, Mapping[str, Settings]],
) -> None:
    listed = {
        name for state in row_states() if state.arm for name in arms_of(state.arm, experiments)
    }
    unlisted = {name for run in experiments.values() for name in run} - listed
    assert unlisted == {"finetuned_2", "finetuned_3", "finetuned_4"}  # members of an ensemble


def test_what_cannot_be_exact_is_the_rest_of_the_list() -> None:
    others = [
        (state.table, state.row) for state in row_states() if not state.state.startswith(EXACT)
    ]
    assert others == [
        (8, "Wikipedia (16GB)"),
        (8, "Wikipedia + TBC (20GB)"),
        (14, "Previous best"),
        (16, "each other row"),
    ]


def test_the_two_scores_of_prefix_language_modeling_are_those_of_the_remark() -> None:
    first = published_row(2, "Encoder-decoder, LM").values["glue.average"]
    second = published_row(4, "Prefix language modeling").values["glue.average"]
    (remark,) = {state.state for state in row_states() if "tables 2 and 4" in state.state}
    assert f"{first} and {second} for GLUE" in remark


@dataclass(frozen=True)
class Figures:
    """What the paper states of a row; the values are those of the baseline (section 3.1.2)."""

    parameters: float = 220e6
    steps: int = 2**19
    tokens_per_step: int = 2**16
    finetune_steps: int = 2**18
    finetune_tokens_per_step: int = 2**16


MULTI_TASK = Figures(steps=0, finetune_steps=786_432)  # all of it is multi-task training
PRETRAINED_MULTI_TASK = Figures(steps=0, finetune_steps=2**19)  # then 2^18 steps for each group
TRILLION = {"steps": 1_000_000, "tokens_per_step": 2**20}  # 2^11 sequences a batch (section 3.7)
FIGURES: Mapping[tuple[int, str], Figures] = {
    (1, "No pre-training"): Figures(steps=0),
    (16, "No pre-training"): Figures(steps=0),
    # Table 2 states P and 2P.
    **{
        (2, f"{name}, {objective}"): Figures(parameters=110e6)
        for name in ("Enc-dec shared", "Enc-dec 6 layers", "Language model", "Prefix LM")
        for objective in ("denoising", "LM")
    },
    **{(11, row): MULTI_TASK for row in ARMS[11] if not row.startswith("Baseline")},
    (12, "Multi-task training"): MULTI_TASK,
    (12, "Multi-task pre-training + fine-tuning"): PRETRAINED_MULTI_TASK,
    (12, "Leave-one-out multi-task training"): PRETRAINED_MULTI_TASK,
    (12, "Supervised multi-task pre-training"): PRETRAINED_MULTI_TASK,
    (13, "1x size, 4x steps"): Figures(steps=2**21, finetune_steps=2**20),
    (13, "1x size, 4x batch"): Figures(tokens_per_step=2**18, finetune_tokens_per_step=2**18),
    (13, "2x size, 2x steps"): Figures(parameters=440e6, steps=2**20, finetune_steps=2**19),
    (13, "4x size, 1x steps"): Figures(parameters=880e6),
    # The pre-training of section 3.7 is training on all tasks and C4.
    **{
        (table, f"T5-{name}"): Figures(
            parameters, steps=0, finetune_steps=1_000_000, finetune_tokens_per_step=2**20
        )
        for table, name, parameters in (
            (14, "Small", 60e6),
            (14, "Base", 220e6),
            (14, "Large", 770e6),
            (14, "3B", 2.8e9),
            (14, "11B", 11e9),
            (15, "Base", 220e6),
        )
    },
    (15, "Baseline-1T"): Figures(**TRILLION),
}
ROWS = [(table, row) for table, rows in ARMS.items() for row in rows if ARMS[table][row]]


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_a_row_has_the_parameters_steps_and_tokens_that_the_paper_states(
    experiments: Mapping[str, Mapping[str, Settings]], table: int, row: str
) -> None:
    arms = arms_of(ARMS[table][row], experiments)
    settings = next(iter(arms.values()))
    expected = FIGURES.get((table, row), Figures())
    parameters = parameter_count(settings.model, settings.vocab.embedding_rows)
    assert parameters == pytest.approx(expected.parameters, rel=ROUNDED)
    pretrain, finetune = settings.pretrain, settings.finetune
    assert pretrain.steps == expected.steps
    assert finetune.steps == expected.finetune_steps
    if pretrain.steps:
        tokens = pretrain.batch_size * pretrain.inputs_length
        assert tokens == expected.tokens_per_step
        assert pretrain.steps * tokens == expected.steps * expected.tokens_per_step
    assert finetune.batch_size * LENGTH == expected.finetune_tokens_per_step
    later = [arm for arm in arms.values() if arm.finetune.start_from]
    assert {arm.finetune.steps for arm in later} <= {2**18}
    tasks = {task for arm in arms.values() for task in arm.tasks.names}
    assert [name for name, group in RELEASED_GROUPS.items() if not tasks & set(group)] == []
    assert len(RELEASED_GROUPS) == 7  # GLUE, SuperGLUE, SQuAD, CNN/Daily Mail and three of WMT


def test_the_baseline_reads_2_to_the_35_tokens_and_a_smaller_corpus_repeatedly(
    experiments: Mapping[str, Mapping[str, Settings]],
) -> None:
    for row, arm in ARMS[9].items():
        pretrain = experiments["paper_rows"][arm].pretrain
        total = pretrain.steps * pretrain.batch_size * pretrain.inputs_length
        assert total == 2**35
        if stated := re.match(r"2\^(\d+) \(([\d,]+)", row):
            assert pretrain.unique_tokens == 2 ** int(stated[1])
            assert total == pretrain.unique_tokens * int(stated[2].replace(",", ""))


def test_a_number_in_the_name_of_a_row_is_that_of_its_setting(
    experiments: Mapping[str, Mapping[str, Settings]],
) -> None:
    run = experiments["paper_rows"]
    for table, pattern, value_of in (
        (6, r"(\d+)%", lambda arm: 100 * arm.pretrain.noise_density),
        (7, r"(\d+)", lambda arm: arm.pretrain.mean_noise_span_length),
        (10, r"Adapter d=(\d+)", lambda arm: arm.finetune.adapter_width),
        (11, r".*K=2\^(\d+)", lambda arm: (arm.finetune.mixture_limit).bit_length() - 1),
        (11, r".*T=(\d+)", lambda arm: arm.finetune.mixture_temperature),
    ):
        stated = {
            row: int(match[1]) for row in ARMS[table] if (match := re.fullmatch(pattern, row))
        }
        assert stated
        for row, number in stated.items():
            assert value_of(run[ARMS[table][row]]) == pytest.approx(number), row


def test_each_row_of_the_systems_has_a_state_and_names_its_experiment() -> None:
    tables = system_tables_content()["tables"]
    printed = [(table["id"], row["name"]) for table in tables for row in table["rows"]]
    states = list(system_row_states())
    assert [(state.table, state.row) for state in states] == printed
    assert (len(tables), len(printed)) == (30, 156)
    assert all(FORMS.fullmatch(state.state) for state in states)
    assert all(bool(state.arm) != state.state.startswith(IMPOSSIBLE) for state in states)
    named = {state.arm for state in states if state.arm}
    assert named == set(system_tables_content()["configurations"])
    assert sum(bool(state.arm) for state in states) == 104


def test_a_table_without_a_task_of_ours_cannot_be_had() -> None:
    table = {"columns": ["leaderboard.average", "average.average"]}
    row, title = {"configuration": "bert_base"}, "Score of the leaderboard"
    assert system_state(table, row) == f"{IMPOSSIBLE}columns not implemented: {title}"
    mixed = {"columns": ["leaderboard.average", "squad.f1"]}
    assert system_state(mixed, row).endswith(f"; columns not implemented: {title}")


@pytest.mark.parametrize(
    ("configuration", "untrained"),
    [
        ("albert_base_none", "Next sentence, Sentence order"),
        ("albert_base_nsp", "Sentence order"),
        ("albert_base_e128", "Next sentence"),
    ],
)
def test_a_row_says_which_tasks_on_pairs_it_is_not_trained_on(
    configuration: str, untrained: str
) -> None:
    (table,) = (table for table in system_tables_content()["tables"] if table["id"] == "ALBERT 5")
    state = system_state(table, {"configuration": configuration})
    assert state.endswith(f"; columns of a task on pairs that it is not trained on: {untrained}")
    assert "not implemented" not in state


def test_the_pages_and_the_command_show_the_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "rows"]) == 0
    lists = [row_states_text(states) for states in (row_states(), system_row_states())]
    assert capsys.readouterr().out == "{}\n\n{}\n".format(*lists)
    for name, text in zip(("paper_rows", "system_rows"), lists, strict=True):
        page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        assert text in page, "paste the output of `t5repro paper rows` into the page"
