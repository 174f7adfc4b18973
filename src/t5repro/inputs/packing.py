"""Layouts: documents cut into segments, segments placed in rows (paper sections 2.1 and 3.1.2).

There are two layouts. Both have random access, so that resuming at step n costs no more than
starting at step 0:

* a *stream* concatenates all documents and cuts segments of full length, one a row. One seeded
  order of the documents serves the whole run; every epoch cuts at another offset and takes the
  segments in another order. Memory: 16 bytes a document.
* *packed rows* cut each document on its own and fill rows with whole segments, once, in a seeded
  order; every epoch takes the rows in another order. Memory: 20 bytes a segment.

To add a layout, return a `Stream` or `PackedRows`; `pretraining` reads nothing else.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Int64
from t5repro.errors import CorpusError
from t5repro.randomness import stream

OPEN_ROWS = 10  # rows that still accept segments; more of them fill hardly better
BLOCK_ITEMS = 16_384  # items that are packed independently of all others
SHORTEST_SEGMENT = 4  # tokens; a shorter segment has nothing to predict from


class Documents(NamedTuple):
    """The part of each document that is used.

    Attributes:
        starts: index of its first token in the file of ids, ``(documents,)``.
        lengths: its tokens, ``(documents,)``.
    """

    starts: Int64
    lengths: Int64


def chunk_documents(offsets: Int64, *, chunk_tokens: int, seed: int) -> Documents:
    """Select one chunk of each document that is longer than `chunk_tokens`.

    A document of n chunks, the last one shorter, uses each with probability 1 / n.

    Args:
        offsets: start of each document in the file of ids, and end of the last one.
        chunk_tokens: tokens of a chunk; with 0, documents stay whole.
        seed: the run's seed.

    Source: released code, ``select_random_chunk``, which draws again in each epoch.
    """
    starts, lengths = np.array(offsets[:-1]), np.diff(offsets)
    # A document of one chunk needs no draw: the draws do not depend on how many of them there are.
    long = np.flatnonzero(lengths > chunk_tokens) if chunk_tokens else np.zeros(0, np.int64)
    if len(long):
        draws = stream(seed, "pretrain", "chunks").random(len(long))
        skipped = (draws * -(-lengths[long] // chunk_tokens)).astype(np.int64) * chunk_tokens
        starts[long] += skipped
        lengths[long] = np.minimum(lengths[long] - skipped, chunk_tokens)
    return Documents(starts, lengths)


@dataclass(frozen=True)
class Stream:
    """All documents as one continuous text, cut into segments of `segment_tokens`.

    Attributes:
        starts: start of each document in the file of ids, in the order of the stream.
        end_offsets: end of each document in the stream, ascending.
        segment_tokens: tokens of a segment.
        segments: segments of an epoch.
        phase_range: largest offset in the stream at which an epoch can begin; tokens.
    """

    starts: Int64
    end_offsets: Int64
    segment_tokens: int
    segments: int
    phase_range: int


def document_stream(documents: Documents, *, segment_tokens: int, seed: int) -> Stream:
    """Concatenate the documents in a seeded order.

    Args:
        documents: the used part of each document.
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
    end_offsets = np.cumsum(documents.lengths[order], dtype=np.int64)
    # One segment less than would fit: the remainder lets each epoch begin at another token, so
    # that the cuts between segments move (D-038).
    segments = max(1, tokens // segment_tokens - 1)
    phase_range = min(tokens - segments * segment_tokens, segment_tokens - 1)
    return Stream(documents.starts[order], end_offsets, segment_tokens, segments, phase_range)


@dataclass(frozen=True)
class PackedRows:
    """Rows of whole segments.

    Attributes:
        starts: start of each segment in the file of ids, row after row.
        lengths: tokens of each segment.
        limits: most tokens of inputs and targets it may occupy in its row, ``(segments, 2)``.
        splits: row r contains the segments ``splits[r]`` to ``splits[r + 1] - 1``.
        dropped: segments that were too short to use.
    """

    starts: Int64
    lengths: Int32
    limits: Int32
    splits: Int64
    dropped: int

    @property
    def rows(self) -> int:
        """Rows of an epoch."""
        return len(self.splits) - 1


def cut_documents(documents: Documents, *, segment_tokens: int) -> tuple[Int64, Int32]:
    """Cut each document into segments of `segment_tokens`, the last one shorter.

    Returns:
        The start of each segment in the file of ids, and its tokens.

    Source: released code, ``split_tokens``.
    """
    lengths = documents.lengths
    segments = -(-lengths // segment_tokens)  # of each document, rounded up
    # Number of a segment minus that of its document's first one: its index within the document.
    first_segment = np.repeat(np.cumsum(segments) - segments, segments)
    skipped = (np.arange(len(first_segment)) - first_segment) * segment_tokens
    starts = np.repeat(documents.starts, segments) + skipped
    remaining = np.repeat(lengths, segments) - skipped
    return starts, np.minimum(remaining, segment_tokens).astype(np.int32)


def pack_documents(
    documents: Documents,
    *,
    segment_tokens: int,
    limits_by_tokens: Int32,
    inputs_length: int,
    targets_length: int,
    seed: int,
) -> PackedRows:
    """Cut each document on its own and pack the segments into rows, in a seeded order.

    Args:
        documents: the used part of each document.
        segment_tokens: tokens of the longest segment.
        limits_by_tokens: tokens of inputs and targets reserved for a segment of 0, 1, ... tokens,
            ``(segment_tokens + 1, 2)``.
        inputs_length: tokens of a row of inputs.
        targets_length: tokens of a row of targets.
        seed: the run's seed.

    Raises:
        CorpusError: no document is long enough for a segment.
    """
    # 1. Segments of all documents, without those too short to be corrupted.
    starts, lengths = cut_documents(documents, segment_tokens=segment_tokens)
    long_enough = np.flatnonzero(lengths >= SHORTEST_SEGMENT)
    if not len(long_enough):
        raise CorpusError(
            f"no document of the corpus has {SHORTEST_SEGMENT} tokens; give it more text"
        )
    dropped = len(starts) - len(long_enough)
    # 2. Seeded order, so that a row mixes documents.
    order = long_enough[stream(seed, "pretrain", "segments").permutation(len(long_enough))]
    # 3. A row is full by its tokens after corruption, not by its raw tokens.
    limits = limits_by_tokens[lengths[order]]
    rows = pack_rows(limits, max_lengths=(inputs_length, targets_length))
    row_order = np.argsort(rows, kind="stable")  # stable: a row keeps the seeded order of segments
    segments = order[row_order]
    return PackedRows(
        starts[segments], lengths[segments], limits[row_order], row_splits(rows), dropped
    )


def row_splits(rows: Int64) -> Int64:
    """Return the start of each row among the items sorted by row, and the end of the last."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows))]).astype(np.int64)


def pack_rows(
    lengths: Int32, *, max_lengths: tuple[int, int], block_items: int = BLOCK_ITEMS
) -> Int64:
    """Assign items to rows in their order: the first open row with enough space takes an item.

    Ten rows are open; if none has space, the fullest is closed and a new one opened. Blocks of
    `block_items` are packed independently: a few rows at the end of each are not quite full, but
    the rows of a block do not depend on earlier blocks.

    Args:
        lengths: tokens of inputs and targets of each item, ``(items, 2)``; each fits a row.
        max_lengths: tokens of a row of inputs and of targets.
        block_items: items of a block.

    Returns:
        The row of each item, ``(items,)``; rows are numbered from 0 without gaps.

    Source: our own in place of mesh's ``pack_dataset``, which keeps one open row.
    """
    rows = np.zeros(len(lengths), np.int64)
    opened = 0
    for first in range(0, len(lengths), block_items):
        block = slice(first, first + block_items)
        rows[block], opened = _pack_block(lengths[block], max_lengths, opened)
    return rows


def _pack_block(lengths: Int32, max_lengths: tuple[int, int], opened: int) -> tuple[list[int], int]:
    """Return the row of each item, and the number of rows after `opened` earlier ones."""
    # A loop over Python's integers packs three million items a second. The same steps in NumPy are
    # slower, even over hundreds of blocks at once, because each item depends on the one before.
    max_inputs, max_targets = max_lengths
    # All slots begin full, as if closed: the first items open a row each and no case is special.
    free_inputs, free_targets = [0] * OPEN_ROWS, [0] * OPEN_ROWS
    number = [0] * OPEN_ROWS
    slots = range(OPEN_ROWS)
    rows: list[int] = []
    for inputs, targets in zip(*lengths.T.tolist(), strict=True):
        for slot in slots:
            if inputs <= free_inputs[slot] and targets <= free_targets[slot]:
                break
        else:
            # The scarcer side decides how full a row is: no item fits without it.
            free_shares = [
                min(free_inputs[n] / max_inputs, free_targets[n] / max_targets) for n in slots
            ]
            slot = free_shares.index(min(free_shares))
            free_inputs[slot], free_targets[slot], number[slot] = *max_lengths, opened
            opened += 1
        free_inputs[slot] -= inputs
        free_targets[slot] -= targets
        rows.append(number[slot])
    return rows, opened
