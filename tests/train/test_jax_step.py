"""The training step on JAX computes what TensorFlow's does, in float32 and in float64."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from engine_steps import cases
from jax_environment import ENVIRONMENT, MARKS, PYTHON, run

from t5repro.artifacts import STEPS
from t5repro.model.checkpoints import read_arrays
from t5repro.train.repeated_steps import state_file
from t5repro.versions.other_engine import BARS

PROGRAM = str(ROOT / "tests/support/engine_steps.py")
CASES = tuple(cases())

pytestmark = MARKS


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the steps of both engines."""
    folder = tmp_path_factory.mktemp("engines")
    run(sys.executable, PROGRAM, "tensorflow", str(folder))
    run(PYTHON, PROGRAM, "jax", str(folder))
    return folder


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("mode", "of_loss", "of_weights"),
    [
        ("float32", *BARS["float32"]),
        ("float32, free", 1e-5, 1.0),  # the rounding of weights grows by four digits
        ("float64, free", *BARS["float64"]),
    ],
)
def test_steps_have_the_losses_and_updates_of_tensorflow(
    steps: Path, case: str, mode: str, of_loss: float, of_weights: float
) -> None:
    result = json.loads((steps / "jax" / mode / case / STEPS).read_text())
    assert len(result["losses"]) == 20
    np.testing.assert_allclose(result["losses"], result["losses_of_reference"], rtol=of_loss)
    assert max(distance["share"] for distance in result["distances"]) < of_weights


def test_clipping_bites_in_its_case(steps: Path) -> None:
    free, clipped = (
        read_arrays(steps / "jax/float32" / case / state_file(1), section="optimizer")
        for case in ("T5", "T5 with clipped gradients")
    )
    moments = [name for name in free if name.endswith("moment")]
    assert moments
    assert all(np.sum(clipped[name]) < np.sum(free[name]) for name in moments)


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
