"""The file of a measured spread."""

import json
from dataclasses import asdict, replace

import pytest

from t5repro.errors import ArtifactError
from t5repro.lineage.spread import Spread, deviations_of, parse_spread, spread_path, widest

SPREAD = Spread(
    run="demo",
    experiment="baseline",
    twins=5,
    machine={"processor": "AMD EPYC"},
    code={"pretrain": "ab"},
    settings={"pretrain-baseline": {"pretrain.steps": 300, "seed": 0}},
    deviations={"pretrain": {"final_loss": 0.01}},
)


def test_a_spread_is_read_as_it_was_written() -> None:
    assert parse_spread(json.dumps(asdict(SPREAD)).encode(), "x") == SPREAD
    assert spread_path("demo").as_posix() == "configs/spread/demo.json"


@pytest.mark.parametrize("text", ["", "{}", '{"run": 1}'])
def test_a_damaged_spread_is_named_with_its_cure(text: str) -> None:
    with pytest.raises(ArtifactError, match="demo.json is not a spread .*git checkout"):
        parse_spread(text.encode(), "demo.json")


def test_the_first_setting_that_was_measured_with_another_value_is_named() -> None:
    settings = {"pretrain-baseline": {"pretrain.steps": 300, "seed": 0}, "report": {"x": 1}}
    assert SPREAD.other_setting(settings) is None
    settings["pretrain-baseline"] = {"pretrain.steps": 301, "seed": 0}
    assert SPREAD.other_setting(settings) == "pretrain-baseline.pretrain.steps"
    other = replace(SPREAD, settings={**SPREAD.settings, "finetune-b": {"seed": 0}})
    settings["pretrain-baseline"]["pretrain.steps"] = 300
    assert other.other_setting(settings) == "finetune-b.seed"


def test_a_setting_from_after_the_measurement_had_its_default() -> None:
    settings = {"pretrain-baseline": {"pretrain.steps": 300, "seed": 0, "devices.engine": "x"}}
    assert SPREAD.other_setting(settings) == "pretrain-baseline.devices.engine"
    defaults = {"pretrain-baseline": {"devices.engine": "x", "pretrain.steps": 9}}
    assert SPREAD.other_setting(settings, defaults) is None
    settings["pretrain-baseline"]["devices.engine"] = "y"
    assert SPREAD.other_setting(settings, defaults) == "pretrain-baseline.devices.engine"


def test_deviations_are_of_the_numbers_that_all_runs_have_and_the_widest_counts() -> None:
    runs = [{"loss": 1.0, "f1": 90.0}, {"loss": 3.0}, {"loss": 5.0, "f1": 80.0}]
    assert deviations_of(runs) == {"loss": 2.0}
    assert widest([{"loss": 2.0, "f1": 1.0}, {"loss": 0.5, "em": 3.0}]) == {
        "loss": 2.0,
        "f1": 1.0,
        "em": 3.0,
    }
