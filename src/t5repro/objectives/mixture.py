"""An objective, or a mixture of denoisers, applied to segments (paper section 3.3; UL2).

UL2 trains on several denoisers at once: span corruption with few and short spans (R), with many or
long ones (X), and a prefix language model (S). Each is an entry of `pretrain.denoisers` and
corrupts as the objective of its name in `table`. A mode token at the start of the inputs tells
the model which kind it reads.

Source: Tay et al., 2022, sections 3.1 to 3.3 and appendix C.4.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t5repro.config.sections.pretrain import Denoiser, PretrainSettings
from t5repro.objectives.corruption import Corrupted, sentinel_overflow
from t5repro.objectives.masks import PHILOX
from t5repro.objectives.mode_tokens import MODE_TOKENS, mode_token_id
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

    tokens: tf.Tensor
    lengths: tf.Tensor
    total_ids: int
    extra_ids: int


class Seeds(NamedTuple):
    """Two int32 for each use of random numbers.

    Attributes:
        noise: of the noise masks.
        corruption: of corruptions that draw.
        denoiser: of the denoiser of each segment.
    """

    noise: tf.Tensor
    corruption: tf.Tensor
    denoiser: tf.Tensor


class CorruptedPair(NamedTuple):
    """Segments after corruption.

    Attributes:
        inputs: None if the objective has none.
        targets: of the same segments.
        missing_sentinels: sentinels that each segment lacks, int32 ``(segments,)``.
    """

    inputs: Corrupted | None
    targets: Corrupted
    missing_sentinels: tf.Tensor


def draw_denoisers(
    denoisers: tuple[Denoiser, ...], segments: int | tf.Tensor, seed: tf.Tensor
) -> tf.Tensor:
    """Draw the index of a denoiser for each segment, int32 ``(segments,)``.

    Args:
        denoisers: of the mixture, with their weights.
        segments: number of draws.
        seed: two int32.
    """
    cumulative_weights = np.cumsum([denoiser.weight for denoiser in denoisers])
    draws = tf.random.stateless_uniform([segments], seed, alg=PHILOX)
    # The bound of the last denoiser, 1, is omitted, so rounding cannot give an index after it.
    bounds = tf.constant(cumulative_weights[:-1] / cumulative_weights[-1], tf.float32)
    return tf.reduce_sum(tf.cast(draws[:, tf.newaxis] >= bounds, tf.int32), axis=1)


def apply_objective(
    settings: PretrainSettings, texts: Texts, seeds: Seeds, denoisers: tf.Tensor | None = None
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
        denoisers = draw_denoisers(settings.denoisers, tf.shape(texts.lengths)[0], seeds.denoiser)
    if any(denoiser.mode_token for denoiser in settings.denoisers):
        # A span that uses the sentinel of a mode token lacks one of its own.
        free = texts._replace(extra_ids=texts.extra_ids - len(MODE_TOKENS))
    else:
        free = texts
    # Every denoiser corrupts all segments: static shapes, and a selection by row in place of a
    # branch for each segment.
    pairs = [
        _apply_single(denoiser_setting, free, seeds)
        for denoiser_setting in denoiser_settings(settings)
    ]
    selected = pairs[0]
    for number, pair in enumerate(pairs[1:], start=1):
        is_selected = tf.equal(denoisers, number)
        selected = tf.nest.map_structure(
            lambda candidate, current, rows=is_selected: tf.where(
                _rows_like(rows, candidate), candidate, current
            ),
            pair,
            selected,
        )
    if selected.inputs is None:
        return selected
    return selected._replace(
        inputs=_prepend_mode_token(selected.inputs, settings, texts, denoisers)
    )


def _apply_single(settings: PretrainSettings, texts: Texts, seeds: Seeds) -> CorruptedPair:
    """Corrupt all segments under the objective of the settings."""
    objective = OBJECTIVES[settings.objective]
    width = texts.tokens.shape[1]
    valid = tf.sequence_mask(texts.lengths, width)
    mask = objective.mask(settings, texts.lengths, width, seeds.noise)
    segment = Segment(texts.tokens, mask, valid, texts.total_ids, seeds.corruption)
    missing = tf.zeros_like(texts.lengths)
    if objective.unique_sentinels:
        missing = sentinel_overflow(
            mask, valid, extra_ids=texts.extra_ids, final_sentinel=settings.final_sentinel
        )
    return CorruptedPair(*corrupt(settings, segment), missing)


def _rows_like(rows: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Return a value of each row in a shape that broadcasts to `values`."""
    return rows if values.shape.rank == 1 else rows[:, tf.newaxis]


def _prepend_mode_token(
    inputs: Corrupted, settings: PretrainSettings, texts: Texts, denoisers: tf.Tensor
) -> Corrupted:
    """Prepend the mode token of each segment's denoiser."""
    names = [denoiser.mode_token for denoiser in settings.denoisers]
    ids = [
        mode_token_id(name, total_ids=texts.total_ids, extra_ids=texts.extra_ids) if name else 0
        for name in names
    ]
    first_ids = tf.gather(tf.constant(ids, tf.int32), denoisers)[:, tf.newaxis]
    first_keep = tf.gather(tf.constant([bool(name) for name in names]), denoisers)[:, tf.newaxis]
    return Corrupted(
        tf.concat([first_ids, inputs.ids], axis=1), tf.concat([first_keep, inputs.keep], axis=1)
    )
