"""Crawl records, corpus rows and documents of the ids are joined."""

from pathlib import Path

import pytest
from made_crawl import CORPUS, EARLY, IDS, LATE, OLD, ONE, TWO, crawl_run
from made_graphs import RESULT, write

from t5repro.audit.pages import CrawlRecord, corpus_rows, find_pages, locate_url
from t5repro.audit.token_documents import TokenDocument
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Folder


def test_every_corpus_row_has_the_record_that_deduplication_kept(graph: Graph, crawl: Path) -> None:
    ((_, rows),) = corpus_rows(graph, crawl, [graph.find(CORPUS)])
    assert [(row.row, row.url, row.timestamp) for row in rows] == [(0, ONE, EARLY), (1, OLD, LATE)]
    raw = {artifact.path: artifact for artifact in graph.jobs["r/data"].outputs}
    assert rows[1].record == CrawlRecord(
        file="data/crawl/1.warc.wet.gz",
        sha256=raw["data/crawl/1.warc.wet.gz"].sha256,
        number=1,
        cleaned=f"{RESULT}/c4_clean/a/1.parquet",
    )
    assert rows[0].to_text() == f"0  {ONE}  record 0 of data/crawl/0.warc.wet.gz"


def test_a_row_that_no_shard_has_is_named_as_such(graph: Graph, crawl: Path) -> None:
    job = graph.jobs["r/c4/a"]
    shards = tuple(item for item in job.inputs if not item.path.endswith("/1.parquet"))
    without = Graph([*(j for j in graph.jobs.values() if j is not job), _with_inputs(job, shards)])
    ((_, rows),) = corpus_rows(without, crawl, [without.find(CORPUS)])
    assert [row.record is None for row in rows] == [False, True]
    assert rows[1].to_text().endswith("no record of the cleaned shards")


def _with_inputs(job, inputs):
    from dataclasses import replace

    return replace(job, inputs=inputs)


def test_only_a_corpus_file_has_rows(graph: Graph, crawl: Path) -> None:
    with pytest.raises(LineageError, match=r"train\.ids is not a corpus file; --pages takes"):
        list(corpus_rows(graph, crawl, [graph.find(IDS)]))


def test_a_url_is_located_in_corpus_and_ids(graph: Graph, crawl: Path) -> None:
    (location,) = locate_url(graph, crawl, OLD)
    assert (location.corpus, location.row) == (CORPUS, 1)
    assert location.documents == (
        TokenDocument(ids=IDS, document=1, split="train", job="r/tokens/a"),
    )
    assert locate_url(graph, crawl, TWO) == []


@pytest.mark.parametrize(
    ("counts", "first", "second"),
    [
        ({"empty_documents": 0}, [0], [1]),
        ({"empty_documents": 1, "empty_rows": [0]}, [], [0]),
        ({"empty_documents": 1, "empty_rows": [1]}, [0], []),
        ({"empty_documents": 1, "empty_rows": [2]}, [0], [1]),
        ({"empty_documents": 1}, [None], [None]),  # of a version that did not record the rows
    ],
)
def test_a_row_without_a_token_is_no_document_and_moves_those_behind_it(
    tmp_path: Path, counts: dict, first: list, second: list
) -> None:
    root = crawl_run(tmp_path, counts=counts)
    graph = load_graph(Folder(root))
    for url, documents in ((ONE, first), (OLD, second)):
        (location,) = locate_url(graph, root, url)
        assert [document.document for document in location.documents] == documents


def test_pages_come_with_the_raw_files_that_contain_them(graph: Graph, crawl: Path) -> None:
    pages, raw_files = find_pages(graph, crawl, lambda url: url in (ONE, OLD))
    assert [(page.file[0], page.record) for page in pages] == [("0", 0), ("1", 0), ("1", 1)]
    assert [artifact.path for artifact in raw_files] == [
        "data/crawl/0.warc.wet.gz",
        "data/crawl/1.warc.wet.gz",
    ]


def test_a_damaged_shard_is_an_error_with_its_cure(graph: Graph, crawl: Path) -> None:
    write(crawl, f"{RESULT}/c4_clean/a/0.parquet", "not parquet")
    with pytest.raises(ArtifactError, match=r"0\.parquet cannot be read .*dvc checkout restores"):
        find_pages(graph, crawl, lambda _: True)
