"""Rows of a masked language model before and after masking, as lists of ids that can be shown."""

from collections.abc import Sequence

import numpy as np

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.examples import CorruptedSegment
from t5repro.objectives.masked_positions import row_tokens
from t5repro.objectives.masked_rows import mask_rows
from t5repro.objectives.row_draws import RowDraws
from t5repro.vocab.special_ids import PAD_ID
from t5repro.vocab.special_pieces import special_id


def mask_segments(
    settings: PretrainSettings,
    segments: Sequence[Sequence[int]],
    *,
    word_starts: Sequence[bool],
    vocab: VocabSettings,
    seed: int,
) -> list[CorruptedSegment]:
    """Mask segments, each a row of its own, as in pre-training.

    Args:
        settings: of pre-training.
        segments: ids of each segment, at most `inputs_length` - 2 of them.
        word_starts: whether the piece of each id begins a word.
        vocab: sizes of the vocabulary.
        seed: of the masks.
    """
    cls_id, sep_id = (special_id(piece, vocab.total_ids) for piece in ("[CLS]", "[SEP]"))
    rows = [[cls_id, *ids, sep_id] for ids in segments]
    width = settings.inputs_length
    ids = np.array([[*row, *[PAD_ID] * (width - len(row))] for row in rows], np.int32)
    lengths = np.array([len(row) for row in rows], np.int32)
    draws = RowDraws(seed, np.arange(len(rows)), np.zeros(len(rows), np.int64))
    tokens = row_tokens(settings, ids, lengths, draws, word_starts=np.array(word_starts))
    masked = mask_rows(settings, ids, tokens, vocab=vocab).rows
    return [
        CorruptedSegment(row, inputs[: len(row)], [target for target in targets if target])
        for row, inputs, targets in zip(
            rows, masked.ids.tolist(), masked.targets.tolist(), strict=True
        )
    ]
