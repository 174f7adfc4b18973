"""Segments to one batch of fixed shape.

A batch is ``(features, targets)``, arrays of NumPy, so that every engine trains on the same bits. A
row contains segments one after another, numbered from 1 in ``*_segments``; 0 marks padding. The
decoder reads the targets shifted right by one, with the start id at the beginning of each segment.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from t5repro.array_types import Array, Int32
from t5repro.objectives.masks import first_positions
from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, Array]
Batch = tuple[Features, Array]


@dataclass(frozen=True)
class Batches:
    """The batches of some steps, each made when it is read; they can be read again.

    Attributes:
        make: returns the batch of a step.
        first_step: step of the first batch.
        steps: number of batches.
    """

    make: Callable[[int], Batch]
    first_step: int
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        return map(self.make, range(self.first_step, self.first_step + self.steps))


class FlatSegments(NamedTuple):
    """Segments of many lengths, one after another.

    Attributes:
        ids: int32 ``(tokens of all segments,)``.
        lengths: int32 ``(segments,)``.
    """

    ids: Int32
    lengths: Array


def counted(lengths: Array) -> Array:
    """Return 0, 1, ... ``length - 1`` for each length, one after another, int64."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - lengths, lengths)


def gather_pieces(ids: Array, starts: Array, lengths: Array) -> Int32:
    """Return the pieces of `ids` that begin at `starts`, one after another, as int32."""
    indices = np.repeat(starts, lengths) + counted(lengths)
    # Cast after the gather: the file of ids may be uint16, and only the batch is converted.
    return ids[indices].astype(np.int32, copy=False)


def pad_segments(flat: FlatSegments, width: int) -> Int32:
    """Return segments as int32 ``(segments, width)``, padded on the right."""
    padded = np.full((len(flat.lengths), width), PAD_ID, np.int32)
    padded[first_positions(flat.lengths, width)] = flat.ids
    return padded


def encoder_decoder_batch(
    inputs: FlatSegments,
    targets: FlatSegments,
    segments_per_row: Array,
    *,
    inputs_length: int,
    targets_length: int,
) -> Batch:
    """Place segments in rows of inputs and rows of targets.

    Args:
        inputs: inputs of each segment, EOS included.
        targets: targets of each segment, EOS included.
        segments_per_row: number of segments in each row, int32 ``(rows,)``.
        inputs_length: tokens of a row of inputs.
        targets_length: tokens of a row of targets.

    Returns:
        Features ``encoder_ids``, ``encoder_segments`` ``(rows, inputs_length)`` and
        ``decoder_ids``, ``decoder_segments`` ``(rows, targets_length)``, and the targets
        ``(rows, targets_length)``; all int32.

    Source: released code of mesh, ``pack_dataset`` and ``shift_targets``.
    """
    number = _segment_numbers(segments_per_row)
    rows_of_inputs = _Rows(inputs.lengths, segments_per_row, inputs_length)
    rows_of_targets = _Rows(targets.lengths, segments_per_row, targets_length)
    features = {
        "encoder_ids": rows_of_inputs.fill(inputs.ids),
        "encoder_segments": rows_of_inputs.fill(np.repeat(number, inputs.lengths)),
        "decoder_ids": rows_of_targets.fill(_shift_right(targets)),
        "decoder_segments": rows_of_targets.fill(np.repeat(number, targets.lengths)),
    }
    return features, rows_of_targets.fill(targets.ids)


def joined_batch(
    inputs: FlatSegments,
    targets: FlatSegments,
    segments_per_row: Array,
    *,
    inputs_length: int,
    targets_length: int,
) -> Batch:
    """Place segments in rows for a decoder-only network: inputs, followed by targets.

    Args:
        inputs: inputs of each segment, EOS included; of length 0 if the objective has none.
        targets: targets of each segment, EOS included.
        segments_per_row: number of segments in each row, int32 ``(rows,)``.
        inputs_length: tokens of inputs in a row.
        targets_length: tokens of targets in a row.

    Returns:
        Features ``decoder_ids``, ``decoder_segments`` and ``decoder_prefix``, 1 at the positions
        that a prefix language model sees in both directions, and the targets, 0 at inputs and
        padding; all int32 ``(rows, inputs_length + targets_length)``.

    Source: released code, ``delimited_lm`` with loss only on the targets; seqio,
    ``PrefixLMFeatureConverter``: the prefix is the inputs and one position more.
    """
    # Targets directly follow their inputs: both are one segment, with the same number.
    lengths = np.asarray(inputs.lengths) + np.asarray(targets.lengths)
    position = counted(lengths)
    inputs_lengths = np.repeat(inputs.lengths, lengths)  # of the segment of each token
    is_input = position < inputs_lengths
    ids = np.empty(len(position), np.int32)
    ids[is_input], ids[~is_input] = inputs.ids, targets.ids
    rows = _Rows(lengths, segments_per_row, inputs_length + targets_length)
    features = {
        "decoder_ids": rows.fill(_shift_right(FlatSegments(ids, lengths))),
        "decoder_segments": rows.fill(np.repeat(_segment_numbers(segments_per_row), lengths)),
        # Shifted ids: the last id of the inputs is read one position later, hence <=.
        "decoder_prefix": rows.fill(position <= inputs_lengths),
    }
    return features, rows.fill(np.where(is_input, PAD_ID, ids))


def _segment_numbers(segments_per_row: Array) -> Array:
    """Return the number of each segment within its row, from 1."""
    return counted(segments_per_row) + 1


def _shift_right(flat: FlatSegments) -> Int32:
    """Return the ids that the decoder reads: each segment's, one later, after the start id."""
    # One shift over all segments moves the last id of each into the next one; it is overwritten.
    shifted = np.empty_like(flat.ids)
    shifted[1:] = flat.ids[:-1]
    ends = np.cumsum(flat.lengths)
    shifted[(ends - flat.lengths)[np.asarray(flat.lengths) > 0]] = PAD_ID
    return shifted


class _Rows:
    """The places of the tokens of segments in rows of a batch; what exceeds a row is cut off.

    Args:
        lengths: tokens of each segment.
        segments_per_row: number of segments in each row.
        width: tokens of a row.
    """

    def __init__(self, lengths: Array, segments_per_row: Array, width: int) -> None:
        ends = np.cumsum(np.append(0, lengths))  # of the segments, after the start of the first
        splits = np.cumsum(np.append(0, segments_per_row))
        tokens_per_row = np.diff(ends[splits])
        self._shape = (len(segments_per_row), width)
        self._filled = first_positions(tokens_per_row, width)
        fits = bool((tokens_per_row <= width).all())
        self._kept: Any = slice(None) if fits else counted(tokens_per_row) < width

    def fill(self, values: Array) -> Int32:
        """Return the values of the tokens in their rows, int32 ``(rows, width)``."""
        rows = np.full(self._shape, PAD_ID, np.int32)
        rows[self._filled] = values[self._kept]
        return rows
