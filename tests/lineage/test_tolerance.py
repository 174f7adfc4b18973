"""How near two results must be, where a stage does not promise bytes."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from t5repro.lineage.graph import Job
from t5repro.lineage.tolerance import files_agree, numbers_agree, reproducibility_of


def job(rule: str, **settings: dict[str, object]) -> Job:
    return Job("r/x", rule, "", settings, (), (), {})


@pytest.mark.parametrize(
    ("rule", "devices", "promise"),
    [
        ("pretrain", {"kind": "cpu"}, "exact"),
        ("pretrain", {"kind": "cpu", "intra_op_threads": 1, "unknown": 3}, "exact"),
        ("pretrain", {"kind": "gpu"}, "tolerance"),
        ("finetune", {"kind": "tpu"}, "tolerance"),
        ("evaluate_predict", {"kind": "gpu"}, "tolerance"),
        ("finetune", {"instruction_set": "native"}, "exact on one kind of CPU"),
        ("pretrain", {"precision": "bfloat16"}, "exact on one kind of CPU"),
        ("evaluate_predict", {"intra_op_threads": 4}, "exact on one kind of CPU"),
        ("evaluate_score", {"kind": "gpu"}, "exact"),
        ("c4", {"kind": "tpu"}, "exact"),
    ],
)
def test_training_and_decoding_promise_bytes_where_these_were_proven(
    rule: str, devices: dict[str, object], promise: str
) -> None:
    assert reproducibility_of(job(rule, devices=devices)) == promise


@pytest.mark.parametrize(
    "narrow",
    [
        {"model": {"d_model": 64}},
        {"model": {"num_heads": 2, "d_kv": 32}},
        {"model": {"d_ff": 48}},
        {"finetune": {"method": "adapters", "adapter_width": 32}},
    ],
)
def test_a_network_with_narrow_products_is_exact_on_one_thread_only(
    narrow: dict[str, dict[str, object]],
) -> None:
    two, one = ({"intra_op_threads": threads} for threads in (2, 1))
    assert reproducibility_of(job("finetune", devices=two)) == "exact"
    assert reproducibility_of(job("finetune", devices=two, **narrow)) == "exact on one kind of CPU"
    assert reproducibility_of(job("finetune", devices=one, **narrow)) == "exact"


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
