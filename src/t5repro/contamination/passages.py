"""The passages of a field in documents: the measures that methods decide on.

Measures of two parts of a corpus are merged by maxima, sums and unions, so that the order of the
parts and their number change nothing. Of two equal passages the first place in the corpus is kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Array
from t5repro.contamination.methods import LLAMA_MISMATCHES, LLAMA_SEED, NGRAM_WORDS
from t5repro.contamination.ngrams import Hits, NgramIndex
from t5repro.contamination.texts import Documents


class Place(NamedTuple):
    """Where a passage is.

    Attributes:
        part: number of the part of the corpus.
        document: number of the document in its file.
        unit: first unit of the passage in the document.
        start: first unit of the passage in the field.
    """

    part: int
    document: int
    unit: int
    start: int


NOWHERE = Place(-1, -1, -1, -1)


@dataclass
class FieldPassages:
    """The passages of a field that documents have.

    Attributes:
        longest: units of the longest run in one document.
        place: the first place of the longest run.
        pages: documents with an n-gram of the field.
        whole_pages: documents with the whole field in sequence.
        pages_with_answer: `whole_pages` that have the answer of the row, too.
        page_ngrams: most distinct `NGRAM_WORDS`-grams of the field in one document.
        ngrams: first units of those in any document.
        aligned: most units that one document has at their places.
        covered: ids in runs after Llama 2.
    """

    longest: int = 0
    place: Place = NOWHERE
    pages: int = 0
    whole_pages: int = 0
    pages_with_answer: int = 0
    page_ngrams: int = 0
    ngrams: set[int] = field(default_factory=set)
    aligned: int = 0
    covered: set[int] = field(default_factory=set)

    def merge(self, addend: "FieldPassages") -> None:
        """Add the passages in other documents."""
        if addend.longest > self.longest or (
            addend.longest == self.longest and addend.place < self.place
        ):
            self.longest, self.place = addend.longest, addend.place
        self.pages += addend.pages
        self.whole_pages += addend.whole_pages
        self.pages_with_answer += addend.pages_with_answer
        self.page_ngrams = max(self.page_ngrams, addend.page_ngrams)
        self.ngrams |= addend.ngrams
        self.aligned = max(self.aligned, addend.aligned)
        self.covered |= addend.covered


Passages = dict[int, FieldPassages]  # number of a field -> what documents have of it


def merge(total: Passages, part: Passages) -> None:
    """Add the passages of other documents."""
    for number, passages in part.items():
        total.setdefault(number, FieldPassages()).merge(passages)


class Run(NamedTuple):
    """A run of equal units of a document and a field, maximal on its diagonal."""

    start: int  # in the field
    position: int  # in the batch
    length: int


@dataclass(frozen=True)
class Measuring:
    """Measures the passages of a batch.

    Attributes:
        index: n-grams of the fields.
        answers: number of a field -> units of the answer of its row.
        owners: task of each field, which its own examples are not compared with.
        is_aligned: whether units at their places are counted.
        is_covered: whether runs with mismatches are measured.
    """

    index: NgramIndex
    answers: Mapping[int, Array]
    owners: Sequence[str]
    is_aligned: bool
    is_covered: bool

    def passages_in(self, documents: Documents, part: int, own_task: str = "") -> Passages:
        """Return the passages of the fields in a batch, except of the fields of `own_task`."""
        total: Passages = {}
        for document, number, runs in _runs_by_field(self.index.hits(documents)):
            if own_task and self.owners[number] == own_task:
                continue
            first, end = documents.starts[document : document + 2].tolist()
            page = documents.units[first:end]
            page_key = (part, int(documents.numbers[document]))
            own = [run._replace(position=run.position - first) for run in runs]
            passages = self._of_page(number, page, own, page_key)
            total.setdefault(number, FieldPassages()).merge(passages)
        return total

    def _of_page(
        self, number: int, page: Array, runs: Sequence[Run], page_key: tuple[int, int]
    ) -> FieldPassages:
        low, high = self.index.starts[number : number + 2].tolist()
        units = self.index.units[low:high]
        best = min(runs, key=lambda run: (-run.length, run.position, run.start))
        ngrams = {
            start
            for run in runs
            for start in range(run.start, run.start + run.length - NGRAM_WORDS + 1)
        }
        is_whole = best.length == len(units)
        answer = self.answers.get(number)
        return FieldPassages(
            longest=best.length,
            place=Place(*page_key, best.position, best.start),
            pages=1,
            whole_pages=int(is_whole),
            pages_with_answer=int(is_whole and answer is not None and contains(page, answer)),
            page_ngrams=len(ngrams),
            ngrams=ngrams,
            aligned=_aligned(units, page, runs) if self.is_aligned else 0,
            covered=_covered(units, page, runs) if self.is_covered else set(),
        )


def _runs_by_field(hits_by_length: Iterable[Hits]) -> Iterator[tuple[int, int, list[Run]]]:
    """Yield document, field and runs of every pair with a hit."""
    by_field: dict[tuple[int, int], list[Run]] = {}
    for hits in hits_by_length:
        diagonal = hits.position - hits.start
        order = np.lexsort((hits.position, diagonal, hits.field, hits.document))
        document, position, number, start, length = (values[order] for values in hits)
        diagonal = diagonal[order]
        goes_on = (
            (document[1:] == document[:-1])
            & (number[1:] == number[:-1])
            & (diagonal[1:] == diagonal[:-1])
            & (position[1:] == position[:-1] + 1)
        )
        firsts = np.flatnonzero(np.append(True, ~goes_on)) if len(position) else order
        counts = np.diff(np.append(firsts, len(position)))
        columns = (document, number, start, position)
        entries = zip(*(values[firsts].tolist() for values in columns), strict=True)
        lengths = (length[firsts] + counts - 1).tolist()
        for (page, of_field, in_field, in_page), size in zip(entries, lengths, strict=True):
            by_field.setdefault((page, of_field), []).append(Run(in_field, in_page, size))
    for (page, of_field), runs in sorted(by_field.items()):
        yield page, of_field, runs


def contains(page: Array, units: Array) -> bool:
    """Return whether a document has units in sequence."""
    if not len(units) or len(units) > len(page):
        return False
    starts = np.flatnonzero(page[: len(page) - len(units) + 1] == units[0])
    for offset in range(1, len(units)):
        starts = starts[page[starts + offset] == units[offset]]
    return len(starts) > 0


def _aligned(units: Array, page: Array, runs: Sequence[Run]) -> int:
    """Return the most units that stand at their places, of all places that a run suggests."""
    best = 0
    for diagonal in {run.position - run.start for run in runs}:
        low, high = max(0, -diagonal), min(len(units), len(page) - diagonal)
        matches = units[low:high] == page[low + diagonal : high + diagonal]
        best = max(best, int(matches.sum()))
    return best


def _covered(units: Array, page: Array, runs: Sequence[Run]) -> set[int]:
    """Return the units in runs longer than `LLAMA_SEED` with at most `LLAMA_MISMATCHES`."""
    covered: set[int] = set()
    for run in runs:
        for shift in range(run.length - LLAMA_SEED + 1):
            start, position = run.start + shift, run.position + shift
            size = min(len(units) - start, len(page) - position)
            is_equal = units[start : start + size] == page[position : position + size]
            mismatches = np.cumsum(~is_equal)
            ends = np.flatnonzero(is_equal & (mismatches <= LLAMA_MISMATCHES))
            length = int(ends[-1]) + 1
            if length > LLAMA_SEED:
                covered.update(range(start, start + length))
    return covered
