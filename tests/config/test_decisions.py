"""The register of decisions: front matter in, table and report data out."""

import json
from pathlib import Path

import pytest
from checkout import ROOT

from t5repro.config.decisions import REPORT_DATA, TABLE, decision_files, read_decisions
from t5repro.errors import SettingsError

FRONT_MATTER = """---
topic: sentences per page
paper: 3
code: 3, counted twice
ours: code
settings:
  - c4.clean.min_sentences
effect: unknown
---

# D-001 A page needs three sentences
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "D-001-sentences.md").write_text(FRONT_MATTER.replace("paper: 3", "paper: '3'"))
    return tmp_path


def test_a_decision_is_read_from_its_front_matter(folder: Path) -> None:
    (decision,) = read_decisions(folder).values()
    assert decision.settings == ("c4.clean.min_sentences",)
    assert decision.switch_text == "`c4.clean.min_sentences`"
    assert decision.model_copy(update={"settings": ()}).switch_text == "none"
    assert decision.model_copy(update={"switch": "none yet"}).switch_text == "none yet"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("# D-001", "# D-002", r"title '# D-001 …'; numbers are consecutive"),
        ("---\ntopic", "topic", "must begin with front matter"),
        ("topic:", "topics:", r"(?s)front matter.*topics.*Extra inputs"),
        ("min_sentences", "min_sentence", r"unknown settings \['c4.clean.min_sentence'\]"),
        ("ours: code", "ours: [", "front matter: while parsing"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(
    folder: Path, before: str, after: str, message: str
) -> None:
    path = folder / "D-001-sentences.md"
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(SettingsError, match=message) as error:
        read_decisions(folder)
    assert str(error.value).startswith(str(path))


def test_numbers_are_consecutive(folder: Path) -> None:
    (folder / "D-001-sentences.md").rename(folder / "D-003-sentences.md")
    with pytest.raises(SettingsError, match="must begin with"):
        read_decisions(folder)


def test_table_and_report_data_have_every_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    numbers = [path.name[:5] for path in read_decisions()]
    files = decision_files()
    rows = [line[3:8] for line in files[TABLE].splitlines() if line.startswith("| [D-")]
    assert rows == numbers
    assert [item["number"] for item in json.loads(files[REPORT_DATA])] == numbers
