"""A step on JAX is compiled for a mesh that this process does not have, from shapes alone."""

import json
from typing import Any

import pytest
from checkout import SUPPORT
from jax_environment import MARKS, PYTHON, run

from t5repro.config.load import load_settings
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.stage_settings import stage_settings
from t5repro.train import preflight as module
from t5repro.train.preflight import GIB, PreflightError, facts_of, shares_of_rows, table

MESH = {"engine": "jax", "kind": "tpu", "mesh": {"data": 4, "model": 4}, "slice": "v5e:4x4"}


def stage(**change: Any) -> PretrainStage:
    settings = load_settings({"devices": MESH, **change})
    return PretrainStage.model_validate(stage_settings(settings, "pretrain"))


def costs(data: int, model: int) -> dict[str, Any]:
    """Return the costs of a step, printed as the last line."""
    program = str(SUPPORT / "slice_costs.py")
    return json.loads(run(PYTHON, program, str(data), str(model)).splitlines()[-1])


class TestOnJax:
    pytestmark = MARKS

    def test_devices_that_share_weights_need_less_and_gather_no_array(self) -> None:
        one, eight = costs(1, 1), costs(2, 4)
        assert one["exchanges"] == {}
        assert set(costs(8, 1)["exchanges"]) == {"all-reduce"}  # rows alone are shared
        assert eight["exchanges"]["all-reduce"] > 4
        assert set(eight["exchanges"]) == {"all-reduce"}
        assert one["arguments"] / 4 < eight["arguments"] < one["arguments"] / 3
        assert eight["temporary"] < one["temporary"] / 2


def test_groups_of_cores_share_the_rows() -> None:
    assert shares_of_rows(stage(), 16, "v5e:4x4") == 4
    with pytest.raises(PreflightError, match="devices.mesh is 4 x 4, 16 devices, but v4:2x2x1 has"):
        shares_of_rows(stage(), 8, "v4:2x2x1")


def test_a_step_that_does_not_fit_ends_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    slice_facts = {"cores": 16, "kind": "TPU v5 lite", "library": "libtpu.so"}
    monkeypatch.setattr(module, "ask", lambda python, *words: slice_facts)
    fault = {"fault": "memory", "text": "Used 20G of 15.7G hbm"}
    monkeypatch.setattr(module, "costs_on_slice", lambda settings, **options: fault)
    with pytest.raises(module.DoesNotFitError, match="Used 20G of 15.7G hbm; raise micro_batches"):
        module.preflight(stage(), slice_name="", python="", report=None)


def test_the_report_counts_the_exchanges_between_cores() -> None:
    parts = ("argument_bytes", "output_bytes", "temporary_bytes", "code_bytes")
    found = {**dict.fromkeys(parts, GIB), "flops": 1e12, "exchanges": {"all-reduce": 21}}
    facts = facts_of("v5e:4x4", {"cores": 16, "kind": "TPU v5 lite"}, 32, found)
    assert facts["exchanges"] == {"all-reduce": 21}
    assert "between cores        21 all-reduce" in table(facts)
