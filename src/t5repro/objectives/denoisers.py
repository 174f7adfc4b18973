"""An objective, or a mixture of denoisers, applied to segments (paper section 3.3; UL2).

UL2 trains on several denoisers at once: span corruption with few and short spans (R), with many or
long ones (X), and a prefix language model (S). Each is an entry of `pretrain.denoisers` and
corrupts as the objective of its name in `table`. A mode token at the start of the inputs tells
the model which kind it reads.

Source: Tay et al., 2022, sections 3.1 to 3.3 and appendix C.4.
"""

from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Mask
from t5repro.config.sections.pretrain import Denoiser, PretrainSettings
from t5repro.objectives.corruption import Corrupted, sentinel_overflow
from t5repro.objectives.masks import first_positions
from t5repro.objectives.mode_tokens import MODE_TOKENS, mode_token_id
from t5repro.objectives.philox import Seed, uniform
from t5repro.objectives.row_lengths import denoiser_settings
from t5repro.objectives.table import OBJECTIVES, Segment, corrupt


class Texts(NamedTuple):
    """A batch of segments before corruption.

    Attributes:
        tokens: int32 ``(segments, max_tokens)``.
        lengths: tokens of each segment, int32 ``(segments,)``.
        total_ids: pieces and sentinels of the vocabulary.
        extra_ids: sentinels of the vocabulary.
    """

    tokens: Int32
    lengths: Int32
    total_ids: int
    extra_ids: int


class Seeds(NamedTuple):
    """Two integers for each use of random numbers.

    Attributes:
        noise: of the noise masks.
        corruption: of corruptions that draw.
        denoiser: of the denoiser of each segment.
    """

    noise: Seed
    corruption: Seed
    denoiser: Seed


class CorruptedPair(NamedTuple):
    """Segments after corruption.

    Attributes:
        inputs: None if the objective has none.
        targets: of the same segments.
        missing_sentinels: sentinels that each segment lacks, int32 ``(segments,)``.
    """

    inputs: Corrupted | None
    targets: Corrupted
    missing_sentinels: Int32


def draw_denoisers(denoisers: tuple[Denoiser, ...], segments: int, seed: Seed) -> Int32:
    """Draw the index of a denoiser for each segment, int32 ``(segments,)``.

    Args:
        denoisers: of the mixture, with their weights.
        segments: number of draws.
        seed: two integers.
    """
    cumulative_weights = np.cumsum([denoiser.weight for denoiser in denoisers])
    # The bound of the last denoiser, 1, is omitted, so rounding cannot give an index after it.
    bounds = (cumulative_weights[:-1] / cumulative_weights[-1]).astype(np.float32)
    drawn = uniform(seed, segments)[:, np.newaxis]
    return (drawn >= bounds).sum(axis=1, dtype=np.int32)


def apply_objective(
    settings: PretrainSettings, texts: Texts, seeds: Seeds, denoisers: Int32 | None = None
) -> CorruptedPair:
    """Corrupt segments.

    Args:
        settings: of pre-training.
        texts: the segments.
        seeds: of all draws.
        denoisers: index of the denoiser of each segment, int32 ``(segments,)``; if absent, drawn.
    """
    if not settings.denoisers:
        return _apply_single(settings, texts, seeds)
    if denoisers is None:
        denoisers = draw_denoisers(settings.denoisers, len(texts.lengths), seeds.denoiser)
    if any(denoiser.mode_token for denoiser in settings.denoisers):
        # A span that uses the sentinel of a mode token lacks one of its own.
        free = texts._replace(extra_ids=texts.extra_ids - len(MODE_TOKENS))
    else:
        free = texts
    # Every denoiser corrupts all segments, and a selection by row takes the place of a loop over
    # segments: the draws of a segment do not depend on the denoisers of the others.
    pairs = [
        _apply_single(denoiser_setting, free, seeds)
        for denoiser_setting in denoiser_settings(settings)
    ]
    selected = pairs[0]
    for number, pair in enumerate(pairs[1:], start=1):
        selected = _select(denoisers == number, pair, selected)
    if selected.inputs is None:
        return selected
    return selected._replace(
        inputs=_prepend_mode_token(selected.inputs, settings, texts, denoisers)
    )


def _select(rows: Mask, pair: CorruptedPair, other: CorruptedPair) -> CorruptedPair:
    """Return the pair at the rows of the mask, the other one elsewhere."""
    inputs = None
    if pair.inputs is not None and other.inputs is not None:
        inputs = _select_side(rows, pair.inputs, other.inputs)
    return CorruptedPair(
        inputs,
        _select_side(rows, pair.targets, other.targets),
        np.where(rows, pair.missing_sentinels, other.missing_sentinels),
    )


def _select_side(rows: Mask, side: Corrupted, other: Corrupted) -> Corrupted:
    column = rows[:, np.newaxis]
    return Corrupted(np.where(column, side.ids, other.ids), np.where(column, side.keep, other.keep))


def _apply_single(settings: PretrainSettings, texts: Texts, seeds: Seeds) -> CorruptedPair:
    """Corrupt all segments under the objective of the settings."""
    objective = OBJECTIVES[settings.objective]
    width = texts.tokens.shape[1]
    valid = first_positions(texts.lengths, width)
    mask = objective.mask(settings, texts.lengths, width, seeds.noise)
    segment = Segment(texts.tokens, mask, valid, texts.total_ids, seeds.corruption)
    missing = np.zeros_like(texts.lengths)
    if objective.unique_sentinels:
        missing = sentinel_overflow(
            mask, valid, extra_ids=texts.extra_ids, final_sentinel=settings.final_sentinel
        )
    return CorruptedPair(*corrupt(settings, segment), missing)


def _prepend_mode_token(
    inputs: Corrupted, settings: PretrainSettings, texts: Texts, denoisers: Int32
) -> Corrupted:
    """Prepend the mode token of each segment's denoiser."""
    names = [denoiser.mode_token for denoiser in settings.denoisers]
    ids = [
        mode_token_id(name, total_ids=texts.total_ids, extra_ids=texts.extra_ids) if name else 0
        for name in names
    ]
    first_ids = np.array(ids, np.int32)[denoisers]
    first_keep = np.array([bool(name) for name in names])[denoisers]
    return Corrupted(
        np.column_stack([first_ids, inputs.ids]), np.column_stack([first_keep, inputs.keep])
    )
