"""Recomputed activations on JAX: the same step in less memory, and the same noise."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkout import SUPPORT
from jax_environment import MARKS, PYTHON, run, train, weights
from remat_steps import CASES

from t5repro.train.repeated_steps import WITHOUT_EFFECT

pytestmark = MARKS
BLOCK = {"remat": "block"}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Return the arrays of `remat_steps` by name."""
    path = tmp_path_factory.mktemp("remat") / "steps.npz"
    run(PYTHON, str(SUPPORT / "remat_steps.py"), str(path))
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("remat", ["block", "dots"])
@pytest.mark.parametrize("case", CASES)
def test_loss_gradients_and_noise_are_those_of_kept_activations(
    steps: dict[str, np.ndarray], case: str, remat: str
) -> None:
    start = f"{case}/none/".replace(" ", "_")
    names = [name.removeprefix(start) for name in steps if name.startswith(start)]
    assert sum(name.startswith("noise") for name in names) > 5
    for name in names:
        kept, recomputed = steps[start + name], steps[start.replace("none", remat) + name]
        if name.startswith("noise"):
            np.testing.assert_array_equal(recomputed, kept)
        elif not name.endswith(WITHOUT_EFFECT):  # a gradient of rounding
            assert np.linalg.norm(recomputed - kept) <= 1e-6 * np.linalg.norm(kept), name


def test_memory_falls(steps: dict[str, np.ndarray]) -> None:
    kept, dots, block = (float(steps[f"memory/{remat}"]) for remat in ("none", "dots", "block"))
    assert block < dots < 0.5 * kept


def test_a_killed_training_with_recomputed_activations_ends_in_the_same_bytes(
    tmp_path: Path,
) -> None:
    options = {"dropout_rate": 0.1, "micro_batches": 2}
    train(tmp_path, {"whole": options}, places=BLOCK)
    statuses = train(tmp_path, {"killed": options}, places=BLOCK, kill_at=[5])
    assert json.loads(statuses.splitlines()[-1]) == [-9, 0]
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
