"""Experiments that depend on other experiments."""

import pytest

from t5repro.config.experiments import node_of
from t5repro.config.load import load_settings
from t5repro.errors import SettingsError


def run_of(*experiments, **values):
    named = [{"name": name, "change": change} for name, change in experiments]
    return load_settings({**values, "experiments": named})


def test_an_experiment_continues_the_fine_tuning_of_an_earlier_one_and_shares_its_pretraining():
    settings = run_of(
        ("multi_task", {}),
        ("then_cola", {"finetune.start_from": "multi_task", "tasks.names": ["glue_cola"]}),
    )
    assert node_of(settings, "pretrain", "then_cola") == "multi_task"
    assert node_of(settings, "finetune", "then_cola") == "then_cola"


@pytest.mark.parametrize(
    ("experiments", "message"),
    [
        ([("a", {"finetune.start_from": "b"}), ("b", {})], "one of the experiments before it"),
        ([("a", {"finetune.start_from": "a"})], "one of the experiments before it"),
        (
            [("a", {}), ("b", {"finetune.start_from": "a", "pretrain.steps": 7})],
            "pretrain.steps is 7 and 524288; both must have the same",
        ),
        (
            [("a", {"finetune.method": "adapters"}), ("b", {"finetune.start_from": "a"})],
            "has adapters of width 2048",
        ),
        ([("a", {}), ("e", {"evaluate.ensemble": ["a", "x"]})], r"names 'x'; the experiments are"),
        (
            [("a", {}), ("b", {"seed": 1}), ("e", {"evaluate.ensemble": ["a", "b"]})],
            "seed is 0 and 1",
        ),
        (
            [("a", {}), ("b", {"model.d_ff": 8}), ("e", {"evaluate.ensemble": ["a", "b"]})],
            "model.d_ff is 3072 and 8",
        ),
        (
            [("a", {"finetune.method": "adapters"}), ("e", {"evaluate.ensemble": ["a"]})],
            "which has other adapters",
        ),
        ([("e", {"evaluate.ensemble": ["e"]})], "which is an ensemble itself"),
        ([("a", {}), ("e", {"evaluate.ensemble": ["a", "a"]})], r"\['a'\] more than once"),
        (
            [("a", {}), ("e", {"evaluate.ensemble": ["a"], "evaluate.beam_tasks": ["squad"]})],
            "evaluate.beam_tasks empty",
        ),
        ([("a", {"evaluate.checkpoints": "all"})], "needs finetune.keep_checkpoints 'all'"),
    ],
)
def test_an_experiment_that_cannot_build_on_another_is_refused(experiments, message):
    with pytest.raises(SettingsError, match=message):
        run_of(*experiments)


def test_members_of_an_ensemble_differ_in_their_repetition_and_share_what_comes_before():
    settings = run_of(
        ("one", {}),
        ("two", {"pretrain.repeat": 1}),
        ("three", {"finetune.repeat": 1}),
        ("all", {"evaluate.ensemble": ["one", "two", "three"]}),
    )
    assert node_of(settings, "vocab", "two") == "one"
    assert node_of(settings, "pretrain", "two") == "two"
    assert node_of(settings, "pretrain", "three") == "one"
    assert node_of(settings, "finetune", "three") == "three"
    assert node_of(settings, "finetune", "all") == "one"  # nothing is trained for the ensemble
    assert node_of(settings, "evaluate_predict", "all") == "all"
