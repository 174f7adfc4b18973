"""A raw source is found by path, URL or domain."""

import dataclasses
from pathlib import Path

import pytest
from made_crawl import EARLY, OLD, ONE, TWO

from t5repro.audit.find import find_raw_source, raw_files, source_kind
from t5repro.config.withdrawn import PAGES
from t5repro.errors import LineageError
from t5repro.lineage.graph import DATA, Graph


@pytest.mark.parametrize(
    ("name", "kind"),
    [(ONE, "url"), ("a.example", "domain"), ("data/crawl/0.wet", "file"), ("train", "file")],
)
def test_the_kind_of_a_source_follows_from_its_name(name: str, kind: str) -> None:
    assert source_kind(name) == kind


@pytest.mark.parametrize(
    "name", ["data/crawl/0.warc.wet.gz", "crawl/0.warc.wet.gz", "0.warc.wet.gz"]
)
def test_a_file_is_found_by_its_path_or_the_end_of_it(graph: Graph, crawl: Path, name: str) -> None:
    source = find_raw_source(graph, crawl, name)
    assert (source.kind, source.paths) == ("file", ("data/crawl/0.warc.wet.gz",))
    assert source.to_text() == "file data/crawl/0.warc.wet.gz: in data/crawl/0.warc.wet.gz\n"


def test_a_manifest_is_not_a_raw_file(graph: Graph) -> None:
    assert [artifact.path for artifact in raw_files(graph)] == [
        "data/crawl/0.warc.wet.gz",
        "data/crawl/1.warc.wet.gz",
    ]


def test_a_url_is_found_with_its_records_and_their_outcome(graph: Graph, crawl: Path) -> None:
    source = find_raw_source(graph, crawl, TWO)
    assert source.to_json()["pages"] == [
        {
            "file": "0.warc.wet.gz",
            "record": 1,
            "url": TWO,
            "timestamp": EARLY,
            "fate": "few_sentences",
        }
    ]
    assert source.to_text() == (
        f"url {TWO}: in data/crawl/0.warc.wet.gz\n  0.warc.wet.gz record 1: {TWO} (few_sentences)\n"
    )


def test_a_domain_is_found_with_all_its_pages(graph: Graph, crawl: Path) -> None:
    source = find_raw_source(graph, crawl, "b.example")
    assert [(page.url, page.record, page.outcome) for page in source.pages] == [
        (OLD, 0, "kept by cleaning"),
        (OLD, 1, "kept by cleaning"),
    ]
    assert source.paths == ("data/crawl/1.warc.wet.gz",)


def test_an_unknown_source_is_refused_and_the_error_says_how_to_name_one(
    graph: Graph, crawl: Path
) -> None:
    with pytest.raises(LineageError, match=r"no raw file of this name; there are 2, such as data"):
        find_raw_source(graph, crawl, "crawl/7.wet")
    with pytest.raises(LineageError, match=r"no page of this domain was read .* write a domain"):
        find_raw_source(graph, crawl, "example.org")
    with pytest.raises(LineageError, match=r"no page of this url was read .* row://FILE#NUMBER"):
        find_raw_source(graph, crawl, f"{ONE}/")
    (crawl / PAGES).parent.mkdir()
    (crawl / PAGES).write_text("domains: {gone.example: asked by its author}", encoding="utf-8")
    for name in ("gone.example", "http://www.gone.example/a"):
        with pytest.raises(LineageError, match=r"pages.yaml withdraws it: asked by its author"):
            find_raw_source(graph, crawl, name)
    without_raw_files = Graph([job for job in graph.jobs.values() if job.rule != DATA])
    with pytest.raises(LineageError, match="results/ names none"):
        find_raw_source(without_raw_files, crawl, "crawl/7.wet")


@pytest.mark.parametrize("name", ["www.example.org", "https://www.example.org/", "a/1.wet"])
def test_in_a_folder_without_a_run_no_source_counts_as_unread(tmp_path: Path, name: str) -> None:
    message = "^results/ contains no manifest; .* go to the folder of a run$"
    with pytest.raises(LineageError, match=message):
        find_raw_source(Graph([]), tmp_path, name)
    with pytest.raises(LineageError, match=message):
        Graph([]).find(name)


def test_a_page_that_several_runs_have_cleaned_is_printed_once(graph: Graph, crawl: Path) -> None:
    source = find_raw_source(graph, crawl, ONE)
    twice = dataclasses.replace(source, pages=source.pages * 2)
    assert twice.to_text() == source.to_text()
    assert len(twice.to_json()["pages"]) == 2
