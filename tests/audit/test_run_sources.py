"""The raw files that a file, a URL or a domain stands for."""

from pathlib import Path

import pytest
from made_crawl import OLD
from made_graphs import manifest, write

from t5repro.audit.run_sources import wanted_source
from t5repro.errors import LineageError
from t5repro.files import sha256_of
from t5repro.runs.search import search
from t5repro.runs.states import states
from t5repro.runs.table import Query
from t5repro.runs.used_by import users_of

SHARD = "data/crawl/1.warc.wet.gz"


def test_a_page_is_the_file_that_has_it(crawl: Path) -> None:
    hashes = (sha256_of(crawl / SHARD),)
    assert wanted_source(crawl, OLD).hashes == hashes
    assert wanted_source(crawl, SHARD).hashes == hashes
    domain = OLD.split("/")[2]
    assert hashes[0] in wanted_source(crawl, domain).hashes
    users = users_of(states(crawl), wanted_source(crawl, OLD))
    assert ("results", "r/c4_clean/a/1") in users
    assert ("results", "r/c4_clean/a/0") not in users


def test_a_damaged_manifest_of_another_run_hides_no_page(crawl: Path) -> None:
    write(crawl, "results/other/data/manifest.json", "{")
    assert wanted_source(crawl, OLD).hashes == (sha256_of(crawl / SHARD),)


def test_an_unknown_page_is_refused(crawl: Path) -> None:
    with pytest.raises(LineageError, match="no page of this url was read"):
        wanted_source(crawl, "http://nobody.example/")


def test_a_task_file_finds_what_was_trained_on_it(run: Path) -> None:
    write(run, "data/other.tsv", "raw of nobody's run")
    manifest(run, "results/r/data_more/manifest.json", rule="x", inputs=["data/other.tsv"])
    (row,) = search(run, Query(), [wanted_source(run, "data/tasks/one.tsv")]).rows
    assert row.job == "r/evaluate_score/a"
    assert row.get("score.one.accuracy") == 50.0
    unused = search(run, Query(), [wanted_source(run, "data/other.tsv")])
    assert (len(unused.rows), unused.total) == (0, 1)
