"""Rows of a masked language model: the positions to predict, and the ids in their places."""

from typing import NamedTuple

from t5repro.array_types import Int32, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.masked_pieces import MaskedRows, replace_masked
from t5repro.objectives.masked_positions import UNITS, RowTokens, budgets
from t5repro.objectives.shuffled_pieces import Shuffled, shuffle_trigrams


class Masking(NamedTuple):
    """What is predicted of some rows.

    Attributes:
        mask: masked positions, bool ``(rows, length)``.
        shuffled: the shuffled trigrams; none without them.
        rows: the rows after both.
    """

    mask: Mask
    shuffled: Shuffled | None
    rows: MaskedRows


def mask_rows(
    settings: PretrainSettings, ids: Int32, tokens: RowTokens, *, vocab: VocabSettings
) -> Masking:
    """Mask rows, and shuffle some of their trigrams.

    Args:
        settings: of pre-training.
        ids: with special pieces, int32 ``(rows, length)``.
        tokens: the rows.
        vocab: of the vocabulary.
    """
    masked_lm, most = settings.masked_lm, settings.targets_length
    mask = UNITS[masked_lm.unit].mask(tokens, budgets(settings, tokens))
    shuffled = None
    if masked_lm.shuffle_share:
        shuffled = shuffle_trigrams(masked_lm, tokens, mask, most=most)
    rows = replace_masked(
        masked_lm, ids, mask, tokens.draws, vocab=vocab, max_masked=most, shuffled=shuffled
    )
    return Masking(mask, shuffled, rows)
