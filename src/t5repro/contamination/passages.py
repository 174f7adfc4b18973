"""What documents have of a field: the measures that methods decide on.

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
    """What the documents have of a field.

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

    def merge(self, other: "FieldPassages") -> None:
        """Add what other documents have."""
        if other.longest > self.longest or (
            other.longest == self.longest and other.place < self.place
        ):
            self.longest, self.place = other.longest, other.place
        self.pages += other.pages
        self.whole_pages += other.whole_pages
        self.pages_with_answer += other.pages_with_answer
        self.page_ngrams = max(self.page_ngrams, other.page_ngrams)
        self.ngrams |= other.ngrams
        self.aligned = max(self.aligned, other.aligned)
        self.covered |= other.covered


Passages = dict[int, FieldPassages]  # number of a field -> what documents have of it


def merge(found: Passages, other: Passages) -> None:
    """Add the passages of other documents."""
    for number, passages in other.items():
        found.setdefault(number, FieldPassages()).merge(passages)


class Run(NamedTuple):
    """A run of equal units of a document and a field, maximal on its diagonal."""

    start: int  # in the field
    place: int  # in the batch
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
        """Return what a batch has of the fields, except of those of `own_task`."""
        found: Passages = {}
        for document, number, runs in _runs_by_field(self.index.hits(documents)):
            if own_task and self.owners[number] == own_task:
                continue
            first, end = documents.starts[document : document + 2].tolist()
            page = documents.units[first:end]
            place = (part, int(documents.numbers[document]))
            own = [run._replace(place=run.place - first) for run in runs]
            passages = self._of_page(number, page, own, place)
            found.setdefault(number, FieldPassages()).merge(passages)
        return found

    def _of_page(
        self, number: int, page: Array, runs: Sequence[Run], place: tuple[int, int]
    ) -> FieldPassages:
        low, high = self.index.starts[number : number + 2].tolist()
        units = self.index.units[low:high]
        best = min(runs, key=lambda run: (-run.length, run.place, run.start))
        ngrams = {
            start
            for run in runs
            for start in range(run.start, run.start + run.length - NGRAM_WORDS + 1)
        }
        is_whole = best.length == len(units)
        answer = self.answers.get(number)
        return FieldPassages(
            longest=best.length,
            place=Place(*place, best.place, best.start),
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
        diagonal = hits.place - hits.start
        order = np.lexsort((hits.place, diagonal, hits.field, hits.document))
        document, place, number, start, length = (values[order] for values in hits)
        diagonal = diagonal[order]
        goes_on = (
            (document[1:] == document[:-1])
            & (number[1:] == number[:-1])
            & (diagonal[1:] == diagonal[:-1])
            & (place[1:] == place[:-1] + 1)
        )
        firsts = np.flatnonzero(np.append(True, ~goes_on)) if len(place) else order
        counts = np.diff(np.append(firsts, len(place)))
        columns = (document, number, start, place)
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
    for diagonal in {run.place - run.start for run in runs}:
        low, high = max(0, -diagonal), min(len(units), len(page) - diagonal)
        matches = units[low:high] == page[low + diagonal : high + diagonal]
        best = max(best, int(matches.sum()))
    return best


def _covered(units: Array, page: Array, runs: Sequence[Run]) -> set[int]:
    """Return the units in runs longer than `LLAMA_SEED` with at most `LLAMA_MISMATCHES`."""
    covered: set[int] = set()
    for run in runs:
        for shift in range(run.length - LLAMA_SEED + 1):
            start, place = run.start + shift, run.place + shift
            size = min(len(units) - start, len(page) - place)
            is_equal = units[start : start + size] == page[place : place + size]
            mismatches = np.cumsum(~is_equal)
            ends = np.flatnonzero(is_equal & (mismatches <= LLAMA_MISMATCHES))
            length = int(ends[-1]) + 1
            if length > LLAMA_SEED:
                covered.update(range(start, start + length))
    return covered
