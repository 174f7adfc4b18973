"""Places of SpanBERT's boundary objective: each masked piece of a span from the span's two borders.

Source: SpanBERT, section 3.2, and its code: of a span only the first 15 pieces, and no span at an
edge of the row.
"""

from typing import NamedTuple

import tensorflow as tf

LONGEST = 15  # pieces of a span that are predicted from its borders
NO_TARGET = -1


class Boundaries(NamedTuple):
    """The places of the masked pieces of rows.

    Attributes:
        borders: positions before and after the span of each masked piece, int32
            ``(rows, most, 2)``; 0 without one.
        index: index of each masked piece in its span, `NO_TARGET` if it is not predicted, int32
            ``(rows, most)``.
    """

    borders: tf.Tensor
    index: tf.Tensor


def boundaries(
    mask: tf.Tensor, positions: tf.Tensor, targets: tf.Tensor, lengths: tf.Tensor
) -> Boundaries:
    """Return the borders of the span of each masked piece; spans that touch are one.

    Args:
        mask: places to predict, bool ``(rows, length)``.
        positions: the places in ascending order, then 0, int32 ``(rows, most)``.
        targets: original ids at the places, then 0, of the same shape.
        lengths: pieces of each row, with ``[CLS]`` and ``[SEP]``, int32 ``(rows,)``.
    """
    width = mask.shape[1]
    position = tf.range(width)[tf.newaxis]
    before = tf.pad(mask[:, :-1], [[0, 0], [1, 0]])
    after = tf.pad(mask[:, 1:], [[0, 0], [0, 1]])
    starts = tf.where(mask & ~before, position, 0)
    ends = tf.where(mask & ~after, position, width)
    # The last start up to each place, and the first end from it on.
    start = tf.scan(tf.maximum, tf.transpose(starts))
    end = tf.scan(tf.minimum, tf.transpose(ends), reverse=True)
    first = tf.gather(tf.transpose(start), positions, batch_dims=1)
    last = tf.gather(tf.transpose(end), positions, batch_dims=1)
    index = positions - first
    # The row without [CLS] and [SEP] begins at 1 and ends before the last position.
    touches_edge = (first <= 1) | (last >= lengths[:, tf.newaxis] - 2)
    is_target = (targets > 0) & ~touches_edge & (index < LONGEST)
    borders = tf.stack([first - 1, last + 1], axis=-1)
    return Boundaries(
        tf.where(is_target[..., tf.newaxis], borders, 0), tf.where(is_target, index, NO_TARGET)
    )
