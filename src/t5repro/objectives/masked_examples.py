"""Rows of a masked language model before and after masking, as lists of ids that can be shown."""

import contextlib
from collections.abc import Sequence

import tensorflow as tf

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.examples import CorruptedSegment
from t5repro.objectives.masked_pieces import replace_masked
from t5repro.objectives.masked_positions import UNITS, budgets, row_tokens
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
    """Mask segments, each a row of its own, with the operations of pre-training, on the CPU.

    Args:
        settings: of pre-training.
        segments: ids of each segment, at most `inputs_length` - 2 of them.
        word_starts: whether the piece of each id begins a word.
        vocab: sizes of the vocabulary.
        seed: of the masks.
    """
    with contextlib.suppress(RuntimeError):  # fixed after TensorFlow's first operation
        tf.config.set_visible_devices([], "GPU")  # others may need its memory
    cls_id, sep_id = (special_id(piece, vocab.total_ids) for piece in ("[CLS]", "[SEP]"))
    rows = [[cls_id, *ids, sep_id] for ids in segments]
    width = settings.inputs_length
    ids = tf.constant([[*row, *[PAD_ID] * (width - len(row))] for row in rows], tf.int32)
    lengths = tf.constant([len(row) for row in rows], tf.int32)
    draws = RowDraws(seed, tf.range(len(rows), dtype=tf.int64), tf.zeros(len(rows), tf.int64))
    tokens = row_tokens(settings, ids, lengths, draws, word_starts=tf.constant(word_starts))
    max_masked = settings.targets_length
    mask = UNITS[settings.masked_lm.unit].mask(tokens, budgets(settings, tokens))
    masked = replace_masked(
        settings.masked_lm, ids, mask, draws, vocab=vocab, max_masked=max_masked
    )
    return [
        CorruptedSegment(row, inputs[: len(row)], [target for target in targets if target])
        for row, inputs, targets in zip(
            rows, masked.ids.numpy().tolist(), masked.targets.numpy().tolist(), strict=True
        )
    ]
