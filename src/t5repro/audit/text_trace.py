"""Trace a text to the pages that have its longest passages, and on to steps and scores.

A passage is a longest sequence of ids that the text and a document of the corpus have in common,
from the beginning of a word to the end of one. That a page has a passage does not prove that a
model has it from there.

Source: OLMoTrace (Liu et al. 2025), for the longest match from each word, passages ordered by the
probability of their ids, and ten pages a passage. A passage may contain the end of a sentence,
which theirs may not, so that a copied answer is one passage.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.array_types import Int64, Mask
from t5repro.audit.page_trace import MAX_STEPS_IN_TEXT, checkout_of
from t5repro.audit.pages import CorpusRow, corpus_rows
from t5repro.audit.steps import steps_that_saw
from t5repro.audit.text_index import TextIndex, open_index
from t5repro.audit.token_documents import TOKENS, TokenDocument, rows_of
from t5repro.errors import LineageError
from t5repro.lineage.graph import Graph, Job
from t5repro.lineage.store import Store
from t5repro.lineage.trace import trace

FEWEST_WORDS = 5  # shorter passages are common language
MAX_PASSAGES = 10
MAX_PAGES = 10  # of a passage
NO_PROOF = "that a page has a passage does not prove that the model has it from there"


@dataclass(frozen=True)
class Passage:
    """A passage of the text.

    Attributes:
        text: as the vocabulary writes it.
        words: number of its words.
        count: how often the corpus has it.
        pages: numbers of pages in `CorpusTrace.pages`, at most `MAX_PAGES`.
    """

    text: str
    words: int
    count: int
    pages: tuple[int, ...]


@dataclass(frozen=True)
class PassagePage:
    """A page that has a passage.

    Attributes:
        corpus: file of the corpus.
        row: its row there, with its crawl record.
        document: number of its document in the ids.
        steps: pre-training job -> the steps that read a part of it.
    """

    corpus: str
    row: CorpusRow
    document: int
    steps: dict[str, list[int]]

    def to_text(self) -> str:
        """Return the page as human-readable text."""
        lines = [self.row.to_text()]
        for job, steps in self.steps.items():
            numbers = ", ".join(map(str, steps[:MAX_STEPS_IN_TEXT]))
            more = ", …" if len(steps) > MAX_STEPS_IN_TEXT else ""
            lines.append(f"      {job} saw it in {len(steps)} steps: {numbers}{more}")
        return "\n".join(lines)


@dataclass(frozen=True)
class CorpusTrace:
    """The passages of the text in a corpus.

    Attributes:
        ids: file of its ids.
        passages: most improbable first; if no passage has `FEWEST_WORDS`, the longest, without
            pages.
        pages: of the passages, in the order of the corpus.
        scores: pre-training job that read a page -> the scores that depend on it.
    """

    ids: str
    passages: list[Passage]
    pages: list[PassagePage]
    scores: dict[str, list[str]]

    def to_lines(self) -> list[str]:
        """Return the passages and their pages as lines of text."""
        if not self.passages:
            return [f"{self.ids} has no word of it"]
        lines = [f"{self.ids} has of it:"]
        for passage in self.passages[:MAX_PASSAGES]:
            times = "once" if passage.count == 1 else f"{passage.count:,} times"
            lines.append(f"  {passage.words} words, {times}: {passage.text}")
            lines += [f"    {self.pages[number].to_text()}" for number in passage.pages]
            if passage.pages and passage.count > MAX_PAGES:
                lines.append(f"    and {passage.count - MAX_PAGES:,} more places")
        if len(self.passages) > MAX_PASSAGES:
            lines.append(f"  and {len(self.passages) - MAX_PASSAGES} more passages (--json)")
        if not self.pages:
            lines.append(
                f"  passages under {FEWEST_WORDS} words are common language: their pages are not "
                "named"
            )
        for job, scores in self.scores.items():
            lines.append(f"  scores that depend on {job}: {', '.join(scores) or 'none'}")
        return lines


@dataclass(frozen=True)
class TextTrace:
    """A text and its passages in each corpus."""

    text: str
    corpora: list[CorpusTrace]

    def to_json(self) -> dict[str, Any]:
        """Return the trace as plain JSON values."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the trace as human-readable text."""
        lines = [line for corpus in self.corpora for line in corpus.to_lines()]
        if any(corpus.pages for corpus in self.corpora):
            lines += [NO_PROOF, "t5repro withdraw URL --reason TEXT removes a page"]
        return "\n".join(lines) + "\n"


def trace_text(graph: Graph, store: Store, text: str, artifact: str | None = None) -> TextTrace:
    """Find a text in the corpora.

    Args:
        graph: lineage of the working tree.
        store: the working tree.
        text: any string: an answer, a row, a suspicion.
        artifact: a score or another file, to search only the corpora behind it; as
            `lineage.trace.trace` takes it.

    Raises:
        LineageError: the text has no word, there is no corpus, the artifact is unknown, or the
            store is a revision.
    """
    root = checkout_of(store)
    jobs = graph.ordered() if artifact is None else trace(graph, store, artifact).jobs
    corpora = [job for job in jobs if job.rule == TOKENS]
    if not corpora:
        raise LineageError(
            f"no ids of a corpus are behind {artifact or 'results/'}: run up to the rule tokens"
        )
    return TextTrace(text, [_trace_corpus(graph, root, job, text) for job in corpora])


def _trace_corpus(graph: Graph, root: Path, job: Job, text: str) -> CorpusTrace:
    index = open_index(root, job)
    ids = np.array(index.vocabulary.encode(text), np.int64)
    if not len(ids):
        raise LineageError(f"{text!r} has no word: write the text to be found")
    sequences = [ids[start:end] for start, end in _passages(index, ids)]
    texts = [index.vocabulary.decode(sequence.tolist()) for sequence in sequences]
    word_counts = [len(passage.split()) for passage in texts]
    order = sorted(range(len(texts)), key=lambda number: _log_probability(index, sequences[number]))
    with_pages = [number for number in order if word_counts[number] >= FEWEST_WORDS]
    numbers = with_pages or sorted(order, key=lambda number: -word_counts[number])[:1]
    matches = {number: index.array.find(sequences[number], most=MAX_PAGES) for number in numbers}
    documents = {
        number: index.array.corpus.documents_at(matches[number].positions)
        for number in with_pages[:MAX_PASSAGES]
    }
    pages = pages_of(graph, root, job, {document for of in documents.values() for document in of})
    page_numbers = {page.document: page_number for page_number, page in enumerate(pages)}
    passages = [
        Passage(
            texts[number],
            word_counts[number],
            matches[number].count,
            tuple(page_numbers[document] for document in documents.get(number, ())),
        )
        for number in numbers
    ]
    return CorpusTrace(ids_of(job), passages, pages, _scores(graph, pages))


def ids_of(job: Job) -> str:
    """Return the file with the training ids of a job."""
    return next(file.path for file in job.outputs if file.path.endswith("train.ids"))


def _passages(index: TextIndex, ids: Int64) -> list[tuple[int, int]]:
    """Return first id and end of the longest passages, none inside of another."""
    is_start = index.array.corpus.word_starts[ids]
    starts = np.flatnonzero(is_start)
    lengths = index.array.longest_matches(ids, starts)
    bounds: list[tuple[int, int]] = []
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        end = end_of_word(is_start, start + length)
        if end > max(start, bounds[-1][1] if bounds else 0):
            bounds.append((start, end))
    return bounds


def end_of_word(is_border: Mask, end: int) -> int:
    """Return the last end of a word up to a position: where a word begins, or the text ends."""
    while end < len(is_border) and not is_border[end]:
        end -= 1
    return end


def _log_probability(index: TextIndex, ids: Int64) -> float:
    """Return the logarithm of the probability of a sequence of independent ids."""
    return float(np.log(index.counts[ids] / index.counts.sum()).sum())


def pages_of(graph: Graph, root: Path, job: Job, documents: Iterable[int]) -> list[PassagePage]:
    """Return the pages of documents of the ids of a job, in the order of the corpus."""
    numbers = sorted(documents)
    rows = rows_of(graph, root, job, numbers)
    shards = {shard.path: shard for shard, _ in rows.values()}
    with_records = {
        shard.path: of_shard for shard, of_shard in corpus_rows(graph, root, shards.values())
    }
    steps = _steps(graph, root, job, numbers)
    return [
        PassagePage(shard.path, with_records[shard.path][row], number, steps[number])
        for number in numbers
        for shard, row in [rows[number]]
    ]


def _steps(
    graph: Graph, root: Path, job: Job, numbers: Sequence[int]
) -> dict[int, dict[str, list[int]]]:
    """Return document -> pre-training job -> the steps that saw it."""
    steps: dict[int, dict[str, list[int]]] = defaultdict(dict)
    documents = [TokenDocument(ids_of(job), number, "train", job.name) for number in numbers]
    for exposure in steps_that_saw(graph, root, documents):
        if exposure.steps:
            steps[exposure.document][exposure.job] = exposure.steps
    return steps


def _scores(graph: Graph, pages: Iterable[PassagePage]) -> dict[str, list[str]]:
    """Return pre-training job -> the files of scores that depend on it."""
    jobs = sorted({job for page in pages for job in page.steps})
    return {
        name: [
            output.path
            for job in graph.after(graph.jobs[name].outputs)
            for output in job.outputs
            if output.path.endswith("/scores.json")
        ]
        for name in jobs
    }
