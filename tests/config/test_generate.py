"""Generated files are in sync, and a drift is named with its cure."""

import json
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


def test_the_editor_schema_accepts_the_short_forms_of_a_run_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    schema = json.loads(generate.generated_files()[Path("configs/schema.json")])
    for entries, forms in (
        (schema["$defs"]["DataSettings"]["properties"]["sources"], ["RawFiles", "IncludedSources"]),
        (schema["properties"]["experiments"], ["Experiment", "ExperimentForEach"]),
    ):
        references = [form["$ref"] for form in entries["items"]["anyOf"]]
        assert references == [f"#/$defs/{name}" for name in forms]
        assert set(forms) <= set(schema["$defs"])
    assert schema["properties"]["include"]["items"] == {"type": "string"}
