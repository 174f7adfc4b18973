"""Generated files are in sync, and a drift is named with its cure."""

from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config import generate


def test_committed_files_are_what_the_schema_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert generate.drifted() == []


def test_a_drift_names_the_file_and_the_command_that_cures_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(generate, "generated_files", lambda: {Path("docs/settings.md"): "other"})
    (line,) = generate.drifted()
    assert line.startswith("docs/settings.md is out of sync")
    assert "make generate" in line
