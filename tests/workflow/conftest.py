"""Clones for tests that run snakemake and dvc."""

from pathlib import Path

import pytest
from clones import clone, small_run


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A fresh clone in which nothing has run."""
    return clone(tmp_path / "clone")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the whole chain has run in small. Tests must not change it."""
    return small_run(tmp_path_factory.mktemp("finished") / "clone")
