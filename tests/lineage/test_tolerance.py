"""How near two results must be, where a stage does not promise bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from t5repro.lineage.graph import Job
from t5repro.lineage.tolerance import EXACT, TOLERANT, distance, promise_of


def job(rule: str, kind: str, record: dict[str, Any] | None = None) -> Job:
    return Job("r/x", rule, "", {"devices": {"kind": kind}}, (), (), {}, record or {})


@pytest.mark.parametrize(
    ("rule", "kind", "promise"),
    [
        ("pretrain", "cpu", EXACT),
        ("pretrain", "gpu", TOLERANT),
        ("finetune", "tpu", TOLERANT),
        ("evaluate_predict", "gpu", TOLERANT),
        ("evaluate_score", "gpu", EXACT),
        ("c4", "tpu", EXACT),
    ],
)
def test_only_training_and_decoding_on_devices_have_a_tolerance(
    rule: str, kind: str, promise: str
) -> None:
    assert promise_of(job(rule, kind)) == promise


def test_auto_is_what_the_record_says_it_was() -> None:
    assert promise_of(job("pretrain", "auto", {"end": {"devices": {"CPU": 1}}})) == EXACT
    assert promise_of(job("pretrain", "auto", {"end": {"devices": {"CPU": 1, "GPU": 1}}})) == (
        TOLERANT
    )
    assert promise_of(job("pretrain", "auto")) == TOLERANT


@pytest.mark.parametrize(("factor", "near"), [(1.0, True), (1.01, True), (1.2, False)])
def test_weights_are_near_by_relative_distance(tmp_path: Path, factor: float, near: bool) -> None:
    value = np.arange(1, 9, dtype=np.float32)
    save_file({"w": value}, tmp_path / "a.safetensors")
    save_file({"w": value * np.float32(factor)}, tmp_path / "b.safetensors")
    assert distance(tmp_path / "a.safetensors", tmp_path / "b.safetensors")[0] is near


def test_other_shapes_and_not_a_number_are_never_near(tmp_path: Path) -> None:
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "a.safetensors")
    for value in (np.ones(3, np.float32), np.array([1, np.nan], np.float32)):
        save_file({"w": value}, tmp_path / "b.safetensors")
        assert not distance(tmp_path / "a.safetensors", tmp_path / "b.safetensors")[0]


def test_tables_and_lines(tmp_path: Path) -> None:
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("step,loss\n1,2.0\n")
    b.write_text("step,loss\n1,2.02\n")
    assert distance(a, b) == (True, "distance 0.0099, allowed 0.05")
    b.write_text("step,loss\n1,2.5\n")
    assert not distance(a, b)[0]
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text("x\n" * 100)
    b.write_text("x\n" * 97 + "y\n" * 3)
    assert distance(a, b)[0]
    b.write_text("x\n" * 90 + "y\n" * 10)
    assert not distance(a, b)[0]


def test_other_files_must_be_equal(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("1")
    assert distance(tmp_path / "a.json", tmp_path / "a.json")[0] is False
