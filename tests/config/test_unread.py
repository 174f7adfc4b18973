"""Stated settings that nothing reads are refused; a masked share that is cut is said."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.config.experiments import value_of
from t5repro.config.load import load_run_files, load_settings
from t5repro.config.notes import notes
from t5repro.config.schema import Settings
from t5repro.config.unread import READ_WITH
from t5repro.errors import SettingsError

TASKS = {"names": ["glue_mrpc", "squad"], "segments": True}
BERT = {"use": ["systems/bert", "sizes/bert_tiny"], "pretrain.targets_length": 77}
ROBERTA = {**BERT, "use": ["systems/roberta", "sizes/roberta_tiny"]}


def load(change: Mapping[str, Any], **values: Any) -> Settings:
    experiment = {"name": "a", "change": change}
    return load_settings({"tasks": TASKS, **values, "experiments": [experiment]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {**ROBERTA, "pretrain.masked_lm.short_row_share": 0.5},
            "segment_pair or electra_segments, not full_sent",
        ),
        ({"pretrain.masked_lm.copies": 10}, "read only with pretrain.objective masked_lm, not rep"),
        (
            {**BERT, "pretrain.noise_mask": "random_spans"},
            "replace_spans or drop_tokens or .*, not",
        ),
        ({**BERT, "pretrain.concatenate_documents": False}, "not masked_lm; leave it out"),
        ({"pretrain.mean_noise_span_length": 2.0}, "pretrain.noise_mask random_spans, not iid"),
        (
            {"pretrain.objective": "drop_tokens", "pretrain.final_sentinel": True},
            "final_sentinel is",
        ),
        ({**BERT, "evaluate.beam_tasks": ["squad"]}, "beam_tasks is .*not encoder"),
        (
            {"evaluate.beam_width": 2},
            r"beam_width is 2, which is not read with evaluate.beam_tasks",
        ),
        (
            {"evaluate.answer_length": 9},
            "read only with model.architecture encoder or generator_detector, not encoder_dec",
        ),
        (
            {"tasks.windows.stride": 9},
            "read only with model.architecture encoder or generator_detector, not encoder_dec",
        ),
        ({"tasks.options_first": True}, "is True, which is read only with model.architecture "),
        ({"finetune.adapter_width": 32}, "read only with finetune.method adapters, not all"),
        ({"finetune.corpus_rate": "stated"}, "is not read with finetune.corpus_examples 0"),
        ({"finetune.learning_rate.warmup_steps": 5}, "inverse_square_root or .*, not constant"),
        ({"model.max_positions": 9}, "architecture encoder_decoder does not have"),
        ({"model.initializer_range": 0.5}, "normal or truncated_normal, not t5"),
        (
            {"finetune.groups": {"x": {"tasks.names": ["squad"], "finetune.adapter_width": 32}}},
            "finetune.adapter_width is 32, which is read only with finetune.method adapters",
        ),
    ],
)
def test_a_setting_that_an_experiment_does_not_read_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        load(change)


def test_a_setting_of_the_run_needs_one_experiment_that_reads_it() -> None:
    values: dict[str, Any] = {"tasks": TASKS, "evaluate": {"answer_length": 9}}
    experiments = [{"name": "t5"}, {"name": "bert", "change": BERT}]
    load_settings({**values, "experiments": experiments})
    with pytest.raises(SettingsError, match="evaluate.answer_length is 9, which is read only"):
        load_settings({**values, "experiments": experiments[:1]})


def test_an_experiment_may_reset_a_setting_of_its_run_that_it_does_not_read() -> None:
    values = {"evaluate": {"beam_tasks": ["squad"]}, "pretrain": {"noise_mask": "random_spans"}}
    reset = {"evaluate.beam_tasks": [], "pretrain.noise_mask": "iid"}
    experiments = [{"name": "t5"}, {"name": "bert", "change": {**BERT, **reset}}]
    load_settings({"tasks": TASKS, **values, "experiments": experiments})


def test_conditions_name_settings_and_allowed_values() -> None:
    for name, conditions in READ_WITH.items():
        assert conditions, name
        for setting, allowed, alternative in conditions:
            for part in filter(None, (setting, alternative)):
                assert not allowed or isinstance(value_of(Settings(), part), str), (name, part)


def test_the_state_of_an_optimizer_is_read_from_a_phase_or_a_checkpoint_only() -> None:
    fresh = {"pretrain.optimizer_state": "fresh"}
    phase = {"name": "b", "change": {**fresh, "pretrain.from_experiment": "a"}}
    load_settings({"tasks": TASKS, "experiments": [{"name": "a"}, phase]})
    either = "pretrain.from_experiment or pretrain.start_from ''"
    with pytest.raises(SettingsError, match=f"which is not read with {either}; leave it out"):
        load(fresh)


def test_a_row_with_fewer_masked_pieces_than_its_share_is_said() -> None:
    (note,) = notes(load({**BERT, "pretrain.inputs_length": 128, "pretrain.targets_length": 4}))
    assert "'a': pretrain.targets_length 4 limits" in note
    assert "to 4 of the 19 that pretrain.noise_density 0.15 selects, a share of 3.1%" in note
    assert not list(notes(load(BERT)))
    assert not list(notes(load({})))


@pytest.mark.parametrize("name", ["systems", "desk_systems"])
def test_no_experiment_of_the_comparisons_masks_fewer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert not list(notes(load_run_files([Path(f"configs/{name}.yaml")])))
