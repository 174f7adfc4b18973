"""Rows of the corpus as documents of the ids, and back."""

from bisect import bisect, bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow.parquet as pq

from t5repro.config.corpus_files import corpus_file
from t5repro.errors import LineageError
from t5repro.lineage.graph import Artifact, Graph, Job

TOKENS = "tokens"
Documents = Mapping[int, Sequence["TokenDocument"]]


@dataclass(frozen=True)
class TokenDocument:
    """A corpus row as a document of the ids.

    Attributes:
        ids: path of the ids file.
        document: number of the document; None if the job did not record its rows without a token.
        split: ``train`` or ``validation``.
        job: job that wrote the ids.
    """

    ids: str
    document: int | None
    split: str
    job: str


def documents_of(graph: Graph, root: Path, shard: Artifact, rows: Sequence[int]) -> Documents:
    """Return row of a corpus file -> its document in every ids file made from the file.

    A row without a token has none there.
    """
    documents: dict[int, list[TokenDocument]] = {row: [] for row in rows}
    for name in graph.consumers.get(shard.key, ()):
        job = graph.jobs[name]
        if job.rule != TOKENS:
            continue
        split = split_of(shard.path)
        rows_before = _rows_before(root, job, split)[shard.path]
        empty_rows = _empty_rows(job, split)
        ids = f"{job.manifest.rsplit('/', 1)[0]}/{split}.ids"
        for row in rows:
            number = rows_before + row
            if empty_rows is None:
                documents[row].append(TokenDocument(ids, None, split, job.name))
            elif (empty_before := bisect_left(empty_rows, number)) == bisect(empty_rows, number):
                document = number - empty_before
                documents[row].append(TokenDocument(ids, document, split, job.name))
    return documents


def rows_of(
    graph: Graph, root: Path, job: Job, documents: Iterable[int]
) -> dict[int, tuple[Artifact, int]]:
    """Return document -> the file of the corpus that it was made from, and its row there.

    The reverse of `documents_of`, for documents of the training split.

    Args:
        graph: lineage of the working tree.
        root: the checkout.
        job: of the rule `tokens`, which wrote the ids.
        documents: indices of documents in its ids.

    Raises:
        LineageError: the job did not record its rows without a token.
    """
    empty_rows = _empty_rows(job, "train")
    if empty_rows is None:
        raise LineageError(
            f"{job.manifest} does not say which texts have no token, so the page of a document is "
            "not known; rerun the rule tokens"
        )
    first_rows = _rows_before(root, job, "train")
    paths, starts = list(first_rows), list(first_rows.values())
    # Each row without a document lies before the documents whose number is at least this.
    gaps = [row - earlier for earlier, row in enumerate(empty_rows)]
    rows = {}
    for document in documents:
        row = document + bisect(gaps, document)
        shard = bisect(starts, row) - 1
        rows[document] = (graph.find(paths[shard]), row - starts[shard])
    return rows


def split_of(path: str) -> str:
    """Return the split of a corpus file.

    Raises:
        LineageError: it has another name.
    """
    file = corpus_file(path)
    if file is None:
        raise LineageError(f"{path} is not named as a corpus file; rerun the rule c4")
    return file.split


def _empty_rows(job: Job, split: str) -> list[int] | None:
    """Return the rows of a split without a token, sorted; None if the job did not record them."""
    counts = job.counters[split]
    rows: list[int] | None = counts.get("empty_rows", None if counts["empty_documents"] else [])
    return rows


def corpus_paths(job: Job, split: str) -> list[str]:
    """Return the files of the corpus that a job of `tokens` reads, in its order.

    It is the order of the languages of its settings, then of the names.
    """
    paths = {_name(file.path): file.path for file in job.inputs}
    return [
        paths[name]
        for language in job.settings["tokens"]["languages"]
        for name in sorted(paths)
        if name.startswith(f"{language}-{split}-")
    ]


def _rows_before(root: Path, job: Job, split: str) -> dict[str, int]:
    """Return file of the corpus -> number of rows of the split before its first, in order."""
    ordered_paths = corpus_paths(job, split)
    rows = (pq.ParquetFile(root / path).metadata.num_rows for path in ordered_paths)
    return dict(zip(ordered_paths, accumulate(rows, initial=0), strict=False))


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
