"""The pages behind a score: how many, of which domains, read in which steps."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_crawl import CORPUS, EARLY, IDS, LATE, NO_EMPTY_TEXTS, OLD, ONE, trained_and_scored
from made_graphs import RESULT, manifest

from t5repro.audit.score_pages import score_pages
from t5repro.audit.steps import steps_that_saw
from t5repro.audit.token_documents import TokenDocument
from t5repro.cli.main import main
from t5repro.config.hosts import domain_of
from t5repro.config.schema import Settings
from t5repro.errors import LineageError
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder

SCORES = f"{RESULT}/evaluate_score/a/scores.json"
STEPS = 3


def scored(root: Path, *, counts: dict[str, Any] = NO_EMPTY_TEXTS) -> Path:
    """Write a pre-training of three steps on the crawl's ids, and a score made from it."""
    tokens = 40
    np.arange(2 * tokens).astype("<u2").tofile(root / IDS)
    np.array([0, tokens, 2 * tokens]).astype("<i8").tofile(root / IDS.replace(".ids", ".offsets"))
    manifest(
        root,
        f"{RESULT}/tokens/a/manifest.json",
        rule="tokens",
        inputs=[CORPUS],
        outputs=[IDS],
        settings={"tokens": {"languages": ["en"]}},
        counters={"train": counts},
    )
    settings = Settings.model_validate(
        {"pretrain": {"steps": STEPS, "batch_size": 1, "inputs_length": 16, "targets_length": 16}}
    )
    trained_and_scored(root, IDS, settings, ["glue_sst2", "squad"])
    return root


@pytest.mark.parametrize("name", [SCORES, f"{SCORES}#glue_sst2"])
def test_pages_of_a_score_are_counted_by_domain_and_training(crawl: Path, name: str) -> None:
    store = Folder(scored(crawl))
    graph = load_graph(store)
    pages = score_pages(graph, store, name)
    documents = [TokenDocument(IDS, number, "train", "r/tokens/a") for number in (0, 1)]
    expected = [job.steps for job in steps_that_saw(graph, crawl, documents)]
    assert [page.steps for page in pages.pages] == [{"r/pretrain/a": steps} for steps in expected]
    assert {step for steps in expected for step in steps} == {0, 1, 2}
    read = sum(map(bool, expected))
    assert pages.to_text().splitlines()[:3] == [
        f"{name}: 2 pages of 2 domains",
        f"        2  {CORPUS}",
        f"r/pretrain/a read {read} of them in 3 steps",
    ]
    assert pages.to_text().endswith(
        "        1  a.example\n        1  b.example\n--csv FILE lists every page with its steps\n"
    )
    values = json.loads(json.dumps(pages.to_json()))
    assert values["domains"] == {"a.example": 1, "b.example": 1}
    assert values["trainings"] == {"r/pretrain/a": 3}


def test_the_csv_has_a_page_in_each_line_and_the_steps_of_each_training(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(scored(crawl))
    assert main(["pages", SCORES, "--csv", "out/pages.csv"]) == 0
    assert "2 pages of 2 domains" in capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(Path("out/pages.csv").read_text())))
    assert [(row["url"], row["timestamp"]) for row in rows] == [(ONE, EARLY), (OLD, LATE)]
    assert [(row["crawl_file"], row["record"]) for row in rows] == [
        ("data/crawl/0.warc.wet.gz", "0"),
        ("data/crawl/1.warc.wet.gz", "1"),
    ]
    steps = [set(row["steps of r/pretrain/a"].split()) for row in rows]
    assert set.union(*steps) == {"0", "1", "2"}


def test_steps_are_unknown_if_nothing_says_which_texts_the_ids_leave_out(crawl: Path) -> None:
    store = Folder(scored(crawl, counts={"empty_documents": 1}))
    pages = score_pages(load_graph(store), store, SCORES)
    assert [page.steps for page in pages.pages] == [{"r/pretrain/a": None}] * 2
    assert (
        "steps of 2 pages are unknown: the ids do not say which texts are empty" in pages.to_text()
    )


def test_an_artifact_without_a_corpus_has_no_pages(crawl: Path) -> None:
    store = Folder(crawl)
    with pytest.raises(LineageError, match=r"0\.warc\.wet\.gz: no corpus is behind it"):
        score_pages(load_graph(store), store, "data/crawl/0.warc.wet.gz")


def test_pages_of_trace_is_for_corpus_files_and_names_the_command_for_scores(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(scored(crawl))
    assert main(["trace", f"{SCORES}#squad", "--pages"]) == 2
    assert f"t5repro pages {SCORES} lists the pages behind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://user@www.a.example:80/x#y", "www.a.example"),
        ("http://A.example./", "a.example"),
        ("row://folder/passages.jsonl#3", "row://folder/passages.jsonl"),
        ("no url", "no url"),
        ("http://[::1/x", "["),
        ("http://[hill.example]/a", "[hill.example]"),
        ("http://Bücher.example/", "xn--bcher-kva.example"),
    ],
)
def test_a_page_counts_for_its_host_and_own_text_for_its_file(url: str, domain: str) -> None:
    assert domain_of(url) == domain
