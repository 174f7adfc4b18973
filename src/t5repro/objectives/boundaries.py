"""Inputs of SpanBERT's boundary objective: each masked piece of a span from the span's two borders.

Source: SpanBERT, section 3.2, and its code: of a span only the first 15 pieces, and no span at an
edge of the row or of one of its segments.
"""

from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Mask

LONGEST = 15  # pieces of a span that are predicted from its borders
NO_TARGET = -1


class Boundaries(NamedTuple):
    """The borders of the spans of masked pieces.

    Attributes:
        borders: positions before and after the span of each masked piece, int32
            ``(rows, most, 2)``; 0 without one.
        index_in_span: index of each masked piece, `NO_TARGET` if it is not predicted, int32
            ``(rows, most)``.
    """

    borders: Int32
    index_in_span: Int32


def boundaries(mask: Mask, positions: Int32, targets: Int32, is_text: Mask) -> Boundaries:
    """Return the borders of the span of each masked piece; spans that touch are one.

    Args:
        mask: positions to predict, bool ``(rows, length)``.
        positions: these positions in ascending order, then 0, int32 ``(rows, most)``.
        targets: original ids at the positions, then 0, of the same shape.
        is_text: whether a position has a piece of text, not a special piece or padding, bool
            ``(rows, length)``.
    """
    width = mask.shape[1]
    position = np.arange(width, dtype=np.int32)
    starts = np.where(mask & np.diff(mask, axis=1, prepend=False), position, 0)
    lasts = np.where(mask & np.diff(mask, axis=1, append=False), position, width)
    # Running maximum and minimum: the nearest start up to each position, and the nearest last
    # position from it on. At a masked position they are the edges of its own span.
    nearest_start = np.maximum.accumulate(starts, axis=1)
    nearest_last = np.minimum.accumulate(lasts[:, ::-1], axis=1)[:, ::-1]
    first = np.take_along_axis(nearest_start, positions, axis=1)
    last = np.take_along_axis(nearest_last, positions, axis=1)
    index = positions - first
    # SpanBERT predicts from the positions just outside the span. [CLS] and [SEP] cannot be
    # borders: the row, or the segment, ends there.
    has_borders = np.ones_like(positions, bool)
    for border in (first - 1, last + 1):
        has_borders &= np.take_along_axis(is_text, np.clip(border, 0, width - 1), axis=1)
    is_target = (targets > 0) & has_borders & (index < LONGEST)
    borders = np.stack([first - 1, last + 1], axis=-1)
    return Boundaries(
        np.where(is_target[..., np.newaxis], borders, 0), np.where(is_target, index, NO_TARGET)
    )
