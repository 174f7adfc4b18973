"""Runs to attack: one written by hand, and the smallest chain that Snakemake runs."""

import shutil
from pathlib import Path

import pytest
from clones import copy_clone
from made_records import sealed_run


@pytest.fixture(scope="session")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed and committed run; tests attack copies of it."""
    return sealed_run(tmp_path_factory.mktemp("sealed") / "checkout")


@pytest.fixture
def sealed(sealed_once: Path, tmp_path: Path) -> Path:
    """A sealed and committed run."""
    return Path(shutil.copytree(sealed_once, tmp_path / "checkout", symlinks=True))


@pytest.fixture
def chain(chain_once: Path, tmp_path: Path) -> Path:
    """The smallest chain, sealed and committed."""
    return copy_clone(chain_once, tmp_path / "clone")
