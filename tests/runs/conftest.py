"""Checkouts with runs written by hand."""

from pathlib import Path

import pytest
from made_runs import scores_of, write_run


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a run of four experiments: scored, with a dot, without a score, unscored."""
    experiments = {
        "base": scores_of(50.0, cb=30.0),
        "t5.1.1": scores_of(75.5, cb=20.0),
        "undefined": scores_of(None, cb=40.0),
        "trained": None,
    }
    return write_run(tmp_path / "checkout", "r", experiments)
