"""Programs in the environment of the second engine, which has no TensorFlow."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from checkout import ROOT, SUPPORT

ENVIRONMENT = ROOT / ".venv-jax"
PYTHON = ENVIRONMENT / "bin/python"
MARKS = [
    pytest.mark.parity,
    pytest.mark.skipif(not PYTHON.exists(), reason="JAX is not installed: make parity"),
]


def run(python: Path | str, *arguments: str, paths: Sequence[Path] = ()) -> str:
    """Run a program of its own and return what it prints; engines must not see each other."""
    done = subprocess.run(
        [str(python), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*paths, SUPPORT]))},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
