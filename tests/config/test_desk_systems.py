"""The run files of the systems at a desk: equal compute, and rates searched by one rule for all."""

from collections.abc import Mapping
from typing import Any

import pytest
from rate_search import INFIX, SYSTEM_NAMES, Stage, trainings_of_search
from run_files import load_committed
from study_results import SEARCH, SYSTEMS, experiment_settings

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Settings


@pytest.fixture(scope="module")
def run() -> Settings:
    return load_committed(SYSTEMS)


def rates_tried(stage: Stage) -> Mapping[str, dict[float, Settings]]:
    """Return system -> rate of the stage -> settings of its training, the first one first."""
    return {
        system: {rate: experiment_settings(SEARCH, name) for rate, name in tried.items()}
        for system, tried in trainings_of_search(stage).items()
    }


def test_the_text_the_tasks_and_the_network_are_those_of_the_architectures(run: Settings) -> None:
    architectures = load_committed("desk_architectures")
    for section in ("data", "corpus", "c4", "tokens", "vocab", "model"):
        assert getattr(run, section) == getattr(architectures, section), section
    assert run.tasks.names == architectures.finetune.groups["glue"]["tasks.names"]


def test_t5_is_trained_as_the_baseline_of_the_architectures_but_for_one_rate(run: Settings) -> None:
    """So its weights after pre-training are those of that study."""
    architectures, ours = load_committed("desk_architectures"), settings_of_experiment(run, "t5")
    budget = {"flops": run.pretrain.flops}
    assert ours.pretrain == architectures.pretrain.model_copy(update=budget)
    theirs = settings_of_experiment(architectures, "baseline_glue").finetune
    searched = {"learning_rate": ours.finetune.learning_rate, "groups": {}}
    assert ours.finetune == theirs.model_copy(update=searched)
    factor = {"factor": theirs.learning_rate.factor}
    assert ours.finetune.learning_rate.model_copy(update=factor) == theirs.learning_rate


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_a_system_has_three_seeds(run: Settings, system: str) -> None:
    names = [one.name for one in run.experiments]
    assert {system, f"{system}_seed_1", f"{system}_seed_2"} <= set(names)


@pytest.mark.parametrize("stage", INFIX)
def test_nothing_but_the_rate_differs_between_the_trainings_of_a_search(stage: Stage) -> None:
    for system, settings in rates_tried(stage).items():
        others: list[dict[str, Any]] = []
        for one in settings.values():
            values = one.model_dump(exclude={"experiments"})
            del values[stage]["learning_rate"]["factor"]
            others.append(values)
        assert all(values == others[0] for values in others), system


@pytest.mark.parametrize("system", SYSTEM_NAMES)
def test_nothing_but_rates_differs_between_the_study_and_the_search(
    run: Settings, system: str
) -> None:
    ours, theirs = (
        settings.model_dump(exclude={"run", "experiments"})
        for settings in (settings_of_experiment(run, system), experiment_settings(SEARCH, system))
    )
    for values in (ours, theirs):
        for stage in INFIX:
            del values[stage]["learning_rate"]["factor"]
    assert ours == theirs


def test_mt_dnn_continues_the_pre_training_of_bert(run: Settings) -> None:
    bert, mt_dnn = (settings_of_experiment(run, name).pretrain for name in ("bert", "mt_dnn"))
    assert mt_dnn == bert


@pytest.mark.parametrize("stage", INFIX)
def test_the_rates_of_a_system_are_three_or_more_each_twice_the_one_before(stage: Stage) -> None:
    for system, settings in rates_tried(stage).items():
        rates = sorted(settings)
        assert len(rates) >= 3, system
        assert rates == pytest.approx([rates[0] * 2**k for k in range(len(rates))]), system
