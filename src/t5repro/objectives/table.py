"""The table of the paper's objectives: a mask and a corruption for each side (section 3.3).

`OBJECTIVES` has one entry per kind of row in the paper's tables 4 to 7; mask, density and mean
span length are separate settings. To add an objective, add an entry and its name to
`PretrainSettings.objective`.
"""

from collections.abc import Callable
from typing import NamedTuple

from t5repro.array_types import Int32, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.corruption import (
    Corrupted,
    append_final_sentinel,
    drop_noise,
    noise_to_one_sentinel,
    noise_to_random_token_or_sentinel,
    permute_noise,
    spans_to_unique_sentinels,
)
from t5repro.objectives.masks import (
    first_positions,
    iid_noise_mask,
    random_prefix_mask,
    random_spans_noise_mask,
)
from t5repro.objectives.philox import Seed


class Segment(NamedTuple):
    """A batch of segments with their noise mask: the input of a corruption.

    Attributes:
        tokens: int32 ``(segments, max_tokens)``.
        mask: True at noise.
        valid: True up to the end of each segment.
        total_ids: pieces and sentinels of the vocabulary.
        seed: two integers, for corruptions that draw.
    """

    tokens: Int32
    mask: Mask
    valid: Mask
    total_ids: int
    seed: Seed


Corruption = Callable[[Segment], Corrupted]
MaskDraw = Callable[[PretrainSettings, Int32, int, Seed], Mask]


class Objective(NamedTuple):
    """From a segment to a pair of inputs and targets.

    Attributes:
        mask: function of settings, lengths ``(segments,)``, width and seed.
        inputs: corruption that gives the inputs; None if the objective has none.
        targets: corruption that gives the targets.
        unique_sentinels: whether each run of noise needs a sentinel of its own.
    """

    mask: MaskDraw
    inputs: Corruption | None
    targets: Corruption
    unique_sentinels: bool = False


def noise_mask(settings: PretrainSettings, lengths: Int32, width: int, seed: Seed) -> Mask:
    """Draw the mask of the setting `noise_mask`."""
    if settings.noise_mask == "iid":
        return iid_noise_mask(
            lengths, max_tokens=width, noise_density=settings.noise_density, seed=seed
        )
    return random_spans_noise_mask(
        lengths,
        max_tokens=width,
        noise_density=settings.noise_density,
        mean_noise_span_length=settings.mean_noise_span_length,
        seed=seed,
    )


def suffix_mask(settings: PretrainSettings, lengths: Int32, width: int, seed: Seed) -> Mask:
    """Make all tokens after a random prefix noise."""
    prefix = random_prefix_mask(
        lengths, max_tokens=width, noise_density=settings.noise_density, seed=seed
    )
    return first_positions(lengths, width) & ~prefix


def full_mask(settings: PretrainSettings, lengths: Int32, width: int, seed: Seed) -> Mask:
    """Make every token noise."""
    return first_positions(lengths, width)


def _whole_text(segment: Segment) -> Corrupted:
    return Corrupted(segment.tokens, segment.valid)


def _noise_dropped(segment: Segment) -> Corrupted:
    return drop_noise(segment.tokens, segment.mask, segment.valid)


def _noise_only(segment: Segment) -> Corrupted:
    return drop_noise(segment.tokens, ~segment.mask, segment.valid)


def _spans_replaced(segment: Segment) -> Corrupted:
    return spans_to_unique_sentinels(
        segment.tokens, segment.mask, segment.valid, total_ids=segment.total_ids
    )


def _rest_replaced(segment: Segment) -> Corrupted:
    return _spans_replaced(segment._replace(mask=~segment.mask))


def _one_sentinel(segment: Segment) -> Corrupted:
    return noise_to_one_sentinel(
        segment.tokens, segment.mask, segment.valid, total_ids=segment.total_ids
    )


def _random_or_sentinel(segment: Segment) -> Corrupted:
    return noise_to_random_token_or_sentinel(
        segment.tokens,
        segment.mask & segment.valid,
        segment.valid,
        total_ids=segment.total_ids,
        seed=segment.seed,
    )


def _permuted(segment: Segment) -> Corrupted:
    return permute_noise(segment.tokens, segment.mask, segment.valid, seed=segment.seed)


OBJECTIVES: dict[str, Objective] = {
    "replace_spans": Objective(noise_mask, _spans_replaced, _rest_replaced, unique_sentinels=True),
    "drop_tokens": Objective(noise_mask, _noise_dropped, _noise_only),
    "mass_style": Objective(noise_mask, _one_sentinel, _whole_text),
    "bert_style": Objective(noise_mask, _random_or_sentinel, _whole_text),
    "deshuffling": Objective(full_mask, _permuted, _whole_text),
    "prefix_lm": Objective(suffix_mask, _noise_dropped, _noise_only),
    "lm": Objective(full_mask, None, _whole_text),
}


def corrupt(settings: PretrainSettings, segment: Segment) -> tuple[Corrupted | None, Corrupted]:
    """Return the inputs, None if the objective has none, and the targets.

    Args:
        settings: of pre-training.
        segment: segments with the objective's mask.
    """
    objective = OBJECTIVES[settings.objective]
    targets = objective.targets(segment)
    if settings.final_sentinel and objective.unique_sentinels:
        targets = append_final_sentinel(
            targets, segment.mask, segment.valid, total_ids=segment.total_ids
        )
    return objective.inputs(segment) if objective.inputs else None, targets
