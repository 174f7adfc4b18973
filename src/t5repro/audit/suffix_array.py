"""Suffix arrays of ids: where a sequence of ids occurs in a corpus, without reading the corpus.

A suffix array has the positions of a text, sorted by the text behind them, so all occurrences of a
sequence are neighbours and two binary searches find them. Only positions at which a word begins are
in it. The ids are divided into segments of whole documents (`suffix_build`), each with its
positions in order, relative to its first id, and the keys: the first `KEY_IDS` ids behind every
`STRIDE`-th of them, which are in memory and narrow a search down without a read of ids.

A search goes through all segments at once. Each of its rounds asks the disk for everything that it
is about to read, ordered by place, so the time of a look-up does not add up.
"""

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from t5repro.array_types import Array, Int64, Mask

KEY_IDS = 8
STRIDE = 256
BLOCK = 64  # ids that one round of a comparison reads
ROWS_AT_ONCE = 1 << 15  # pairs of segment and start; a comparison of so many takes 100 MB
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
        _prefetch(self.ids, indices[:, 0], indices[:, -1] + 1)
        ids = self.ids[np.minimum(indices, len(self.ids) - 1)].astype(np.int64)
        return np.where(indices < ends[:, None], ids, SEPARATOR)


class SegmentFiles(NamedTuple):
    """The files of a segment.

    Attributes:
        positions: relative to the first id of the segment, sorted by the ids that follow.
        keys: the ids behind every `STRIDE`-th of them as bytes, most significant first.
        counts: how often each id occurs.
    """

    positions: Path
    keys: Path
    counts: Path


def files_of(folder: Path, number: int) -> SegmentFiles:
    """Return the paths of the files of a segment."""
    return SegmentFiles(*(folder / f"{number}.{part}" for part in SegmentFiles._fields))


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
    def open(cls, files: SegmentFiles, first_id: int, id_bytes: int) -> Self:
        """Map the positions of a segment into memory, and read its keys."""
        keys = np.fromfile(files.keys, f"S{KEY_IDS * id_bytes}")
        if not len(keys):  # no word begins in its documents, and an empty file cannot be mapped
            return cls(first_id, np.zeros(0, "<u4"), keys)
        return cls(first_id, np.memmap(files.positions, "<u4", mode="r"), keys)


def keys_at(corpus: Corpus, positions: Int64) -> Array:
    """Return the keys of positions: the ids that follow, as bytes that sort like them."""
    return _as_key(corpus.after(positions, 0)[:, :KEY_IDS], corpus.ids.dtype)


def _as_key(ids: Int64, dtype: np.dtype[Any]) -> Array:
    key_bytes = np.ascontiguousarray(ids.astype(dtype.newbyteorder(">")))
    return key_bytes.view(f"S{KEY_IDS * dtype.itemsize}")[:, 0]


def _prefetch(mapped: Array, first: Int64, end: Int64) -> None:
    """Ask the system to read the first and last page of ranges of an array, if it is in a file."""
    if not isinstance(mapped.base, mmap.mmap):
        return
    pages = np.concatenate([first, end - 1]) * mapped.itemsize // mmap.PAGESIZE
    for page in np.unique(pages[pages >= 0]).tolist():  # ascending, as a disk reads them best
        if page * mmap.PAGESIZE < mapped.nbytes:
            mapped.base.madvise(mmap.MADV_WILLNEED, page * mmap.PAGESIZE, mmap.PAGESIZE)


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

    A place in it is counted through the positions of all segments.

    Args:
        corpus: whose ids are compared.
        segments: of its documents, in their order.
    """

    def __init__(self, corpus: Corpus, segments: list[Segment]) -> None:
        self.corpus = corpus
        self._segments = [segment for segment in segments if len(segment.positions)]
        sizes = [len(segment.positions) for segment in self._segments]
        self._first_places = np.cumsum([0, *sizes])[:, None]  # of each segment, and the end

    def longest_matches(self, text: Int64, starts: Int64) -> Int64:
        """Return the number of ids from each start that occur somewhere in one document.

        Args:
            text: ids, ``(n,)``; after `END`, another text begins.
            starts: positions in it at which words begin, ``(starts,)``.
        """
        if not self._segments:
            return np.zeros(len(starts), np.int64)
        size = max(1, ROWS_AT_ONCE // len(self._segments))
        batches = range(0, len(starts), size)
        lengths = [self._longest(text, starts[first : first + size]) for first in batches]
        return np.concatenate([np.zeros(0, np.int64), *lengths])

    def _longest(self, text: Int64, starts: Int64) -> Int64:
        insertions = self._insertions(text, starts, END)
        first, end = self._first_places[:-1], self._first_places[1:]
        longest = np.zeros(len(starts), np.int64)
        # What has most in common with a sequence is its neighbour in the order.
        for neighbours in (np.maximum(insertions - 1, first), np.minimum(insertions, end - 1)):
            positions = self._positions(neighbours.ravel())
            _, common = self._compare(positions, text, np.tile(starts, len(self._segments)), END)
            longest = np.maximum(longest, common.reshape(insertions.shape).max(axis=0))
        return longest

    def find(self, sequence: Int64, *, most: int) -> Matches:
        """Return the occurrences of a sequence that begins at a word.

        Args:
            sequence: ids, ``(n,)``.
            most: number of positions to return.
        """
        positions = np.zeros(0, np.int64)
        if not self._segments:
            return Matches(0, positions)
        start = np.zeros(1, np.int64)
        places = [self._insertions(sequence, start, end) for end in (END, AFTER_END)]
        low, high = (place - self._first_places[:-1] for place in places)
        for segment, first, end in zip(self._segments, low[:, 0], high[:, 0], strict=True):
            if len(positions) >= most:  # segments are in the order of the corpus
                break
            segment_positions = np.asarray(segment.positions[first:end], np.int64)
            if len(segment_positions) > most:
                segment_positions = np.partition(segment_positions, most - 1)[:most]
            positions = np.concatenate([positions, np.sort(segment_positions) + segment.first_id])
        return Matches(int((high - low).sum()), positions[:most])

    def _positions(self, places: Int64) -> Int64:
        """Return the positions in the corpus that are at places.

        Args:
            places: ordered by segment, ``(n,)``.
        """
        bounds = np.searchsorted(places, self._first_places[:, 0])
        positions = np.empty(len(places), np.int64)
        for number, segment in enumerate(self._segments):
            rows = slice(bounds[number], bounds[number + 1])
            within = segment.positions[places[rows] - self._first_places[number]]
            positions[rows] = within.astype(np.int64) + segment.first_id
        return positions

    def _insertions(self, text: Int64, starts: Int64, end: int) -> Int64:
        """Return for each segment the place before which each sequence belongs.

        Returns:
            ``(segments, starts)``.
        """
        below, above = (bounds.ravel() for bounds in self._insertion_bounds(text, starts, end))
        of_row = np.tile(starts, len(self._segments))
        while len(open_ := np.flatnonzero(below < above)):
            middle = (below[open_] + above[open_]) // 2
            order, _ = self._compare(self._positions(middle), text, of_row[open_], end)
            below[open_] = np.where(order < 0, middle + 1, below[open_])
            above[open_] = np.where(order < 0, above[open_], middle)
        return below.reshape(len(self._segments), len(starts))

    def _insertion_bounds(self, text: Int64, starts: Int64, end: int) -> tuple[Int64, Int64]:
        """Return bounds of the insertions, from the keys."""
        dtype = self.corpus.ids.dtype
        padded = np.concatenate([text, np.full(KEY_IDS, END, np.int64)])
        ids = padded[starts[:, None] + np.arange(KEY_IDS)]
        is_after_end = np.maximum.accumulate(ids == END, axis=1)
        padding = SEPARATOR if end == END else np.iinfo(dtype).max
        keys = _as_key(np.where(is_after_end, padding, ids), dtype)
        below, above = [], []
        for segment in self._segments:
            lower = np.searchsorted(segment.keys, keys, "left")
            upper = np.searchsorted(segment.keys, keys, "right")
            below.append(np.maximum(lower - 1, 0) * STRIDE)
            above.append(np.minimum(upper * STRIDE, len(segment.positions)))
            _prefetch(segment.positions, below[-1], above[-1])
        return np.stack(below) + self._first_places[:-1], np.stack(above) + self._first_places[:-1]

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
