"""Inputs of SpanBERT's boundary objective: each masked piece of a span from the span's two borders.

Source: SpanBERT, section 3.2, and its code: of a span only the first 15 pieces, and no span at an
edge of the row or of one of its segments.
"""

from typing import NamedTuple

import tensorflow as tf

LONGEST = 15  # pieces of a span that are predicted from its borders
NO_TARGET = -1


class Boundaries(NamedTuple):
    """The borders of the spans of masked pieces.

    Attributes:
        borders: positions before and after the span of each masked piece, int32
            ``(rows, most, 2)``; 0 without one.
        index: index of each masked piece in its span, `NO_TARGET` if it is not predicted, int32
            ``(rows, most)``.
    """

    borders: tf.Tensor
    index: tf.Tensor


def boundaries(
    mask: tf.Tensor, positions: tf.Tensor, targets: tf.Tensor, is_text: tf.Tensor
) -> Boundaries:
    """Return the borders of the span of each masked piece; spans that touch are one.

    Args:
        mask: positions to predict, bool ``(rows, length)``.
        positions: these positions in ascending order, then 0, int32 ``(rows, most)``.
        targets: original ids at the positions, then 0, of the same shape.
        is_text: whether a position has a piece of text, not a special piece or padding, bool
            ``(rows, length)``.
    """
    width = mask.shape[1]
    position = tf.range(width)[tf.newaxis]
    previous = tf.pad(mask[:, :-1], [[0, 0], [1, 0]])
    following = tf.pad(mask[:, 1:], [[0, 0], [0, 1]])
    start_positions = tf.where(mask & ~previous, position, 0)
    last_positions = tf.where(mask & ~following, position, width)
    # Running maximum and minimum: the nearest start up to each position, and the nearest last
    # position from it on. At a masked position they are the edges of its own span.
    nearest_start = tf.scan(tf.maximum, tf.transpose(start_positions))
    nearest_last = tf.scan(tf.minimum, tf.transpose(last_positions), reverse=True)
    first = tf.gather(tf.transpose(nearest_start), positions, batch_dims=1)
    last = tf.gather(tf.transpose(nearest_last), positions, batch_dims=1)
    index = positions - first
    # SpanBERT predicts from the positions just outside the span.
    borders = tf.stack([first - 1, last + 1], axis=-1)
    # [CLS] and [SEP] cannot be borders: the row, or the segment, ends there.
    inside = tf.clip_by_value(borders, 0, width - 1)
    has_borders = tf.reduce_all(tf.gather(is_text, inside, batch_dims=1), axis=-1)
    is_target = (targets > 0) & has_borders & (index < LONGEST)
    return Boundaries(
        tf.where(is_target[..., tf.newaxis], borders, 0), tf.where(is_target, index, NO_TARGET)
    )
