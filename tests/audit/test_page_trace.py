"""A URL is followed from its crawl record to its document, and a corpus file to its records."""

import json
from pathlib import Path

import pytest
from made_crawl import CORPUS, IDS, OLD, TWO

from t5repro.audit.page_trace import trace_url
from t5repro.cli.main import main
from t5repro.lineage.graph import Graph
from t5repro.lineage.store import Folder


def test_a_url_is_followed_to_its_documents(graph: Graph, crawl: Path) -> None:
    answer = trace_url(graph, Folder(crawl), OLD, with_steps=False)
    assert answer.to_text().splitlines()[-2:] == [
        f"row 1 of {CORPUS}, from record 1 of data/crawl/1.warc.wet.gz",
        f"  document 1 of {IDS}",
    ]
    values = json.loads(json.dumps(answer.to_json()))
    assert values["corpus"][0]["documents"][0]["document"] == 1
    assert "steps" not in values


def test_a_dropped_page_is_in_no_corpus(graph: Graph, crawl: Path) -> None:
    answer = trace_url(graph, Folder(crawl), TWO, with_steps=True)
    assert answer.to_text().endswith("(few_sentences)\nno corpus contains it\n")
    assert answer.to_json()["steps"] == []


def test_the_command_prints_the_record_of_every_row(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(crawl)
    assert main(["trace", CORPUS, "--pages"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        f"1  {OLD}  record 1 of data/crawl/1.warc.wet.gz"
    )
    assert main(["trace", CORPUS, "--pages", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["shard"] == CORPUS
    assert [row["record"]["number"] for row in answer["rows"]] == [0, 1]


def test_pages_of_a_revision_need_its_files(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(crawl)
    from clones import commit

    commit(crawl, "state")
    assert main(["trace", OLD, "--rev", "HEAD"]) == 2
    assert "can only be read from a working tree" in capsys.readouterr().err
