"""Trace a URL forward: crawl record, corpus row, document of the ids, training steps."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.audit.find import RawSource, find_raw_source
from t5repro.audit.pages import CorpusLocation, CorpusRow, corpus_rows, locate_url
from t5repro.audit.steps import JobSteps, steps_that_saw
from t5repro.errors import LineageError
from t5repro.lineage.graph import Graph
from t5repro.lineage.store import Folder, Store

MAX_STEPS_IN_TEXT = 20


@dataclass(frozen=True)
class PageTrace:
    """A URL and everything that contains it.

    Attributes:
        source: the URL and its crawl records.
        locations: its corpus rows and documents.
        steps: training steps that saw it, by pre-training job; None if not requested.
    """

    source: RawSource
    locations: list[CorpusLocation]
    steps: list[JobSteps] | None

    def to_json(self) -> dict[str, Any]:
        """Return the trace as plain JSON values."""
        answer: dict[str, Any] = {
            "raw": self.source.to_json(),
            "corpus": [asdict(location) for location in self.locations],
        }
        if self.steps is not None:
            answer["steps"] = [asdict(job) for job in self.steps]
        return answer

    def to_text(self) -> str:
        """Return the trace as human-readable text."""
        lines = [location.to_text() for location in self.locations] or ["no corpus contains it"]
        for job in self.steps or ():
            numbers = ", ".join(map(str, job.steps[:MAX_STEPS_IN_TEXT]))
            lines.append(f"{job.job} saw it in {len(job.steps)} steps: {numbers}")
        return self.source.to_text() + "\n".join(lines) + "\n"


def trace_url(graph: Graph, store: Store, url: str, *, with_steps: bool) -> PageTrace:
    """Trace a URL.

    Args:
        graph: lineage of the working tree.
        store: the working tree.
        url: address of the page, compared exactly.
        with_steps: whether to look for training steps.

    Raises:
        LineageError: the crawl has no page of this URL, or the store is a revision.
    """
    root = checkout_of(store)
    source = find_raw_source(graph, root, url)
    locations = locate_url(graph, root, url)
    documents = [document for location in locations for document in location.documents]
    steps = steps_that_saw(graph, root, documents) if with_steps else None
    return PageTrace(source, locations, steps)


@dataclass(frozen=True)
class ShardPages:
    """The rows of a corpus file with their crawl records."""

    shard: str
    rows: list[CorpusRow]

    @property
    def is_complete(self) -> bool:
        """Whether every row has a crawl record."""
        return all(row.record for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the rows as plain JSON values."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the rows as text, one line each."""
        return "".join(f"{row.to_text()}\n" for row in self.rows)


def pages_of_shard(graph: Graph, store: Store, name: str) -> ShardPages:
    """Return the rows of a corpus file, named by path, end of a path or hash.

    Raises:
        LineageError: the artifact does not exist or is not a corpus file, or the store is a
            revision.
    """
    ((shard, rows),) = corpus_rows(graph, checkout_of(store), [graph.find(name.partition("#")[0])])
    return ShardPages(shard.path, rows)


def checkout_of(store: Store) -> Path:
    """Return the folder of a working tree; of a revision there are only objects, not files."""
    if isinstance(store, Folder):
        return store.root
    raise LineageError(
        "pages can only be read from a working tree; run git checkout and dvc checkout for the "
        "revision, then ask without --rev"
    )
