"""How near two results must be, where a stage does not promise bytes."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from t5repro.lineage.graph import Job
from t5repro.lineage.tolerance import (
    EXACT,
    TOLERANT,
    files_agree,
    numbers_agree,
    reproducibility_of,
)


def job(rule: str, kind: str) -> Job:
    return Job("r/x", rule, "", {"devices": {"kind": kind}}, (), (), {})


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
    assert reproducibility_of(job(rule, kind)) == promise


@pytest.mark.parametrize(("factor", "agree"), [(1.0, True), (1.01, True), (1.2, False)])
def test_weights_agree_by_relative_distance(tmp_path: Path, factor: float, agree: bool) -> None:
    value = np.arange(1, 9, dtype=np.float32)
    save_file({"w": value}, tmp_path / "a.safetensors")
    save_file({"w": value * np.float32(factor)}, tmp_path / "b.safetensors")
    assert files_agree(tmp_path / "a.safetensors", tmp_path / "b.safetensors")[0] is agree


def test_other_shapes_and_not_a_number_are_never_near(tmp_path: Path) -> None:
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "a.safetensors")
    for value in (np.ones(3, np.float32), np.array([1, np.nan], np.float32)):
        save_file({"w": value}, tmp_path / "b.safetensors")
        assert not files_agree(tmp_path / "a.safetensors", tmp_path / "b.safetensors")[0]


def test_tables_and_lines(tmp_path: Path) -> None:
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("step,loss\n1,2.0\n")
    b.write_text("step,loss\n1,2.02\n")
    assert files_agree(a, b) == (True, "distance 0.0099, allowed 0.05")
    b.write_text("step,loss\n1,2.5\n")
    assert not files_agree(a, b)[0]
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text("x\n" * 100)
    b.write_text("x\n" * 97 + "y\n" * 3)
    assert files_agree(a, b)[0]
    b.write_text("x\n" * 90 + "y\n" * 10)
    assert not files_agree(a, b)[0]


def test_other_files_must_be_equal(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("1")
    assert files_agree(tmp_path / "a.json", tmp_path / "a.json")[0] is False


def test_counters_and_losses_agree_relatively_and_scores_by_points() -> None:
    assert numbers_agree("final_loss", 2.0, 2.08)
    assert not numbers_agree("final_loss", 2.0, 2.2)
    assert numbers_agree("tasks.glue_cola.metrics.matthews_correlation", 10.0, 12.9)
    assert not numbers_agree("tasks.glue_cola.metrics.matthews_correlation", 10.0, 13.1)


def test_equal_numbers_that_are_written_differently_have_no_distance(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0,1.50\n")
    (tmp_path / "b.csv").write_text("0.0,1.5\n")
    assert files_agree(tmp_path / "a.csv", tmp_path / "b.csv") == (True, "distance 0, allowed 0.05")
