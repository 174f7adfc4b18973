"""Runs written by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made_graphs import small_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A checkout with a small run in it."""
    return small_run(tmp_path / "checkout")
