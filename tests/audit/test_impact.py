"""The dependents of a raw source, here and at earlier revisions."""

import json
from pathlib import Path

import pytest
from clones import commit
from made_crawl import CORPUS, OLD

from t5repro.audit.impact import source_impact
from t5repro.cli.main import main


def test_the_dependents_of_a_url_are_those_of_its_file(crawl: Path) -> None:
    answer = source_impact(crawl, OLD)
    assert next(job.name for job in answer.working_tree.jobs) == "r/c4_clean/a/1"
    assert CORPUS in [item.path for item in answer.working_tree.outputs["corpus"]]
    assert answer.to_json().keys() == {"raw", "here"}
    assert answer.to_text().startswith(f"url {OLD}: in data/crawl/1.warc.wet.gz\n")


def test_revisions_are_listed_on_request(crawl: Path) -> None:
    commit(crawl, "without a lock")
    answer = source_impact(crawl, "crawl/0.warc.wet.gz", all_revisions=True)
    assert (answer.revisions, answer.unread) == ([], [])
    assert answer.to_json().keys() == {"raw", "here", "revisions", "unread"}


def test_an_unknown_source_is_refused_with_the_available_ones(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    assert main(["impact", "crawl/7.wet"]) == 2
    assert "no raw file of this name; there are 4" in capsys.readouterr().err
    monkeypatch.chdir(run.parent)
    assert main(["impact", "crawl/7.wet"]) == 2
    assert "results/ contains no manifest" in capsys.readouterr().err


def test_the_command_prints_json(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run)
    assert main(["impact", "crawl/1.wet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["raw"]["paths"] == ["data/crawl/1.wet"]
