"""From the number of a step to the tokens of its batch.

Every epoch takes the rows of a layout in another order. The order is a permutation that is
computed only for the rows of the step, so resuming at step n costs no more than starting at step 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Array, Int32, Int64
from t5repro.inputs.batches import counted
from t5repro.inputs.packing import PackedRows, Stream
from t5repro.inputs.row_order import phases, shuffled_rows


class StepPieces(NamedTuple):
    """The tokens of a step: pieces of the file of ids, which make segments, which make rows.

    Attributes:
        starts: start of each piece in the file of ids, int64 ``(pieces,)``.
        lengths: tokens of each piece, 0 allowed, ``(pieces,)``.
        segment_lengths: tokens of each segment, int32 ``(segments,)``.
        limits: most tokens of inputs and targets of each segment, int32 ``(segments, 2)``.
        segments_per_row: int32 ``(rows,)``.
    """

    starts: Int64
    lengths: Array
    segment_lengths: Int32
    limits: Int32
    segments_per_row: Int32


Reader = Callable[[int], StepPieces]


def row_numbers(step: int, batch_size: int) -> Int64:
    """Return the rows of a step, counted from the start of the run."""
    return np.arange(step * batch_size, (step + 1) * batch_size, dtype=np.int64)


class DocumentParts(NamedTuple):
    """The parts of documents that ranges of a stream cover, range after range.

    Attributes:
        starts: start of each part in the file of ids, int64 ``(parts,)``.
        lengths: its tokens, int64 ``(parts,)``.
        ranges: number of its range, int64 ``(parts,)``.
    """

    starts: Int64
    lengths: Int64
    ranges: Int64


def document_parts(
    first: Int64, stop: Int64, *, starts: Int64, end_offsets: Int64
) -> DocumentParts:
    """Return the parts of documents in the ranges ``first`` to ``stop - 1`` of a stream.

    Args:
        first: first token of each range.
        stop: the one after its last.
        starts: start of each document in the file of ids, in the order of the stream.
        end_offsets: end of each document in the stream, ascending.
    """
    # A range runs over all documents between the one with its first token and the one with its
    # last. End offsets are exclusive, hence side="right".
    first_document = np.searchsorted(end_offsets, first, side="right")
    documents = np.searchsorted(end_offsets, stop - 1, side="right") + 1 - first_document
    ranges = np.repeat(np.arange(len(first)), documents)
    document = first_document[ranges] + counted(documents)
    begin = np.where(document > 0, end_offsets[np.maximum(document - 1, 0)], 0)
    # The intersection of document and range, in the stream, then in the file of ids.
    low = np.maximum(begin, first[ranges])
    high = np.minimum(end_offsets[document], stop[ranges])
    return DocumentParts(starts[document] + low - begin, high - low, ranges)


def stream_reader(
    layout: Stream, batch_size: int, max_lengths: tuple[int, int], seed: int
) -> Reader:
    """Return the function from a step to the pieces of documents in its segments.

    Args:
        layout: the stream.
        batch_size: rows of a batch; each is one segment.
        max_lengths: tokens of a row of inputs and of targets.
        seed: the run's seed.
    """
    tokens = layout.segment_tokens
    limits = np.array([max_lengths] * batch_size, np.int32)

    def read(step: int) -> StepPieces:
        row, epoch = shuffled_rows(row_numbers(step, batch_size), layout.segments, seed)
        first = row * tokens + phases(epoch, layout.phase_range, seed)
        parts = document_parts(
            first, first + tokens, starts=layout.starts, end_offsets=layout.end_offsets
        )
        return StepPieces(
            starts=parts.starts,
            lengths=parts.lengths,
            segment_lengths=np.full(batch_size, tokens, np.int32),
            limits=limits,
            segments_per_row=np.ones(batch_size, np.int32),
        )

    return read


def packed_reader(layout: PackedRows, batch_size: int, seed: int) -> Reader:
    """Return the function from a step to the segments of its rows; a segment is one piece."""

    def read(step: int) -> StepPieces:
        row, _ = shuffled_rows(row_numbers(step, batch_size), layout.rows, seed)
        counts = layout.splits[row + 1] - layout.splits[row]
        segment = np.repeat(layout.splits[row], counts) + counted(counts)  # in order of the rows
        lengths = layout.lengths[segment]
        return StepPieces(
            starts=layout.starts[segment],
            lengths=lengths,
            segment_lengths=lengths,
            limits=layout.limits[segment],
            segments_per_row=counts.astype(np.int32),
        )

    return read
