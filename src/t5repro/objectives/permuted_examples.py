"""Rows of predictions in any order, as lists of ids that can be shown."""

from collections.abc import Sequence

import numpy as np

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.examples import CorruptedSegment
from t5repro.objectives.permutation import predictions
from t5repro.objectives.row_draws import RowDraws
from t5repro.vocab.special_pieces import special_id


def order_segments(
    settings: PretrainSettings,
    segments: Sequence[Sequence[int]],
    *,
    word_starts: Sequence[bool],
    vocab: VocabSettings,
    seed: int,
) -> list[CorruptedSegment]:
    """Predict segments, each a row of its own, as in pre-training.

    The targets are in the order of their prediction. The inputs show `[MASK]` at their positions,
    which the network hides by the order: it reads their ids at the positions after them.

    Args:
        settings: of pre-training.
        segments: ids of each segment, at most `inputs_length` - 2 of them.
        word_starts: whether the piece of each id begins a word.
        vocab: sizes of the vocabulary.
        seed: of the predictions.
    """
    names = ("[MASK]", "[SEP]", "[CLS]")
    mask_id, *ends = (special_id(piece, vocab.total_ids) for piece in names)
    shown = []
    for number, segment in enumerate(segments):
        row = np.array([*segment, *ends], np.int32)
        targets = max(2, len(row) * settings.targets_length // settings.inputs_length)
        of_row = settings.model_copy(
            update={"inputs_length": len(row), "targets_length": min(targets, len(segment))}
        )
        prediction = predictions(
            of_row,
            row[np.newaxis],
            (np.arange(len(row)) >= len(segment))[np.newaxis],
            np.zeros(1, bool),
            RowDraws(seed, np.array([number]), np.zeros(1, np.int64)),
            word_starts=np.array(word_starts),
        )
        positions = prediction.positions[0][prediction.targets[0] > 0]
        masked = row.copy()
        masked[positions] = mask_id
        by_order = positions[np.argsort(prediction.order[0, positions])]
        shown.append(CorruptedSegment(row.tolist(), masked.tolist(), row[by_order].tolist()))
    return shown
