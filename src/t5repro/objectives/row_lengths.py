"""Tokens of the segments of an objective, and what they reserve in a row (paper section 3.1.4).

Without TensorFlow, as packing and audits need them before anything is computed.
"""

import numpy as np
import numpy.typing as npt

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.errors import SettingsError
from t5repro.objectives.lengths import corrupted_lengths, random_spans_lengths, span_counts


def segment_length(settings: PretrainSettings) -> int:
    """Return the raw tokens of the longest segment whose inputs and targets fit a row.

    Raises:
        SettingsError: the targets of random spans do not fit `targets_length`.

    Source: paper section 3.1.4; released code: one token less than a row, for EOS, except that
    ``random_spans_helper`` makes segments longer by the tokens that sentinels replace.
    """
    if settings.objective == "lm":
        return settings.targets_length - 1
    if settings.noise_mask == "iid" or settings.objective != "replace_spans":
        return settings.inputs_length - 1
    lengths = random_spans_lengths(
        inputs_length=settings.inputs_length,
        noise_density=settings.noise_density,
        mean_noise_span_length=settings.mean_noise_span_length,
    )
    targets = lengths.targets + settings.final_sentinel
    if targets > settings.targets_length:
        raise SettingsError(
            f"pretrain.targets_length is {settings.targets_length}, but span corruption of "
            f"{settings.inputs_length} inputs gives {targets} targets; set it to {targets} or "
            f"more, or shorten pretrain.inputs_length"
        )
    return lengths.tokens


def corruption_limits(settings: PretrainSettings, segment_tokens: int) -> npt.NDArray[np.int32]:
    """Return the tokens of inputs and targets reserved for a segment of 0, 1, ... tokens.

    Exact for random spans and for objectives whose targets are the whole text. A random prefix can
    be nearly all of a segment or nearly none, so both sides reserve all of it. An i.i.d. mask has
    no fixed number of noise tokens: its targets reserve the mean plus four standard deviations,
    and longer targets are cut, as in any row.

    Args:
        settings: of pre-training.
        segment_tokens: tokens of the longest segment.

    Returns:
        int32 ``(segment_tokens + 1, 2)``, EOS included.
    """
    tokens = np.arange(segment_tokens + 1)
    noise, spans = _noise_limits(settings, segment_tokens)
    reserved = {
        "replace_spans": corrupted_lengths(np.maximum(tokens, 2), noise, spans)
        if settings.noise_mask == "random_spans"
        else (tokens + 1, noise + spans + 2),
        "drop_tokens": (tokens + 1, noise + 1),
        "prefix_lm": (tokens, tokens),
        "lm": (0 * tokens, tokens + 1),
    }
    inputs, targets = reserved.get(settings.objective, (tokens + 1, tokens + 1))
    if settings.objective == "replace_spans":
        targets = targets + settings.final_sentinel
    row = (settings.inputs_length, settings.targets_length)
    return np.minimum(np.stack([inputs, targets], axis=1), row).astype(np.int32)


def _noise_limits(
    settings: PretrainSettings, segment_tokens: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
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
