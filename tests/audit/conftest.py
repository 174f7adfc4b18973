"""Checkouts with a small run written by hand."""

from pathlib import Path

import pytest
from made_crawl import crawl_run
from made_graphs import small_run
from made_text import text_run

from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A checkout with a run whose files are plain text."""
    return small_run(tmp_path / "checkout")


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A checkout with a run on a real crawl of four pages."""
    return crawl_run(tmp_path / "crawl")


@pytest.fixture
def graph(crawl: Path) -> Graph:
    """The lineage of `crawl`."""
    return load_graph(Folder(crawl))


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with twelve pages of text and their ids, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return text_run(tmp_path)
