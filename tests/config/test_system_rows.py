"""The rows of the systems before T5 as settings: each experiment stands in its rows only."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_run_file, load_settings
from t5repro.config.schema import Settings
from t5repro.config.system_rows import Placement, compared, placement, settings_of_configuration
from t5repro.config.tree import merge
from t5repro.errors import SettingsError
from t5repro.model.sizes import parameter_count
from t5repro.published.tables import row_names, system_rows, system_tables_content
from t5repro.train.schedules import bert_linear

CONFIGURATIONS = system_tables_content()["configurations"]
PIECES = 30_000  # about as many as the vocabularies of the papers
HEADS = 0.09  # share of the parameters in heads, which papers count or do not
ENCODER = {"tasks.names": ["glue_cola"], "tasks.segments": True}


@pytest.fixture(scope="module")
def experiments() -> Mapping[str, Settings]:
    values: dict[str, object] = {}
    for name in ("base.yaml", "system_rows.yaml"):  # as Snakemake merges them
        merge(values, yaml.safe_load((ROOT / "configs" / name).read_text(encoding="utf-8")))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        run = load_settings(values)
        assert not any(experiment.row for experiment in run.experiments)
        return {name.name: settings_of_experiment(run, name.name) for name in run.experiments}


def earlier(name: str, experiments: Mapping[str, Settings]) -> list[Settings]:
    """Return the settings of the earlier phases of an experiment."""
    source = experiments[name].pretrain.from_experiment
    return [*earlier(source, experiments), experiments[source]] if source else []


def settings_with(*use: str, row: str = "", **change: Any) -> Settings:
    """Return the settings of an experiment of an encoder."""
    experiment = {"name": "mine", "row": row, "change": {"use": list(use), **change}}
    return settings_of_experiment(load_settings({**ENCODER, "experiments": [experiment]}), "mine")


def published(name: str) -> Settings:
    """Return the settings of a configuration as a user writes them."""
    configuration = CONFIGURATIONS[name]
    return settings_with(*configuration["use"], **configuration["change"])


def test_the_run_file_has_each_configuration_of_a_row_once(
    experiments: Mapping[str, Settings],
) -> None:
    first_phases = {settings.pretrain.from_experiment for settings in experiments.values()}
    assert [name for name in experiments if name not in first_phases] == list(CONFIGURATIONS)
    rows = [row for table in system_tables_content()["tables"] for row in table["rows"]]
    assert {row["configuration"] for row in rows if "cannot" not in row} == set(CONFIGURATIONS)
    assert all(("cannot" in row) != ("configuration" in row) for row in rows)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_an_experiment_stands_in_its_rows_and_in_no_other(
    name: str, experiments: Mapping[str, Settings]
) -> None:
    before = earlier(name, experiments)
    assert placement(experiments[name], "", before) == Placement(name)
    values = compared(experiments[name], before)
    equal = [other for other in CONFIGURATIONS if settings_of_configuration(other) == values]
    assert equal in ([name], [])  # [] if its steps follow from operations
    other = next(row for row, key in system_rows().items() if key != name)
    # Whatever it says of itself
    assert placement(experiments[name], other, before) == Placement(name)


@pytest.mark.parametrize("size", ["base", "large"])
def test_bert_has_two_phases_on_one_line_of_the_rate(
    size: str, experiments: Mapping[str, Settings]
) -> None:
    name = f"bert_{size}"
    phases = [*earlier(name, experiments), experiments[name]]
    assert [phase.pretrain.inputs_length for phase in phases] == [128, 512]
    assert [phase.pretrain.steps for phase in phases] == [900_000, 100_000]
    one = settings_with("systems/bert", **{"pretrain.steps": 1_000_000}).pretrain.learning_rate
    for step in (0, 5_000, 9_999, 10_000, 500_000, 899_999, 900_000, 950_000, 999_999):
        phase = phases[step >= 900_000].pretrain
        rate = bert_linear(phase.learning_rate, phase.steps, step % 900_000)
        assert rate == pytest.approx(bert_linear(one, 1_000_000, step), rel=1e-12), step


def test_the_first_phase_alone_and_all_steps_with_long_rows_are_in_no_row(
    experiments: Mapping[str, Settings],
) -> None:
    assert placement(experiments["bert_large_128"], "") == Placement()
    last = experiments["bert_large"]
    assert placement(last, "") == Placement()
    row = "RoBERTa 5, validation: BERT-large"
    assert placement(last, row).differences["phases of pre-training"] == (1, 2)
    other = experiments["bert_base_128"], experiments["bert_large_128"]
    assert placement(last, row, other).differences["phases of pre-training"] == (3, 2)


def test_sizes_have_the_parameters_that_their_rows_print(
    experiments: Mapping[str, Settings],
) -> None:
    checked = 0
    for name, key in system_rows().items():
        stated = re.search(r"(\d+)M parameters", name)
        if stated and key in experiments:
            count = parameter_count(experiments[key].model, PIECES)
            assert count == pytest.approx(int(stated[1]) * 1e6, rel=HEADS), name
            checked += 1
    assert checked == 39


@pytest.mark.parametrize(
    "change",
    [
        {"pretrain.masked_lm.copies": 3},
        {"pretrain.steps": 500},
        {"use": ["systems/roberta", "sizes/roberta_tiny"]},
        {"finetune.start_from": "", "finetune.layer_decay": 0.9},
        {"model.embedding_width": 128},
        {"pretrain.noise_density": 0.2},
        {"pretrain.unique_tokens": 2**29},
    ],
)
def test_an_ablation_is_in_no_row_of_the_published_system(change: dict[str, Any]) -> None:
    headline = CONFIGURATIONS["roberta_large_500k"]
    change = {"use": headline["use"], **headline["change"], **change}
    assert placement(settings_with(*change.pop("use"), **change), "") == Placement()


@pytest.mark.parametrize(
    "change",
    [
        {"pretrain.repeat": 3, "pretrain.checkpoint_every_steps": 7, "pretrain.micro_batches": 4},
        {"seed": 5, "finetune.steps": 9, "finetune.learning_rate.factor": 3e-5},
        {"vocab.vocab_size": 5000, "tokens.languages": ["de"]},
    ],
)
def test_what_moves_no_row_does_not_count(change: dict[str, Any]) -> None:
    headline = CONFIGURATIONS["roberta_large_500k"]
    changed = settings_with(*headline["use"], **headline["change"], **change)
    assert placement(changed, "") == Placement("roberta_large_500k")


def test_static_masks_are_the_row_static_of_roberta_and_not_its_headline() -> None:
    rows = system_rows()
    assert placement(published("roberta_base_static"), "").row == rows["RoBERTa 1: static"]
    assert rows["RoBERTa 5, validation: RoBERTa"] == "roberta_large_500k"


def test_an_experiment_that_names_a_row_stands_in_it_with_its_differences() -> None:
    tiny = {**CONFIGURATIONS["roberta_large_500k"]["change"], "pretrain.batch_size": 8}
    settings = settings_with("systems/roberta", "sizes/roberta_tiny", **tiny)
    assert placement(settings, "") == Placement()
    stand_in = placement(settings, "RoBERTa 5, validation: RoBERTa")
    assert stand_in.row == "roberta_large_500k"
    assert stand_in.differences == {
        "model.d_model": (128, 1024),
        "model.d_ff": (512, 4096),
        "model.num_heads": (2, 16),
        "model.num_encoder_layers": (2, 24),
        "pretrain.batch_size": (8, 8192),
    }


def test_operations_are_compared_where_the_row_states_them() -> None:
    """Their steps would depend on the vocabulary."""
    gpt = CONFIGURATIONS["gpt"]
    change = {**gpt["change"], "vocab.vocab_size": 9000}
    assert placement(settings_with(*gpt["use"], **change), "") == Placement("gpt")
    fewer = {**change, "pretrain.flops": 1e19}
    row = next(name for name in system_rows() if name.startswith("ELECTRA 1: GPT"))
    differences = placement(settings_with(*gpt["use"], **fewer), row).differences
    assert differences == {"pretrain.flops": (1e19, 4e19)}


def test_a_row_that_cannot_be_had_takes_who_names_it_and_nobody_else() -> None:
    row = "SpanBERT 1: Human"
    assert placement(settings_with("systems/bert"), row) == Placement(row)
    assert placement(settings_with("systems/bert"), "Baseline average") == Placement()


def test_names_of_rows_are_unique() -> None:
    rows = [row for table in system_tables_content()["tables"] for row in table["rows"]]
    assert len(system_rows()) == len(rows)
    assert len(row_names()) == len(set(row_names()))


@pytest.mark.parametrize(
    ("row", "nearest"),
    [
        ("Baseline averege", "'Baseline average'"),
        ("RoBERTa 1: statik", "'RoBERTa 1: static'"),
        ("No such row", ""),
    ],
)
def test_a_misspelt_row_is_refused_with_its_line_and_the_nearest_names(
    row: str, nearest: str, tmp_path: Path
) -> None:
    run_file = tmp_path / "run.yaml"
    run_file.write_text(f'experiments:\n- name: a\n- name: b\n  row: "{row}"\n', encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_run_file(run_file)
    message = str(caught.value)
    assert "run.yaml:4: " in message
    assert f"no published table has a row {row!r}; nearest: {nearest}" in message
    assert "`t5repro paper rows`" in message
