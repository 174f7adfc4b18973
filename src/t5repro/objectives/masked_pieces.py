"""Replacement at masked positions: `[MASK]`, a random piece, or the piece itself.

Source: BERT, section 3.1 and ``create_masked_lm_predictions``; SpanBERT, section 3.1: one draw for
a whole span.
"""

from typing import NamedTuple

import tensorflow as tf

from t5repro.config.sections.pretrain import MaskedLM
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.vocab.special_ids import FIRST_PIECE_ID, PAD_ID
from t5repro.vocab.special_pieces import special_id


class MaskedRows(NamedTuple):
    """Rows after masking.

    Attributes:
        ids: int32 ``(rows, length)``.
        positions: those to predict, ascending, then 0, int32 ``(rows, max_masked)``.
        targets: original ids at these positions, then 0, int32 ``(rows, max_masked)``.
    """

    ids: tf.Tensor
    positions: tf.Tensor
    targets: tf.Tensor


def replace_masked(
    settings: MaskedLM,
    ids: tf.Tensor,
    mask: tf.Tensor,
    draws: RowDraws,
    *,
    vocab: VocabSettings,
    max_masked: int,
) -> MaskedRows:
    """Replace the ids at the masked positions.

    A random piece may be any piece except control pieces, sentinels and special pieces.

    Args:
        settings: shares of `[MASK]` and of random pieces.
        ids: int32 ``(rows, length)``.
        mask: positions to predict, at most `max_masked` in a row, bool ``(rows, length)``.
        draws: random numbers of the rows.
        vocab: of the vocabulary.
        max_masked: width of the targets.
    """
    width = ids.shape[1]
    choice = draws.uniform(Draw.REPLACEMENT, width)
    # SpanBERT makes one choice for a span: its pieces share the draw of one column.
    if settings.unit == "span":
        choice = tf.gather(choice, run_numbers(mask), batch_dims=1)
    pieces = vocab.vocab_size - FIRST_PIECE_ID
    random_ids = tf.cast(draws.uniform(Draw.RANDOM_PIECES, width) * pieces, tf.int32)
    # The product can round up to `pieces`.
    random_ids = tf.minimum(random_ids, pieces - 1) + FIRST_PIECE_ID
    is_random = choice < settings.mask_share + settings.random_share
    replacement = tf.where(is_random, random_ids, ids)
    is_mask_piece = choice < settings.mask_share
    replacement = tf.where(is_mask_piece, special_id("[MASK]", vocab.total_ids), replacement)
    # The largest of the negated masked positions are these positions in ascending order. Others
    # become `width`, after all positions.
    position = tf.range(width, dtype=tf.int32)[tf.newaxis]
    keys = tf.where(mask, -position, -width)
    if width < max_masked:
        keys = tf.pad(keys, [[0, 0], [0, max_masked - width]], constant_values=-width)
    positions = -tf.math.top_k(keys, k=max_masked, sorted=True).values
    is_filled = positions < width
    positions = tf.where(is_filled, positions, 0)
    targets = tf.where(is_filled, tf.gather(ids, positions, batch_dims=1), PAD_ID)
    return MaskedRows(tf.where(mask, replacement, ids), positions, targets)


def run_numbers(mask: tf.Tensor) -> tf.Tensor:
    """Return the number of the run of each masked position, from 0, ``(rows, length)``."""
    previous = tf.pad(mask[:, :-1], [[0, 0], [1, 0]])
    return tf.maximum(tf.cumsum(tf.cast(mask & ~previous, tf.int32), axis=1) - 1, 0)
