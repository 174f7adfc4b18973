"""Tokens of the segments of an objective, and what they reserve in a row (paper section 3.1.4).

Without TensorFlow, as packing and audits need them before anything is computed.
"""

import numpy as np

from t5repro.array_types import Int32
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.errors import SettingsError
from t5repro.objectives.lengths import (
    SpanLengths,
    corrupted_lengths,
    random_spans_lengths,
    span_counts,
)


def segment_length(settings: PretrainSettings) -> int:
    """Return the raw tokens of the longest segment with inputs and targets that fit a row.

    Raises:
        SettingsError: the targets of random spans or of a denoiser do not fit `targets_length`.

    Source: paper section 3.1.4; released code: one token less than a row, for EOS, except that
    ``random_spans_helper`` makes segments longer by the tokens that sentinels replace.
    """
    if settings.objective == "mixture_of_denoisers":
        return _longest_of_denoisers(settings)
    if settings.objective == "lm":
        return settings.targets_length - 1
    if settings.noise_mask == "iid" or settings.objective != "replace_spans":
        return settings.inputs_length - 1
    lengths = _random_spans(settings)
    targets = lengths.targets + settings.final_sentinel
    # Inputs fit by construction; only the targets can be too long.
    if targets > settings.targets_length:
        raise SettingsError(
            f"pretrain.targets_length is {settings.targets_length}, but span corruption of "
            f"{settings.inputs_length} inputs gives {targets} targets; set it to {targets} or "
            f"more, or shorten pretrain.inputs_length"
        )
    return lengths.tokens


def denoiser_settings(settings: PretrainSettings) -> list[PretrainSettings]:
    """Return settings in which each denoiser of a mixture is an objective of its own.

    The inputs are shorter by the mode token.
    """
    return [
        settings.model_copy(
            update={
                "objective": denoiser.objective,
                "noise_mask": "random_spans",
                "noise_density": denoiser.noise_density,
                "mean_noise_span_length": denoiser.mean_noise_span_length,
                "inputs_length": settings.inputs_length - bool(denoiser.mode_token),
                "denoisers": (),
            }
        )
        for denoiser in settings.denoisers
    ]


def _longest_of_denoisers(settings: PretrainSettings) -> int:
    """Return the raw tokens of the longest segment that fits a row under every denoiser.

    Segments are cut before a denoiser is drawn, as UL2 does with sequences of 512 tokens.
    """
    longest = min(
        _random_spans(denoiser).tokens
        if denoiser.objective == "replace_spans"
        else denoiser.inputs_length - 1
        for denoiser in denoiser_settings(settings)
    )
    targets = int(_reserved_lengths(settings, longest)[-1, 1])
    if targets > settings.targets_length:
        raise SettingsError(
            f"pretrain.targets_length is {settings.targets_length}, but a denoiser of "
            f"{settings.inputs_length} inputs can give {targets} targets; set it to {targets} or "
            f"more, or shorten pretrain.inputs_length"
        )
    return longest


def _random_spans(settings: PretrainSettings) -> SpanLengths:
    return random_spans_lengths(
        inputs_length=settings.inputs_length,
        noise_density=settings.noise_density,
        mean_noise_span_length=settings.mean_noise_span_length,
    )


def corruption_limits(settings: PretrainSettings, segment_tokens: int) -> Int32:
    """Return the tokens of inputs and targets reserved for a segment of 0, 1, ... tokens.

    Exact for random spans and for objectives with the whole text as targets. A random prefix can
    be nearly all of a segment or nearly none, so both sides reserve all of it. An i.i.d. mask has
    no fixed number of noise tokens: its targets reserve the mean plus four standard deviations,
    and longer targets are cut, as in any row. A mixture reserves the most that a denoiser needs.

    Args:
        settings: of pre-training.
        segment_tokens: tokens of the longest segment.

    Returns:
        int32 ``(segment_tokens + 1, 2)``, EOS included.
    """
    row = (settings.inputs_length, settings.targets_length)
    return np.minimum(_reserved_lengths(settings, segment_tokens), row).astype(np.int32)


def _reserved_lengths(settings: PretrainSettings, segment_tokens: int) -> Int32:
    """Return `corruption_limits` without the limit of a row."""
    if settings.objective == "mixture_of_denoisers":
        lengths = [
            _reserved_lengths(denoiser_setting, segment_tokens)
            + np.array([bool(denoiser.mode_token), 0])
            for denoiser_setting, denoiser in zip(
                denoiser_settings(settings), settings.denoisers, strict=True
            )
        ]
        return np.max(lengths, axis=0).astype(np.int32)
    tokens = np.arange(segment_tokens + 1)
    noise, spans = _noise_limits(settings, segment_tokens)
    # Inputs and targets, EOS included. Under i.i.d. noise the targets have a sentinel for each run
    # of kept tokens, and there can be one more of them than runs of noise.
    reserved = {
        "replace_spans": corrupted_lengths(np.maximum(tokens, 2), noise, spans)
        if settings.noise_mask == "random_spans"
        else (tokens + 1, noise + spans + 2),
        "drop_tokens": (tokens + 1, noise + 1),
        "prefix_lm": (tokens, tokens),
        "lm": (0 * tokens, tokens + 1),
    }
    # All other objectives read and write as many tokens as the text has.
    inputs, targets = reserved.get(settings.objective, (tokens + 1, tokens + 1))
    if settings.objective == "replace_spans":
        targets = targets + settings.final_sentinel
    return np.stack([inputs, targets], axis=1).astype(np.int32)


def _noise_limits(settings: PretrainSettings, segment_tokens: int) -> tuple[Int32, Int32]:
    """Return the reserved noise tokens and spans of a segment of 0, 1, ... tokens."""
    if settings.noise_mask == "random_spans":
        return span_counts(
            segment_tokens,
            noise_density=settings.noise_density,
            mean_noise_span_length=settings.mean_noise_span_length,
        )
    tokens = np.arange(segment_tokens + 1)
    density = settings.noise_density
    upper = tokens * density + 4 * np.sqrt(tokens * density * (1 - density))  # binomial
    noise = np.ceil(np.minimum(upper, tokens)).astype(np.int32)
    return noise, noise  # every noise token can be a span of its own
