"""Clones for tests that run snakemake and dvc."""

from pathlib import Path

import pytest
from clones import SMALL, clone, shrink, snakemake


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A fresh clone in which nothing has run."""
    return clone(tmp_path / "clone")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the whole chain has run in small. Tests must not change it."""
    folder = clone(tmp_path_factory.mktemp("finished") / "clone")
    shrink(folder)
    ran = snakemake(folder, config=SMALL)
    assert ran.returncode == 0, ran.stdout[-4000:]
    return folder
