"""The commands that list tasks, mixtures and origins."""

from pathlib import Path

import pytest
import yaml
from checkout import ROOT

from t5repro.cli.main import main
from t5repro.config.run_file import task_sources
from t5repro.config.sections.data import DataSettings
from t5repro.errors import SettingsError
from t5repro.task_table import BY_NAME, TASKS


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_file_of_every_task_has_an_origin_and_a_licence() -> None:
    for task in TASKS:
        sources = DataSettings(sources=task_sources([task.name])).sources
        listed = {name for source in sources for name in source.files}
        assert {f"tasks/{name}" for names in task.files.values() for name in names} <= listed
        for source in sources:
            assert source.origin.startswith(("https://", "by hand: https://"))
            assert source.licence


def test_origins_are_printed_as_a_run_file_wants_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "sources", "squad", "glue_qqp"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed == task_sources(["glue_qqp", "squad"])
    assert "tasks/squad/train-v1.1.json" in str(printed)
    with pytest.raises(SettingsError, match="unknown task 'glue_qqqp'; tasks are"):
        task_sources(["glue_qqqp"])


def test_own_tasks_are_listed_after_the_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_file = tmp_path / "run.yaml"
    run_file.write_text(
        "tasks: {own: {mine: {files: {train: [a.tsv]}, prefix: p, fields: [t], target: y,"
        " metrics: [bleu]}}}"
    )
    assert main(["tasks", "list", str(run_file)]) == 0
    assert capsys.readouterr().out.splitlines() == [*BY_NAME, "mine"]
