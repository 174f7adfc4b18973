"""The run file of the search of rates: one rule for all systems."""

from collections import defaultdict
from typing import Any

import pytest
from run_files import load_committed

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.presets.systems import PRESETS
from t5repro.config.schema import Settings


@pytest.fixture(scope="module")
def run() -> Settings:
    return load_committed("desk_rates")


def searched(run: Settings) -> dict[str, dict[float, Settings]]:
    """Return system -> rate of pre-training -> settings."""
    found: dict[str, dict[float, Settings]] = defaultdict(dict)
    for one in run.experiments:
        system, _, digits = one.name.rpartition("_")
        settings = settings_of_experiment(run, one.name)
        rate = settings.pretrain.learning_rate.factor
        assert rate == float(f"0.{digits}"), one.name
        found[system][rate] = settings
    return found


def test_every_system_with_a_pre_training_of_its_own_is_searched(run: Settings) -> None:
    assert sorted(searched(run)) == sorted({"t5", *PRESETS} - {"mt_dnn"})


def test_the_rates_of_a_system_are_three_or_more_each_twice_the_one_before(run: Settings) -> None:
    for system, settings in searched(run).items():
        rates = sorted(settings)
        assert len(rates) >= 3, system
        expected = [rates[0] * 2**doublings for doublings in range(len(rates))]
        assert rates == pytest.approx(expected), system


def test_nothing_but_the_rate_differs_between_the_trainings_of_a_system(run: Settings) -> None:
    for system, settings in searched(run).items():
        others: list[dict[str, Any]] = []
        for one in settings.values():
            values = one.model_dump(exclude={"experiments"})
            del values["pretrain"]["learning_rate"]["factor"]
            others.append(values)
        assert all(values == others[0] for values in others), system


def test_a_pre_training_has_the_operations_of_the_architectures(run: Settings) -> None:
    """The one at T5's rate of the studies is theirs, so it has the same weights."""
    architectures = load_committed("desk_architectures").pretrain
    ours = settings_of_experiment(run, "t5_2").pretrain
    assert ours == architectures.model_copy(update={"flops": run.pretrain.flops})
