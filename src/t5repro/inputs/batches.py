"""Segments to one batch of fixed shape.

A batch is ``(features, targets)``. A row contains segments one after another, numbered from 1 in
``*_segments``; 0 marks padding. The decoder reads the targets shifted right by one, with the start
id at the beginning of each segment.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, tf.Tensor]


class FlatSegments(NamedTuple):
    """Segments of many lengths, one after another.

    Attributes:
        ids: int32 ``(tokens of all segments,)``.
        lengths: int32 ``(segments,)``.
    """

    ids: tf.Tensor
    lengths: tf.Tensor


def map_in_order(dataset: tf.data.Dataset, function: Callable[..., Any]) -> tf.data.Dataset:
    """Map a function over the elements of a dataset, in their order.

    Without AutoGraph, which rewrites the source of every function it meets: that takes longer than
    the rest of the start of a small training, and no loop or branch here depends on a tensor.
    """
    plain = tf.autograph.experimental.do_not_convert(function)
    return dataset.map(plain, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def gather_pieces(ids: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return the pieces of `ids` that begin at `starts`, one after another, as int32."""
    starts = tf.cast(starts, tf.int64)
    indices = tf.ragged.range(starts, starts + tf.cast(lengths, tf.int64)).flat_values
    # Cast after the gather: the file of ids may be uint16, and only the batch is converted.
    return tf.cast(tf.gather(ids, indices), tf.int32)


def pad_segments(flat: FlatSegments, width: int) -> tf.Tensor:
    """Return segments as int32 ``(segments, width)``, padded on the right."""
    ragged = tf.RaggedTensor.from_row_lengths(flat.ids, flat.lengths, validate=False)
    return ragged.to_tensor(shape=[None, width])


def encoder_decoder_batch(
    inputs: FlatSegments,
    targets: FlatSegments,
    segments_per_row: tf.Tensor,
    *,
    inputs_length: int,
    targets_length: int,
) -> tuple[Features, tf.Tensor]:
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

    def rows(values: tf.Tensor, flat: FlatSegments, width: int) -> tf.Tensor:
        return _rows(values, flat.lengths, segments_per_row, width)

    features = {
        "encoder_ids": rows(inputs.ids, inputs, inputs_length),
        "encoder_segments": rows(tf.repeat(number, inputs.lengths), inputs, inputs_length),
        "decoder_ids": rows(_shift_right(targets), targets, targets_length),
        "decoder_segments": rows(tf.repeat(number, targets.lengths), targets, targets_length),
    }
    return features, rows(targets.ids, targets, targets_length)


def joined_batch(
    inputs: FlatSegments,
    targets: FlatSegments,
    segments_per_row: tf.Tensor,
    *,
    inputs_length: int,
    targets_length: int,
) -> tuple[Features, tf.Tensor]:
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
    sides = [
        tf.RaggedTensor.from_row_lengths(side.ids, side.lengths, validate=False)
        for side in (inputs, targets)
    ]
    # Targets directly follow their inputs: both are one segment, with the same number.
    text = FlatSegments(tf.concat(sides, axis=1).flat_values, inputs.lengths + targets.lengths)
    position = _positions(text)
    inputs_lengths = tf.repeat(inputs.lengths, text.lengths)  # of the segment of each token
    width = inputs_length + targets_length

    def rows(values: tf.Tensor) -> tf.Tensor:
        return _rows(values, text.lengths, segments_per_row, width)

    features = {
        "decoder_ids": rows(_shift_right(text)),
        "decoder_segments": rows(tf.repeat(_segment_numbers(segments_per_row), text.lengths)),
        # Shifted ids: the last id of the inputs is read one position later, hence <=.
        "decoder_prefix": rows(tf.cast(position <= inputs_lengths, tf.int32)),
    }
    return features, rows(tf.where(position < inputs_lengths, PAD_ID, text.ids))


def _segment_numbers(segments_per_row: tf.Tensor) -> tf.Tensor:
    """Return the number of each segment within its row, from 1."""
    return tf.ragged.range(segments_per_row).flat_values + 1


def _positions(flat: FlatSegments) -> tf.Tensor:
    """Return the position of each token within its segment, from 0."""
    return tf.ragged.range(flat.lengths).flat_values


def _shift_right(flat: FlatSegments) -> tf.Tensor:
    """Return the ids that the decoder reads: each segment's, one later, after the start id."""
    # One shift over all segments moves the last id of each into the next one; it is overwritten.
    return tf.where(_positions(flat) == 0, PAD_ID, tf.pad(flat.ids[:-1], [[1, 0]]))


def _rows(
    values: tf.Tensor, lengths: tf.Tensor, segments_per_row: tf.Tensor, width: int
) -> tf.Tensor:
    """Return the values of segments, one after another in their rows, int32 ``(rows, width)``."""
    segment_values = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
    row_values = tf.RaggedTensor.from_row_lengths(segment_values, segments_per_row, validate=False)
    # XLA and TPUs need the static shape, which a ragged tensor does not carry.
    count = segments_per_row.shape[0]
    padded = row_values.merge_dims(1, 2).to_tensor(shape=[count, width])
    return tf.ensure_shape(padded, [count, width])
