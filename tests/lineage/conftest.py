"""Runs written by hand."""

from pathlib import Path

import pytest
from made_graphs import small_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A checkout with a small run in it."""
    return small_run(tmp_path / "checkout")
