"""Suffix arrays of ids: where a sequence of ids occurs in a corpus, without reading the corpus.

A suffix array has the positions of a text, sorted by the text behind them, so all occurrences of a
sequence are neighbours and two binary searches find them. Only positions at which a word begins are
in it. The ids are divided into segments of whole documents, each with two files:
``<n>.positions`` has its positions in order, relative to its first id, and ``<n>.keys`` the first
`KEY_IDS` ids behind every `STRIDE`-th of them, which narrows a search down without a read of ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from t5repro.array_types import Array, Int64, Mask
from t5repro.errors import LineageError
from t5repro.progress import Progress

SEGMENT_BYTES = 1 << 27  # of ids; sorting takes fifteen times as much memory
KEY_IDS = 8
STRIDE = 256
BLOCK = 64  # ids that one round of a comparison reads
STARTS_AT_ONCE = 1 << 14  # a comparison of so many takes some megabytes
SEPARATOR = 0  # between documents; it is PAD, which no text contains
END = -1  # behind the last id of a text that is asked for: less than every id
AFTER_END = 1 << 32  # in its place, for what begins like the question: more than every id


@dataclass(frozen=True)
class Corpus:
    """The ids of a corpus.

    Attributes:
        ids: documents one after another, ``(ids,)``.
        offsets: start of each document and end of the last, ``(documents + 1,)``.
        word_starts: whether an id begins a word, ``(vocabulary,)``.
    """

    ids: Array
    offsets: Int64
    word_starts: Mask

    def segments(self) -> Iterator[tuple[int, int]]:
        """Yield the first document of each segment and the one after its last."""
        longest = SEGMENT_BYTES // self.ids.dtype.itemsize
        first, count = 0, len(self.offsets) - 1
        while first < count:
            end = int(np.searchsorted(self.offsets, self.offsets[first] + longest, "right")) - 1
            yield first, max(end, first + 1)
            first = max(end, first + 1)

    def documents_at(self, positions: Int64) -> list[int]:
        """Return the documents that some positions are in, each once, in the order of these."""
        documents = np.searchsorted(self.offsets, positions, "right") - 1
        return list(dict.fromkeys(documents.tolist()))

    def after(self, positions: Int64, skipped: int) -> Int64:
        """Return the `BLOCK` ids behind each position, after those skipped.

        Ids of the next document are `SEPARATOR`.

        Returns:
            ``(positions, BLOCK)``.
        """
        indices = positions[:, None] + np.arange(skipped, skipped + BLOCK)
        ends = self.offsets[np.searchsorted(self.offsets, positions, "right")]
        ids = self.ids[np.minimum(indices, len(self.ids) - 1)].astype(np.int64)
        return np.where(indices < ends[:, None], ids, SEPARATOR)


@dataclass(frozen=True)
class Segment:
    """The suffix array of some documents.

    Attributes:
        first_id: position of its first id in the corpus.
        positions: relative to that, sorted by the ids that follow, ``(words,)``.
        keys: the ids behind every `STRIDE`-th of them as bytes, most significant first.
    """

    first_id: int
    positions: Array
    keys: Array

    @classmethod
    def open(cls, folder: Path, number: int, first_id: int, id_bytes: int) -> Self:
        """Map the files of a segment into memory."""
        positions_file, keys_file = files_of(folder, number)
        keys = np.fromfile(keys_file, f"S{KEY_IDS * id_bytes}")
        if not len(keys):  # no word begins in its documents, and an empty file cannot be mapped
            return cls(first_id, np.zeros(0, "<u4"), keys)
        return cls(first_id, np.memmap(positions_file, "<u4", mode="r"), keys)


def files_of(folder: Path, number: int) -> tuple[Path, Path]:
    """Return the paths of the positions and of the keys of a segment."""
    return folder / f"{number}.positions", folder / f"{number}.keys"


def build(corpus: Corpus, folder: Path) -> list[int]:
    """Write the suffix array of a corpus into an empty folder.

    Returns:
        The position of the first id of each segment.

    Raises:
        LineageError: the package that sorts is not installed.
    """
    starts = []
    with Progress("index of the text", total=len(corpus.ids), unit="ids") as progress:
        for number, (first, end) in enumerate(corpus.segments()):
            starts.append(int(corpus.offsets[first]))
            positions = _sorted_positions(corpus, first, end)
            positions_file, keys_file = files_of(folder, number)
            positions.astype("<u4").tofile(positions_file)
            _keys(corpus, positions[::STRIDE] + starts[-1]).tofile(keys_file)
            progress.advance(int(corpus.offsets[end]) - starts[-1])
    return starts


def _sorted_positions(corpus: Corpus, first: int, end: int) -> Int64:
    """Return the positions of the words of some documents, sorted by the ids that follow."""
    try:
        from pydivsufsort import divsufsort
    except ImportError as error:
        raise LineageError(
            "an index of the text needs the package pydivsufsort: pip install 't5repro[trace]'"
        ) from error
    offsets = corpus.offsets[first : end + 1] - corpus.offsets[first]
    ids = np.asarray(corpus.ids[corpus.offsets[first] : corpus.offsets[end]])
    # Big-endian bytes sort like the ids; a separator keeps a sequence inside its document.
    separated = np.insert(ids, offsets[1:], SEPARATOR).astype(ids.dtype.newbyteorder(">"))
    order = divsufsort(separated.view(np.uint8))
    order = order[order % ids.itemsize == 0] // ids.itemsize
    order = order[separated[order] != SEPARATOR]
    order = order[corpus.word_starts[separated[order]]].astype(np.int64)
    # Document n begins n separators later than in the file.
    starts = offsets + np.arange(len(offsets))
    return np.asarray(order - (np.searchsorted(starts, order, "right") - 1), np.int64)


def _keys(corpus: Corpus, positions: Int64) -> Array:
    return _as_key(corpus.after(positions, 0)[:, :KEY_IDS], corpus.ids.dtype)


def _as_key(ids: Int64, dtype: np.dtype[Any]) -> Array:
    key_bytes = np.ascontiguousarray(ids.astype(dtype.newbyteorder(">")))
    return key_bytes.view(f"S{KEY_IDS * dtype.itemsize}")[:, 0]


@dataclass(frozen=True)
class Matches:
    """The occurrences of a sequence of ids.

    Attributes:
        count: their number.
        positions: the first of them in the corpus, ascending.
    """

    count: int
    positions: Int64


class SuffixArray:
    """The suffix array of a corpus.

    Args:
        corpus: whose ids are compared.
        segments: of its documents.
    """

    def __init__(self, corpus: Corpus, segments: list[Segment]) -> None:
        self.corpus = corpus
        self._segments = segments

    def longest_matches(self, text: Int64, starts: Int64) -> Int64:
        """Return the number of ids from each start that occur somewhere in one document.

        Args:
            text: ids, ``(n,)``; after `END`, another text begins.
            starts: positions in it at which words begin, ``(starts,)``.
        """
        batches = range(0, len(starts), STARTS_AT_ONCE)
        lengths = [self._longest(text, starts[first : first + STARTS_AT_ONCE]) for first in batches]
        return np.concatenate([np.zeros(0, np.int64), *lengths])

    def _longest(self, text: Int64, starts: Int64) -> Int64:
        longest = np.zeros(len(starts), np.int64)
        for segment in self._segments:
            if not len(segment.positions):
                continue
            insertions = self._insertion(segment, text, starts, END)
            # What has most in common with a sequence is its neighbour in the order.
            for neighbour in (insertions - 1, np.minimum(insertions, len(segment.positions) - 1)):
                positions = segment.first_id + segment.positions[np.maximum(neighbour, 0)]
                _, common = self._compare(positions.astype(np.int64), text, starts, END)
                longest = np.maximum(longest, common)
        return longest

    def find(self, sequence: Int64, *, most: int) -> Matches:
        """Return the occurrences of a sequence that begins at a word.

        Args:
            sequence: ids, ``(n,)``.
            most: number of positions to return.
        """
        count, positions = 0, np.zeros(0, np.int64)
        for segment in self._segments:
            start = np.zeros(1, np.int64)
            low = int(self._insertion(segment, sequence, start, END)[0])
            high = int(self._insertion(segment, sequence, start, AFTER_END)[0])
            count += high - low
            segment_positions = np.asarray(segment.positions[low:high], np.int64)
            if len(segment_positions) > most:
                segment_positions = np.partition(segment_positions, most - 1)[:most]
            positions = np.concatenate([positions, np.sort(segment_positions) + segment.first_id])
        return Matches(count, positions[:most])  # segments are in the order of the corpus

    def _insertion(self, segment: Segment, text: Int64, starts: Int64, end: int) -> Int64:
        """Return how many positions of a segment come before each sequence."""
        below, above = self._insertion_bounds(segment, text, starts, end)
        while len(open_ := np.flatnonzero(below < above)):
            middle = (below[open_] + above[open_]) // 2
            positions = segment.first_id + segment.positions[middle].astype(np.int64)
            order, _ = self._compare(positions, text, starts[open_], end)
            below[open_] = np.where(order < 0, middle + 1, below[open_])
            above[open_] = np.where(order < 0, above[open_], middle)
        return below

    def _insertion_bounds(
        self, segment: Segment, text: Int64, starts: Int64, end: int
    ) -> tuple[Int64, Int64]:
        """Return bounds of the insertion, from the keys."""
        dtype = self.corpus.ids.dtype
        padded = np.concatenate([text, np.full(KEY_IDS, END, np.int64)])
        ids = padded[starts[:, None] + np.arange(KEY_IDS)]
        is_after_end = np.maximum.accumulate(ids == END, axis=1)
        padding = SEPARATOR if end == END else np.iinfo(dtype).max
        keys = _as_key(np.where(is_after_end, padding, ids), dtype)
        lower = np.searchsorted(segment.keys, keys, "left")
        upper = np.searchsorted(segment.keys, keys, "right")
        size = len(segment.positions)
        return np.maximum(lower - 1, 0) * STRIDE, np.minimum(upper * STRIDE, size)

    def _compare(
        self, positions: Int64, text: Int64, starts: Int64, end: int
    ) -> tuple[Int64, Int64]:
        """Compare the ids behind each position with the text from each start.

        Returns:
            Less than 0, where the corpus comes first in the order, or more; and the number of
            common ids.
        """
        padded = np.concatenate([text, np.full(BLOCK, end, np.int64)])
        order = np.zeros(len(positions), np.int64)
        common = np.zeros(len(positions), np.int64)
        open_, skipped = np.arange(len(positions)), 0
        while len(open_):
            corpus_ids = self.corpus.after(positions[open_], skipped)
            columns = np.minimum(
                starts[open_, None] + np.arange(skipped, skipped + BLOCK), len(padded) - 1
            )
            difference = corpus_ids - padded[columns]
            first = np.argmax(difference != 0, axis=1)
            rows = np.arange(len(open_))
            order[open_] = np.sign(difference[rows, first])
            is_equal = difference[rows, first] == 0
            common[open_] += np.where(is_equal, BLOCK, first)
            open_, skipped = open_[is_equal], skipped + BLOCK
        return order, common
