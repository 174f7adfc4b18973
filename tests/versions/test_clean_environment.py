"""A clean environment: what it is refused for, before anything is installed."""

from pathlib import Path

import pytest

from t5repro.errors import LineageError
from t5repro.versions.clean_environment import REQUIREMENTS, CleanEnvironment


def test_a_project_without_the_package_has_no_clean_environment(tmp_path: Path) -> None:
    lock = tmp_path / REQUIREMENTS
    lock.parent.mkdir()
    lock.touch()
    with pytest.raises(LineageError, match="a clean rebuild needs a checkout of the repository"):
        CleanEnvironment().make(tmp_path, tmp_path / "venv")
    assert not (tmp_path / "venv").exists()
