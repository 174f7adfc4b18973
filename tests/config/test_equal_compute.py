"""Steps of pre-training that follow from a number of operations."""

from typing import Any

import pytest

from t5repro.config.experiments import pretraining_flops, settings_of_experiment
from t5repro.config.flops import step_flops
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.errors import SettingsError

BASELINE = 3.29e19  # operations of the paper's baseline
LANGUAGE_MODEL = {
    "model.architecture": "language_model",
    "pretrain.objective": "prefix_lm",
    "pretrain.targets_length": 512,
    "pretrain.concatenate_documents": False,
}


def run(**changes: dict[str, Any]) -> Settings:
    names = [{"name": name, "change": change} for name, change in changes.items()]
    return load_settings(
        {"pretrain.flops": BASELINE, "experiments": [{"name": "baseline"}, *names]}
    )


def operations(settings: Settings) -> tuple[float, float]:
    """Return the operations of a pre-training and of one of its steps."""
    rows = settings.vocab.embedding_rows
    step = step_flops(settings.model, settings.pretrain, embedding_rows=rows)
    return settings.pretrain.steps * step, step


def test_the_papers_baseline_has_about_its_steps() -> None:
    assert run().pretrain.steps == pytest.approx(2**19, rel=0.002)


@pytest.mark.parametrize(
    "change",
    [
        LANGUAGE_MODEL,
        {"use": ["sizes/small"]},
        {"pretrain.batch_size": 256, "pretrain.inputs_length": 128},
        {"vocab.vocab_size": 64_000},
        {"pretrain.flops": 1e18},
    ],
)
def test_an_experiment_differs_from_the_budget_by_half_a_step_at_most(
    change: dict[str, Any],
) -> None:
    settings = settings_of_experiment(run(other=change), "other")
    total, step = operations(settings)
    assert abs(total - settings.pretrain.flops) <= step / 2
    assert settings.pretrain.steps != run().pretrain.steps


def test_stated_steps_of_an_experiment_replace_the_budget_of_the_run() -> None:
    settings = settings_of_experiment(run(none={"pretrain.steps": 0}), "none").pretrain
    assert (settings.steps, settings.flops) == (0, 0)


def test_a_budget_of_an_experiment_replaces_the_steps_of_the_run() -> None:
    settings = load_settings(
        {
            "pretrain.steps": 7000,
            "experiments": [
                {"name": "baseline"},
                {"name": "tenth", "change": {"pretrain.flops": BASELINE / 10}},
            ],
        }
    )
    assert settings_of_experiment(settings, "baseline").pretrain.steps == 7000
    tenth = settings_of_experiment(settings, "tenth").pretrain.steps
    assert tenth == pytest.approx(2**19 / 10, rel=0.002)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"pretrain.flops": 1e19, "pretrain.steps": 10},
            "pretrain.steps is 10 and pretrain.flops 1e\\+19, from which the steps follow; remove",
        ),
        ({"pretrain.flops": 1e10}, "pretrain.flops is 1e\\+10, but one step takes 6.28e\\+13 oper"),
        ({"pretrain.flops": -1}, "pretrain.flops' is -1; Input should be greater"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(values)
    experiments = [{"name": "baseline"}, {"name": "other", "change": values}]
    with pytest.raises(SettingsError, match=message):
        settings_of_experiment(load_settings({"experiments": experiments}), "other")


def test_a_schedule_that_does_not_fit_the_steps_of_the_budget_is_refused() -> None:
    values = {"pretrain.flops": 1e17, "pretrain.learning_rate": {"schedule": "linear"}}
    with pytest.raises(SettingsError, match="warmup_steps 10000 .* must be less than steps 1591"):
        load_settings(values)


def test_a_budget_counts_the_phases_before() -> None:
    first = {"pretrain.flops": 0.9 * BASELINE}
    last = {"pretrain.from_experiment": "first", "pretrain.inputs_length": 1024}
    settings = run(first=first, last=last, alone={"pretrain.inputs_length": 1024})
    phase, alone = (settings_of_experiment(settings, name) for name in ("last", "alone"))
    assert phase.pretrain.steps == pytest.approx(alone.pretrain.steps / 10, rel=0.001)
    total = pretraining_flops(settings, "last")
    assert abs(total - BASELINE) <= operations(phase)[1] / 2


def test_groups_of_tasks_have_the_steps_of_their_phase() -> None:
    groups = {"a": {"tasks.names": ["glue_cola"]}, "b": {"tasks.names": ["squad"]}}
    last = {"pretrain.from_experiment": "first", "finetune.groups": groups}
    settings = run(first={"pretrain.flops": 0.9 * BASELINE}, last=last)
    steps = {
        settings_of_experiment(settings, name).pretrain.steps
        for name in ("last", "last_a", "last_b")
    }
    assert len(steps) == 1


def test_a_budget_that_earlier_phases_exhaust_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"its earlier phases take 3.29e\+19 and one step takes"
    ):
        run(last={"pretrain.from_experiment": "baseline"})
