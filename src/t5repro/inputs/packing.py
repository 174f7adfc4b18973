"""Which tokens form a row: cut documents into segments, put segments into rows.

Two layouts, both with random access, so that starting at step n costs what starting at 0 costs:

* a *stream* runs all documents together and cuts full segments, one a row. One seeded order of
  the documents serves the whole run; every epoch cuts it at another place and takes the segments
  in another order. Memory is 16 bytes a document.
* *packed rows* cut each document on its own and fill rows with whole segments, once, in a seeded
  order; every epoch takes the rows in another order. Memory is 20 bytes a segment.

To add a layout, return a `Stream` or `PackedRows`; `pipeline` reads nothing else.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from t5repro.errors import CorpusError
from t5repro.randomness import stream

OPEN_ROWS = 10  # rows that still take segments; more of them fill hardly better
BLOCK_ITEMS = 16_384  # items packed on their own
SHORTEST_SEGMENT = 4  # tokens; what is shorter has nothing to predict from

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """All documents as one endless text, cut into segments of `segment_tokens`.

    Attributes:
        starts: where each document begins in the file of ids, in the order of the run.
        ends: where each document ends in the stream, ascending.
        segment_tokens: tokens of a segment.
        segments: segments of an epoch.
        slack: tokens an epoch leaves over; it begins between 0 and this many tokens in.
    """

    starts: Integers
    ends: Integers
    segment_tokens: int
    segments: int
    slack: int


class Documents(NamedTuple):
    """What is used of each document.

    Attributes:
        starts: where it begins in the file of ids, ``(documents,)``.
        lengths: tokens of it, ``(documents,)``.
    """

    starts: Integers
    lengths: Integers


def chunk_documents(offsets: Integers, *, chunk_tokens: int, seed: int) -> Documents:
    """Choose one chunk of each document that is longer than `chunk_tokens`.

    A document of n chunks, the last one shorter, gives each with probability 1 / n.

    Args:
        offsets: where each document begins in the file of ids, and where the last one ends.
        chunk_tokens: tokens of a chunk; 0: documents stay whole.
        seed: the run's seed.

    Source: released code, ``select_random_chunk``, which draws anew each epoch.
    """
    starts, lengths = np.array(offsets[:-1]), np.diff(offsets)
    long = np.flatnonzero(lengths > chunk_tokens) if chunk_tokens else np.zeros(0, np.int64)
    if len(long):
        draws = stream(seed, "pretrain", "chunks").random(len(long))
        skipped = (draws * -(-lengths[long] // chunk_tokens)).astype(np.int64) * chunk_tokens
        starts[long] += skipped
        lengths[long] = np.minimum(lengths[long] - skipped, chunk_tokens)
    return Documents(starts, lengths)


def document_stream(documents: Documents, *, segment_tokens: int, seed: int) -> Stream:
    """Lay the documents out in a seeded order.

    Args:
        documents: what is used of each.
        segment_tokens: tokens of a segment.
        seed: the run's seed.

    Raises:
        CorpusError: the documents do not fill one segment.
    """
    tokens = int(documents.lengths.sum())
    if tokens < segment_tokens:
        raise CorpusError(
            f"the corpus has {tokens} tokens, one row needs {segment_tokens}; give it more text "
            f"or lower pretrain.inputs_length"
        )
    order = stream(seed, "pretrain", "documents").permutation(len(documents.starts))
    ends = np.cumsum(documents.lengths[order], dtype=np.int64)
    # One segment less than would fit leaves room to begin each epoch at another token.
    segments = max(1, tokens // segment_tokens - 1)
    slack = min(tokens - segments * segment_tokens, segment_tokens - 1)
    return Stream(documents.starts[order], ends, segment_tokens, segments, slack)


@dataclass(frozen=True)
class PackedRows:
    """Rows of whole segments.

    Attributes:
        starts: where each segment begins in the file of ids, row after row.
        lengths: tokens of each segment.
        limits: most tokens of inputs and targets it may take in its row, ``(segments, 2)``.
        splits: row r holds the segments ``splits[r]`` to ``splits[r + 1]``.
        dropped: segments that were too short to use.
    """

    starts: Integers
    lengths: npt.NDArray[np.int32]
    limits: npt.NDArray[np.int32]
    splits: Integers
    dropped: int

    @property
    def rows(self) -> int:
        """Rows of an epoch."""
        return len(self.splits) - 1


def cut_documents(
    documents: Documents, *, segment_tokens: int
) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Cut each document into segments of `segment_tokens`, the last one shorter.

    Returns:
        Where each segment begins in the file of ids, and its tokens.

    Source: released code, ``split_tokens``.
    """
    lengths = documents.lengths
    pieces = -(-lengths // segment_tokens)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    place = (np.arange(len(first)) - first) * segment_tokens
    starts = np.repeat(documents.starts, pieces) + place
    left = np.repeat(lengths, pieces) - place
    return starts, np.minimum(left, segment_tokens).astype(np.int32)


def pack_documents(
    documents: Documents,
    *,
    segment_tokens: int,
    limits_by_tokens: npt.NDArray[np.int32],
    inputs_length: int,
    targets_length: int,
    seed: int,
) -> PackedRows:
    """Cut each document on its own and pack the segments into rows, in a seeded order.

    Args:
        documents: what is used of each.
        segment_tokens: tokens of the longest segment.
        limits_by_tokens: tokens of inputs and targets that a segment of so many tokens takes,
            ``(segment_tokens + 1, 2)``.
        inputs_length: tokens of a row of inputs.
        targets_length: tokens of a row of targets.
        seed: the run's seed.

    Raises:
        CorpusError: no document is long enough for a segment.
    """
    starts, lengths = cut_documents(documents, segment_tokens=segment_tokens)
    long_enough = np.flatnonzero(lengths >= SHORTEST_SEGMENT)
    if not len(long_enough):
        raise CorpusError(
            f"no document of the corpus has {SHORTEST_SEGMENT} tokens; give it more text"
        )
    dropped = len(starts) - len(long_enough)
    order = long_enough[stream(seed, "pretrain", "segments").permutation(len(long_enough))]
    limits = limits_by_tokens[lengths[order]]
    rows = pack_rows(limits, room=(inputs_length, targets_length))
    by_row = np.argsort(rows, kind="stable")
    chosen = order[by_row]
    splits = row_splits(rows)
    return PackedRows(starts[chosen], lengths[chosen], limits[by_row], splits, dropped)


def row_splits(rows: Integers) -> Integers:
    """Return where each row begins among the items sorted by row, and where the last ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows))]).astype(np.int64)


def pack_rows(
    lengths: npt.NDArray[np.int32], *, room: tuple[int, int], block_items: int = BLOCK_ITEMS
) -> Integers:
    """Put items into rows in the order they come: the first open row with room takes an item.

    Ten rows are open; when none has room, the one nearest to full gives way to a new one. Blocks
    of `block_items` are packed on their own, which costs each a few rows that are not quite full
    and makes the rows of a block independent of what came before.

    Args:
        lengths: tokens of inputs and targets of each item, ``(items, 2)``; each fits a row.
        room: tokens of a row of inputs and of targets.
        block_items: items of a block.

    Returns:
        The row of each item, ``(items,)``; rows are numbered from 0 without gaps.

    Source: our own in place of mesh's ``pack_dataset``, which keeps one open row.
    """
    rows = np.zeros(len(lengths), np.int64)
    opened = 0
    for first in range(0, len(lengths), block_items):
        block = slice(first, first + block_items)
        rows[block], opened = _pack_block(lengths[block], room, opened)
    return rows


def _pack_block(
    lengths: npt.NDArray[np.int32], room: tuple[int, int], opened: int
) -> tuple[list[int], int]:
    """Return the row of each item, and the number of rows after `opened` earlier ones.

    A loop over Python's integers: three million items a second, which the same steps in NumPy do
    not reach even over hundreds of blocks at once.
    """
    room_inputs, room_targets = room
    free_inputs, free_targets = [0] * OPEN_ROWS, [0] * OPEN_ROWS
    number = [0] * OPEN_ROWS
    every = range(OPEN_ROWS)
    rows: list[int] = []
    for inputs, targets in zip(*lengths.T.tolist(), strict=True):
        for slot in every:
            if inputs <= free_inputs[slot] and targets <= free_targets[slot]:
                break
        else:
            left = [
                min(free_inputs[n] / room_inputs, free_targets[n] / room_targets) for n in every
            ]
            slot = left.index(min(left))
            free_inputs[slot], free_targets[slot], number[slot] = *room, opened
            opened += 1
        free_inputs[slot] -= inputs
        free_targets[slot] -= targets
        rows.append(number[slot])
    return rows, opened
