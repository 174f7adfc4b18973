"""Rows of ids of all examples in memory, and the features of a batch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t5repro.inputs.batches import Features, gather_pieces
from t5repro.model.segment_rows import SegmentRow


class EncodedTexts(NamedTuple):
    """The texts of all examples as ids, on the CPU.

    Attributes:
        ids: of all rows, one after another, int32.
        starts: first id of each row in `ids`, int64.
        lengths: ids of each row, int32; 0 where an example has no such text.
    """

    ids: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> "EncodedTexts":
        """Return the ids of texts."""
        lengths = np.fromiter(map(len, texts), np.int32, len(texts))
        ids = np.fromiter((token for text in texts for token in text), np.int32, lengths.sum())
        with tf.device("CPU:0"):
            return cls(
                tf.constant(ids),
                tf.constant(np.cumsum(lengths, dtype=np.int64) - lengths),
                tf.constant(lengths),
            )

    def rows(self, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the ids of some rows, one after another, and their lengths."""
        lengths = tf.gather(self.lengths, rows)
        return gather_pieces(self.ids, tf.gather(self.starts, rows), lengths), lengths


class EncodedOption(NamedTuple):
    """The rows of all examples with one of their options, or without any.

    Attributes:
        texts: ids of each row; empty if an example has fewer options.
        swapped: ids with the segments in reverse order, if the network reads both orders.
        first_lengths: ids of each row before its second segment, int32.
    """

    texts: EncodedTexts
    swapped: EncodedTexts | None
    first_lengths: tf.Tensor

    @classmethod
    def of(cls, rows: Sequence[SegmentRow], *, swaps: bool) -> "EncodedOption":
        """Return the ids of rows."""
        firsts = np.fromiter((row.first_length for row in rows), np.int32, len(rows))
        with tf.device("CPU:0"):
            return cls(
                EncodedTexts.of([row.ids for row in rows]),
                EncodedTexts.of([row.swapped for row in rows]) if swaps else None,
                tf.constant(firsts),
            )


def row_features(
    flat: tf.Tensor, lengths: tf.Tensor, first_lengths: tf.Tensor, *, shape: tuple[int, int]
) -> Features:
    """Return ids, segments and token types of rows, int32 of `shape`, 0 after the end of a row.

    Args:
        flat: ids of all rows, one after another, int32.
        lengths: ids of each row, int32.
        first_lengths: ids of each row before its second segment, int32.
        shape: rows and ids of a row.
    """
    features = text_features("encoder", flat, lengths, shape=shape)
    inside = tf.sequence_mask(lengths, shape[1])
    second = tf.logical_and(inside, tf.logical_not(tf.sequence_mask(first_lengths, shape[1])))
    return {**features, "encoder_types": tf.cast(second, tf.int32)}


def text_features(
    name: str, flat: tf.Tensor, lengths: tf.Tensor, *, shape: tuple[int, int]
) -> Features:
    """Return ids and segments of rows, int32 of `shape`, 0 after the end of a row.

    Args:
        name: of the features, before ``_ids`` and ``_segments``.
        flat: ids of all rows, one after another, int32.
        lengths: ids of each row, int32.
        shape: rows and ids of a row.
    """
    ragged = tf.RaggedTensor.from_row_lengths(flat, lengths, validate=False)
    return {
        f"{name}_ids": tf.ensure_shape(ragged.to_tensor(shape=shape), shape),
        f"{name}_segments": tf.sequence_mask(lengths, shape[1], tf.int32),
    }
