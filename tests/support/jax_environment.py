"""Programs in the environment of the second engine, which has no TensorFlow."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT, SUPPORT

ENVIRONMENT = ROOT / ".venv-jax"
TRAINING = str(SUPPORT / "tiny_training.py")
PYTHON = ENVIRONMENT / "bin/python"
# Processes that run one program share what the first compiled; programs and releases are its keys.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache/jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Compiling is most of these tests, and most of it makes programs faster that run for seconds.
UNOPTIMISED = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
}
IF_INSTALLED = [
    pytest.mark.jax,
    pytest.mark.skipif(
        not PYTHON.exists(), reason="JAX is not installed: make .venv-jax/installed"
    ),
]
MARKS = [pytest.mark.parity, *IF_INSTALLED]


def run(python: Path | str, *arguments: str, paths: Sequence[Path] = ()) -> str:
    """Run a program of its own and return what it prints; engines must not see each other."""
    done = subprocess.run(
        [str(python), *arguments],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            **CACHE,
            **UNOPTIMISED,
            "PYTHONPATH": os.pathsep.join(map(str, [*paths, ROOT / "src", SUPPORT])),
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def train(folder: Path, runs: dict[str, Any], **options: Any) -> str:
    """Run tiny trainings on JAX, each in a folder of its own; return what they print."""
    arguments = (str(folder), json.dumps(runs), json.dumps({"engine": "jax", **options}))
    return run(PYTHON, TRAINING, *arguments)


def weights(folder: Path) -> bytes:
    """Return the bytes of the weights of a training."""
    return (folder / "results" / "weights.safetensors").read_bytes()


def history(folder: Path) -> np.ndarray:
    """Return step, loss, rate, tokens and validation loss of each row."""
    return np.genfromtxt(folder / "results" / "history.csv", delimiter=",", skip_header=1)
