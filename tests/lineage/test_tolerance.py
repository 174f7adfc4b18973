"""How near two results must be, where a stage does not promise bytes."""

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from t5repro.lineage.graph import Job
from t5repro.lineage.tolerance import (
    JobKind,
    binomial_error,
    compare_numbers,
    files_agree,
    reproducibility_of,
    rounding_of,
)


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
        {"model": {"embedding_width": 64}},
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


DEVIATIONS = {
    "final_loss": 0.01,
    "loss_of_step.10": 1e-3,
    "tasks.glue_rte.metrics.accuracy": 0.5,
    "tasks.glue_rte.invalid": 0.0,
}
GROWTH = {"loss_of_step.5": 1e-6, "loss_of_step.20": 1e-3}
LOSSES = {"steps": 300.0, "final_loss": 2.0, "loss_of_step.10": 4.0, "loss_of_step.5": 5.0}
SCORES = {
    "tasks.glue_rte.examples": 200.0,
    "tasks.glue_rte.invalid": 0.0,
    "tasks.glue_rte.metrics.accuracy": 100.0,
    "tasks.glue_rte.baseline.metrics.accuracy": 50.0,
}


def fault(
    expected: dict[str, float],
    name: str,
    value: float | None,
    *,
    same_inputs: bool = True,
    on_device: bool = True,
    deviations: dict[str, float] = DEVIATIONS,
) -> str:
    """Return the first number that disagrees if one of them has another value here."""
    actual = {
        key: number for key, number in {**expected, name: value}.items() if number is not None
    }
    kind = JobKind(same_inputs, on_device, rounding_of({}), deviations, GROWTH)
    numbers = compare_numbers(expected, actual, kind)
    return next((str(number) for number in numbers if not number.agrees), "")


def test_an_early_loss_decides_by_rounding_if_the_inputs_are_the_committed_ones() -> None:
    assert fault(LOSSES, "loss_of_step.10", 4.0 * (1 + 0.9e-5)) == ""
    assert fault(LOSSES, "loss_of_step.10", 4.0 * (1 + 1.1e-5)) == (
        "loss_of_step.10 is 4.000044, committed is 4, allowed difference 4e-05"
    )
    # Weights that rounding has moved already: 3 * sqrt(2) deviations.
    assert fault(LOSSES, "loss_of_step.10", 4.0042, same_inputs=False) == ""
    assert fault(LOSSES, "loss_of_step.10", 4.0043, same_inputs=False) != ""


def test_an_early_loss_may_differ_as_far_as_that_of_twins_with_equal_inputs() -> None:
    losses = {**LOSSES, "loss_of_step.20": 3.0}
    assert fault(losses, "loss_of_step.20", 3.0042) == ""  # 3 * sqrt(2) deviations of 1e-3
    assert fault(losses, "loss_of_step.20", 3.0043) != ""
    # A deviation below rounding does not narrow the limit.
    assert fault(losses, "loss_of_step.5", 5.0 * (1 + 0.9e-5)) == ""
    assert fault(losses, "loss_of_step.5", 5.0 * (1 + 1.1e-5)) != ""


def test_the_earliest_step_that_differs_is_named_first() -> None:
    here = {**LOSSES, "steps": 299.0, "loss_of_step.10": 9.0, "loss_of_step.5": 9.0}
    numbers = compare_numbers(LOSSES, here, JobKind(True, True, 1e-5, {}, {}))
    names = [number.name for number in numbers if not number.agrees]
    assert names == ["loss_of_step.5", "loss_of_step.10", "steps"]


def test_a_final_loss_on_held_out_text_is_judged_as_that_of_training() -> None:
    name = "final_validation_loss"
    losses, deviations = {**LOSSES, name: 3.0}, {**DEVIATIONS, name: 0.02}
    assert fault(losses, name, 3.08, deviations=deviations) == ""
    assert "allowed difference 0.085" in fault(losses, name, 3.09, deviations=deviations)
    assert "no spread was measured for it" in fault(losses, name, 3.01, deviations=DEVIATIONS)


def test_a_final_loss_is_judged_by_the_measured_deviation() -> None:
    assert fault(LOSSES, "final_loss", 2.0424) == ""
    assert "allowed difference 0.042" in fault(LOSSES, "final_loss", 2.0425)
    assert "no spread was measured for it" in fault(LOSSES, "final_loss", 2.01, deviations={})
    assert fault(LOSSES, "final_loss", 2.0, deviations={}) == ""
    # Twins of a short training may have one loss: rounding is allowed in any case.
    assert fault(LOSSES, "final_loss", 2.00001, deviations={"final_loss": 0.0}) == ""


def test_counts_of_the_data_must_be_equal() -> None:
    assert fault(LOSSES, "steps", 301.0) == "steps is 301, committed is 300, must be equal"
    trivial = "tasks.glue_rte.baseline.metrics.accuracy"
    assert "must be equal" in fault(SCORES, trivial, 50.5, same_inputs=False)


def test_a_number_on_one_side_only_is_a_fault() -> None:
    assert fault(LOSSES, "final_loss", None) == "final_loss is missing, committed is 2"
    assert fault(LOSSES, "more", 1.0) == "more is 1, committed is missing"


def test_a_score_may_move_by_deviations_or_by_the_error_of_so_few_examples() -> None:
    accuracy, invalid = "tasks.glue_rte.metrics.accuracy", "tasks.glue_rte.invalid"
    error = binomial_error(100, 200, is_count=False)
    assert error == pytest.approx(100 * math.sqrt(201 / 202 * (1 / 202) / 200))
    assert binomial_error(50, 200, is_count=False) == pytest.approx(100 * math.sqrt(0.25 / 200))
    assert binomial_error(0, 200, is_count=True) == pytest.approx(2 * error)
    assert binomial_error(50, 0, is_count=False) == 0
    allowed = 3 * math.sqrt(2) * 0.5
    assert allowed > 2 * math.sqrt(2) * error
    assert fault(SCORES, accuracy, 100 - allowed + 0.01, same_inputs=False) == ""
    assert fault(SCORES, accuracy, 100 - allowed - 0.01, same_inputs=False) != ""
    assert fault(SCORES, invalid, 2.0, same_inputs=False) == ""
    assert fault(SCORES, invalid, 3.0, same_inputs=False) != ""


def test_scores_of_equal_predictions_differ_by_rounding_only() -> None:
    accuracy = "tasks.glue_rte.metrics.accuracy"
    assert fault(SCORES, accuracy, 99.9999, on_device=False) == ""
    assert fault(SCORES, accuracy, 99.5, on_device=False) != ""


def test_rounding_is_that_of_float32_on_a_cpu_and_a_chosen_one_elsewhere() -> None:
    assert rounding_of({"devices": {"kind": "cpu"}}) == 1e-5
    assert rounding_of({"devices": {"kind": "tpu"}}) == 0.05
    assert rounding_of({"devices": {"precision": "bfloat16"}}) == 0.05


def test_equal_numbers_that_are_written_differently_have_no_distance(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0,1.50\n")
    (tmp_path / "b.csv").write_text("0.0,1.5\n")
    assert files_agree(tmp_path / "a.csv", tmp_path / "b.csv") == (True, "distance 0, allowed 0.05")
