"""Segments before and after corruption, as lists of ids that a reader can look at."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.corruption import Corrupted, flatten
from t5repro.objectives.denoisers import Seeds, Texts, apply_objective
from t5repro.objectives.row_lengths import corruption_limits
from t5repro.vocab.special_ids import PAD_ID


class CorruptedSegment(NamedTuple):
    """A segment with its inputs and targets, which both end in EOS.

    Attributes:
        text: ids of the segment.
        inputs: ids of the inputs; empty if the objective has none.
        targets: ids of the targets.
    """

    text: list[int]
    inputs: list[int]
    targets: list[int]


def corrupt_segments(
    settings: PretrainSettings,
    segments: Sequence[Sequence[int]],
    *,
    total_ids: int,
    extra_ids: int,
    seeds: tuple[tuple[int, int], tuple[int, int]],
    denoisers: Sequence[int] | None = None,
) -> list[CorruptedSegment]:
    """Corrupt segments as pre-training does.

    Args:
        settings: of pre-training.
        segments: ids of each segment, at least 2 and at most `segment_length` of them.
        total_ids: pieces and sentinels of the vocabulary.
        extra_ids: sentinels of the vocabulary.
        seeds: of the noise and of corruptions that draw.
        denoisers: index of the denoiser of each segment, of a mixture of denoisers.
    """
    lengths = np.asarray([len(segment) for segment in segments], np.int32)
    width = int(lengths.max())
    tokens = np.array([[*ids, *[PAD_ID] * (width - len(ids))] for ids in segments], np.int32)
    noise, corruption = (np.array(seed, np.int32) for seed in seeds)
    pair = apply_objective(
        settings,
        Texts(tokens, lengths, total_ids, extra_ids),
        Seeds(noise, corruption, denoiser=noise),
        None if denoisers is None else np.array(denoisers, np.int32),
    )
    if settings.concatenate_documents:  # a segment has a row of its own
        row = np.asarray([settings.inputs_length, settings.targets_length], np.int32)
        limits = np.tile(row, (len(lengths), 1))
    else:
        limits = corruption_limits(settings, width)[lengths]
    inputs, targets = (_ids(side, limits[:, column]) for column, side in enumerate(pair[:2]))
    return [
        CorruptedSegment(list(ids), inputs[row] if inputs else [], targets[row])
        for row, ids in enumerate(segments)
    ]


def _ids(side: Corrupted | None, limits: Int32) -> list[list[int]]:
    """Return the ids of one side of each segment; no lists if the objective lacks the side."""
    if side is None:
        return []
    flat = flatten(side, limits=limits)
    split_offsets = np.cumsum(flat.lengths)[:-1]
    return [segment_ids.tolist() for segment_ids in np.split(flat.ids, split_offsets)]
