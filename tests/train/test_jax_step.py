"""The training step on JAX computes what TensorFlow's does, from the same state."""

import sys
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from engine_steps import cases
from jax_environment import ENVIRONMENT, MARKS, PYTHON, run

PROGRAM = str(ROOT / "tests/support/engine_steps.py")
CASES = tuple(cases())
# The softmax over keys, or over places, does not depend on these: their gradients are rounding,
# which an optimizer that divides by their size makes as large as any other.
WITHOUT_EFFECT = ("/k_bias", "span_head/bias")

pytestmark = MARKS


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the steps of both engines."""
    folder = tmp_path_factory.mktemp("engines")
    run(sys.executable, PROGRAM, "tensorflow", str(folder))
    run(PYTHON, PROGRAM, "jax", str(folder))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_step_from_the_same_state_has_the_same_loss_and_update(steps: Path, case: str) -> None:
    number = CASES.index(case)
    theirs, ours = (np.load(steps / f"{name}-{number}.npz") for name in ("tensorflow", "jax"))
    assert len(ours["losses"]) == 20
    np.testing.assert_allclose(ours["losses"], theirs["losses"], rtol=1e-6)
    names = list(map(str, theirs["names"]))
    for step in range(20):
        difference, size = 0.0, 0.0
        for index, name in enumerate(names):
            if name.endswith(WITHOUT_EFFECT) or any(
                path.replace("/", ".") in name for path in WITHOUT_EFFECT
            ):
                continue
            before, after = (theirs[f"state {step + n} {index}"].astype(float) for n in (0, 1))
            error = np.linalg.norm(ours[f"state {step} {index}"] - after)
            moved = np.linalg.norm(after - before)
            assert error <= 1e-3 * moved, (step, name)  # of small biases the terms cancel
            if index < int(theirs["trained"]):
                difference, size = np.hypot(difference, error), np.hypot(size, moved)
        assert difference < 1e-5 * size


def test_clipping_bites_in_its_case(steps: Path) -> None:
    free, clipped = (
        np.load(steps / f"jax-{CASES.index(name)}.npz")
        for name in ("T5", "T5 with clipped gradients")
    )
    assert free["losses"][0] == clipped["losses"][0]
    slots = range(int(free["trained"]), len(free["names"]))
    shrunk = [
        np.sum(clipped[f"state 0 {index}"]) < np.sum(free[f"state 0 {index}"])
        for index in slots
        if str(free["names"][index]).endswith("moment")
    ]
    assert shrunk
    assert all(shrunk)


def test_fused_attention_has_the_loss_and_the_gradients_of_plain_attention(tmp_path: Path) -> None:
    run(PYTHON, str(ROOT / "tests/support/fused_and_plain.py"), str(tmp_path / "both.npz"))
    with np.load(tmp_path / "both.npz") as both:
        names = [name.removeprefix("plain ") for name in both if name.startswith("plain ")]
        assert len(names) > 20
        for name in names:
            plain, fused = both[f"plain {name}"], both[f"fused {name}"]
            assert np.linalg.norm(fused - plain) < 2e-6 * np.linalg.norm(plain), name


def test_the_benchmark_of_a_gpu_can_be_rehearsed_without_one() -> None:
    pytest.importorskip("torch", reason="peers are not installed: make parity")
    parts = ("base, compiled, SDPA", "base, greedy", "base, ours, fused", "base, greedy, ours")
    options = ("--rehearse", "--steps", "1", "--parts", *parts)
    # Torch is in the environment of the other peers; SDPA of T5 came with transformers 5.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    paths = (ROOT / ".venv/transformers-5", ENVIRONMENT / "lib" / version / "site-packages")
    output = run(sys.executable, str(ROOT / "benchmarks/accelerator.py"), *options, paths=paths)
    table = output.rpartition("\n\n| part")[2]
    assert "failed" not in table
    assert [table.count(f"x {part}") for part in parts[:2]] == [1, 1]
