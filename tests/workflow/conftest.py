"""Clones for tests that run snakemake and dvc."""

from pathlib import Path

import pytest
from clones import clone


@pytest.fixture(scope="session")
def only_planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which nothing has run, for tests that plan in it and change nothing."""
    return clone(tmp_path_factory.mktemp("planned") / "clone")


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A fresh clone in which nothing has run."""
    return clone(tmp_path / "clone")
