"""Segments and the rows they belong to -> one batch of fixed shape.

A row holds segments one after another, numbered from 1; 0 marks padding. The decoder reads the
targets shifted right by one, with 0 at the start of each segment.
"""

from typing import NamedTuple

import tensorflow as tf

from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, tf.Tensor]


class Flat(NamedTuple):
    """Segments of many lengths, one after another.

    Attributes:
        ids: int32 ``(tokens of all segments,)``.
        lengths: int32 ``(segments,)``.
    """

    ids: tf.Tensor
    lengths: tf.Tensor


def gather_pieces(ids: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return the pieces of `ids` that begin at `starts`, one after another, as int32."""
    starts = tf.cast(starts, tf.int64)
    places = tf.ragged.range(starts, starts + tf.cast(lengths, tf.int64)).flat_values
    return tf.cast(tf.gather(ids, places), tf.int32)


def pad_segments(flat: Flat, width: int) -> tf.Tensor:
    """Return segments as int32 ``(segments, width)`` with 0 behind the end of each."""
    ragged = tf.RaggedTensor.from_row_lengths(flat.ids, flat.lengths, validate=False)
    return ragged.to_tensor(shape=[None, width])


def assemble(
    inputs: Flat,
    targets: Flat,
    segments_per_row: tf.Tensor,
    *,
    inputs_length: int,
    targets_length: int,
) -> tuple[Features, tf.Tensor]:
    """Lay segments into rows.

    Args:
        inputs: inputs of each segment, EOS included.
        targets: targets of each segment, EOS included.
        segments_per_row: how many segments each row takes, int32 ``(rows,)``.
        inputs_length: tokens of a row of inputs.
        targets_length: tokens of a row of targets.

    Returns:
        Features ``encoder_ids``, ``encoder_segments`` ``(rows, inputs_length)`` and
        ``decoder_ids``, ``decoder_segments`` ``(rows, targets_length)``, and the targets
        ``(rows, targets_length)``; all int32.

    Source: released code of mesh, ``pack_dataset`` and ``shift_targets``.
    """
    number = tf.ragged.range(segments_per_row).flat_values + 1
    place = tf.ragged.range(targets.lengths).flat_values
    shifted = tf.pad(targets.ids[:-1], [[1, 0]])
    decoder = tf.where(place == 0, PAD_ID, shifted)

    def rows(values: tf.Tensor, flat: Flat, width: int) -> tf.Tensor:
        return _rows(values, flat.lengths, segments_per_row, width)

    features = {
        "encoder_ids": rows(inputs.ids, inputs, inputs_length),
        "encoder_segments": rows(tf.repeat(number, inputs.lengths), inputs, inputs_length),
        "decoder_ids": rows(decoder, targets, targets_length),
        "decoder_segments": rows(tf.repeat(number, targets.lengths), targets, targets_length),
    }
    return features, rows(targets.ids, targets, targets_length)


def assemble_joined(
    inputs: Flat,
    targets: Flat,
    segments_per_row: tf.Tensor,
    *,
    inputs_length: int,
    targets_length: int,
) -> tuple[Features, tf.Tensor]:
    """Lay segments into rows for a decoder alone: each one's targets behind its inputs.

    Args:
        inputs: inputs of each segment, EOS included; lengths of 0 where there are none.
        targets: targets of each segment, EOS included.
        segments_per_row: how many segments each row takes, int32 ``(rows,)``.
        inputs_length: tokens of inputs of a row.
        targets_length: tokens of targets of a row.

    Returns:
        Features ``decoder_ids``, ``decoder_segments`` and ``decoder_prefix``, 1 where a position
        belongs to what a prefix language model sees whole, and the targets, 0 at inputs and
        padding; all int32 ``(rows, inputs_length + targets_length)``.

    Source: released code, ``delimited_lm`` with loss on the targets alone; seqio,
    ``PrefixLMFeatureConverter``: the prefix is the inputs and one position more.
    """
    sides = [
        tf.RaggedTensor.from_row_lengths(side.ids, side.lengths, validate=False)
        for side in (inputs, targets)
    ]
    ids = tf.concat(sides, axis=1).flat_values
    lengths = inputs.lengths + targets.lengths
    place = tf.ragged.range(lengths).flat_values
    number = tf.repeat(tf.ragged.range(segments_per_row).flat_values + 1, lengths)
    own_inputs = tf.repeat(inputs.lengths, lengths)
    shifted = tf.where(place == 0, PAD_ID, tf.pad(ids[:-1], [[1, 0]]))
    width = inputs_length + targets_length

    def rows(values: tf.Tensor) -> tf.Tensor:
        return _rows(values, lengths, segments_per_row, width)

    features = {
        "decoder_ids": rows(shifted),
        "decoder_segments": rows(number),
        "decoder_prefix": rows(tf.cast(place <= own_inputs, tf.int32)),
    }
    return features, rows(tf.where(place < own_inputs, PAD_ID, ids))


def _rows(
    values: tf.Tensor, lengths: tf.Tensor, segments_per_row: tf.Tensor, width: int
) -> tf.Tensor:
    """Return segments one after another in their rows, int32 ``(rows, width)``."""
    by_segment = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
    by_row = tf.RaggedTensor.from_row_lengths(by_segment, segments_per_row, validate=False)
    count = segments_per_row.shape[0]
    padded = by_row.merge_dims(1, 2).to_tensor(shape=[count, width])
    return tf.ensure_shape(padded, [count, width])
