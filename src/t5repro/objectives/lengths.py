"""Lengths of corrupted segments: the arithmetic of span corruption (paper section 3.3.4).

The masks, the packing of rows and the check of the settings must agree on lengths, so they all use
this module. All rounding is half to even.
"""

from dataclasses import dataclass

import numpy as np

from t5repro.array_types import Array, Int32
from t5repro.errors import SettingsError


@dataclass(frozen=True)
class SpanLengths:
    """Lengths of a segment with corrupted inputs that fill a row.

    Attributes:
        tokens: raw tokens of the segment.
        inputs: kept tokens, one sentinel a span, and EOS.
        targets: sentinels, noise tokens and EOS.
    """

    tokens: int
    inputs: int
    targets: int


def span_counts(
    max_tokens: int, *, noise_density: float, mean_noise_span_length: float
) -> tuple[Int32, Int32]:
    """Return noise tokens and noise spans of a segment of 0, 1, ... `max_tokens` tokens.

    Every span needs a noise token and a kept token before it. Densities and mean lengths that
    demand more spans than that get the largest number that fits.

    Args:
        max_tokens: tokens of the longest segment.
        noise_density: share of noise tokens.
        mean_noise_span_length: tokens.

    Returns:
        Two int32 arrays of shape ``(max_tokens + 1,)``, indexed by the length of a segment.

    Source: released code, ``random_spans_noise_mask``: at least two tokens are assumed, at least
    one is noise and one is not.
    """
    length = np.maximum(np.arange(max_tokens + 1), 2)
    # In float32, as there: 0.15 of 190 is 28.5 or a little more, so 28 or 29 tokens.
    share = length.astype(np.float32) * np.float32(noise_density)
    noise = np.clip(np.round(share), 1, length - 1).astype(np.int32)
    spans = np.maximum(1, np.round(noise / mean_noise_span_length)).astype(np.int32)
    return noise, np.minimum(spans, np.minimum(noise, length - noise)).astype(np.int32)


def corrupted_lengths(tokens: Array, noise: Array, spans: Array) -> tuple[Array, Array]:
    """Return the lengths of inputs and targets, EOS included, under unique sentinels.

    Valid for masks that start with a kept token and end in noise, as random spans do.
    """
    return tokens - noise + spans + 1, noise + spans + 1


def random_spans_lengths(
    *, inputs_length: int, noise_density: float, mean_noise_span_length: float
) -> SpanLengths:
    """Return the longest segment with corrupted inputs that fit a row.

    Args:
        inputs_length: tokens of a row of inputs, EOS included.
        noise_density: share of noise tokens.
        mean_noise_span_length: tokens.

    Raises:
        SettingsError: not even two tokens fit.

    Source: released code, ``random_spans_helper``; 568 tokens and 114 targets for 512 inputs,
    density 0.15 and mean length 3. At density 0.5 it makes inputs and targets equally long. It
    ignores that a mask has at least one span, which matters only in rows of a few tokens, and it
    rounds in float64 where the mask rounds in float32: of 350 tokens 0.15 are 52 here and 53 there,
    and the row is cut.
    """

    def corrupted(tokens: int) -> tuple[int, int]:
        noise = max(1, round(tokens * noise_density))  # as in `span_counts`
        spans = max(1, round(noise / mean_noise_span_length))
        return tokens - noise + spans + 1, noise + spans + 1

    tokens = 1
    while corrupted(tokens + 1)[0] <= inputs_length:
        tokens += 1
    if tokens < 2:
        raise SettingsError(
            f"no segment fits pretrain.inputs_length {inputs_length} at noise density "
            f"{noise_density} and mean span length {mean_noise_span_length}; make the row longer"
        )
    inputs, targets = corrupted(tokens)
    if noise_density == 0.5 and targets > inputs:
        tokens, targets = tokens - 1, targets - 1
    return SpanLengths(tokens=tokens, inputs=inputs, targets=targets)
