"""Replacement at masked positions: `[MASK]`, a random piece, or the piece itself.

Shuffled trigrams (`shuffled_pieces`) are predicted next to them, and have their own order.

Source: BERT, section 3.1 and ``create_masked_lm_predictions``; SpanBERT, section 3.1: one draw for
a whole span.
"""

from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.config.sections.pretrain import MaskedLM
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.objectives.shuffled_pieces import Shuffled
from t5repro.vocab.special_ids import FIRST_PIECE_ID, PAD_ID
from t5repro.vocab.special_pieces import special_id


class MaskedRows(NamedTuple):
    """Rows after masking.

    Attributes:
        ids: int32 ``(rows, length)``.
        positions: those to predict, ascending, then 0, int32 ``(rows, max_masked)``.
        targets: original ids at these positions, then 0, int32 ``(rows, max_masked)``.
    """

    ids: Int32
    positions: Int32
    targets: Int32


def replace_masked(
    settings: MaskedLM,
    ids: Int32,
    mask: Mask,
    draws: RowDraws,
    *,
    vocab: VocabSettings,
    max_masked: int,
    shuffled: Shuffled | None = None,
) -> MaskedRows:
    """Replace the ids at the masked positions, and put shuffled trigrams into their new order.

    A random piece may be any piece except control pieces, sentinels and special pieces.

    Args:
        settings: shares of `[MASK]` and of random pieces.
        ids: int32 ``(rows, length)``.
        mask: masked positions, bool ``(rows, length)``.
        draws: random numbers of the rows.
        vocab: of the vocabulary.
        max_masked: width of the targets, at least the masked and shuffled positions of a row.
        shuffled: trigrams without a masked position.
    """
    rows, width = mask.shape
    originals = ids[mask]  # row after row, as all values below
    choice = draws.uniform(Draw.REPLACEMENT, width)
    # SpanBERT makes one choice for a span: its pieces share the draw of one column.
    if settings.unit == "span":
        choice = np.take_along_axis(choice, run_numbers(mask), axis=1)
    choice = choice[mask]
    pieces = vocab.vocab_size - FIRST_PIECE_ID
    random_ids = draws.uniform(Draw.RANDOM_PIECES, width)[mask] * pieces
    # The product can round up to `pieces`.
    random_ids = np.minimum(random_ids.astype(np.int32), pieces - 1) + FIRST_PIECE_ID
    is_random = choice < settings.mask_share + settings.random_share
    replacement = np.where(is_random, random_ids, originals)
    is_mask_piece = choice < settings.mask_share
    replacement[is_mask_piece] = special_id("[MASK]", vocab.total_ids)
    masked_ids, predicted = ids.copy(), mask
    if shuffled is not None:
        masked_ids = np.take_along_axis(ids, shuffled.sources, axis=1)
        predicted = mask | shuffled.places
    masked_ids[mask] = replacement
    is_filled = np.arange(max_masked) < predicted.sum(axis=1)[:, np.newaxis]
    positions = np.zeros((rows, max_masked), np.int32)
    positions[is_filled] = np.nonzero(predicted)[1]
    targets = np.full((rows, max_masked), PAD_ID, np.int32)
    targets[is_filled] = ids[predicted]
    return MaskedRows(masked_ids, positions, targets)


def run_numbers(mask: Mask) -> Int64:
    """Return the number of the run of each masked position, from 0, ``(rows, length)``."""
    starts = mask & np.diff(mask, axis=1, prepend=False)
    return np.maximum(np.cumsum(starts, axis=1) - 1, 0)
