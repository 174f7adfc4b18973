"""Rows of ids of all examples in memory, and the features of a batch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Array, Int32, Int64
from t5repro.inputs.batches import Features, FlatSegments, gather_pieces, pad_segments
from t5repro.model.segment_rows import SegmentRow, summary_types
from t5repro.objectives.masks import first_positions
from t5repro.vocab.special_ids import PAD_ID


class EncodedTexts(NamedTuple):
    """The texts of all examples as ids.

    Attributes:
        ids: of all rows, one after another, int32.
        starts: first id of each row in `ids`, int64.
        lengths: ids of each row, int32; 0 where an example has no such text.
    """

    ids: Int32
    starts: Int64
    lengths: Int32

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> "EncodedTexts":
        """Return the ids of texts."""
        lengths = np.fromiter(map(len, texts), np.int32, len(texts))
        ids = np.fromiter((token for text in texts for token in text), np.int32, lengths.sum())
        return cls(ids, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)

    def rows(self, rows: Array) -> FlatSegments:
        """Return the ids of some rows, one after another."""
        lengths = self.lengths[rows]
        return FlatSegments(gather_pieces(self.ids, self.starts[rows], lengths), lengths)


class EncodedOption(NamedTuple):
    """The rows of all examples with one of their options, or without any.

    Attributes:
        texts: ids of each row; empty if an example has fewer options.
        swapped: ids with the segments in reverse order, if the network reads both orders.
        first_lengths: ids of each row before its second segment, int32.
    """

    texts: EncodedTexts
    swapped: EncodedTexts | None
    first_lengths: Int32

    @classmethod
    def of(cls, rows: Sequence[SegmentRow], *, swaps: bool) -> "EncodedOption":
        """Return the ids of rows."""
        firsts = np.fromiter((row.first_length for row in rows), np.int32, len(rows))
        return cls(
            EncodedTexts.of([row.ids for row in rows]),
            EncodedTexts.of([row.swapped for row in rows]) if swaps else None,
            firsts,
        )


def row_features(flat: FlatSegments, first_lengths: Int32, *, width: int) -> Features:
    """Return ids, segments and token types, int32 ``(rows, width)``, 0 after the end of a row.

    Args:
        flat: ids of all rows.
        first_lengths: ids of each row before its second segment, int32.
        width: ids of a row.
    """
    second = first_positions(flat.lengths, width) & ~first_positions(first_lengths, width)
    return {**text_features("encoder", flat, width=width), "encoder_types": second.astype(np.int32)}


def summary_features(flat: FlatSegments, first_lengths: Int32, *, width: int) -> Features:
    """Return `row_features` of rows that end with `[CLS]` and are padded on the left.

    Args:
        flat: ids of all rows.
        first_lengths: ids of each row before its second segment, int32.
        width: ids of a row.
    """
    is_filled = first_positions(flat.lengths, width)[:, ::-1]
    ids = np.full(is_filled.shape, PAD_ID, np.int32)
    ids[is_filled] = flat.ids
    return {
        "encoder_ids": ids,
        "encoder_segments": is_filled.astype(np.int32),
        "encoder_types": summary_types(first_lengths, flat.lengths, width),
    }


def text_features(name: str, flat: FlatSegments, *, width: int) -> Features:
    """Return ids and segments, int32 ``(rows, width)``, 0 after the end of a row.

    Args:
        name: of the features, before ``_ids`` and ``_segments``.
        flat: ids of all rows.
        width: ids of a row.
    """
    return {
        f"{name}_ids": pad_segments(flat, width),
        f"{name}_segments": first_positions(flat.lengths, width).astype(np.int32),
    }
