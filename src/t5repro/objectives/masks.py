"""Noise masks: the tokens of a segment to corrupt (paper sections 3.3.1, 3.3.3 and 3.3.4).

Every function takes the lengths of a batch of segments and returns a mask
``(segments, max_tokens)``, True at noise, False after the end of a segment. Draws are stateless:
the same seed gives the same mask on every machine; `CorpusInputs` in `inputs/pretraining.py` makes
the seed of a step from that of the run. To add a mask, write such a function.
"""

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.objectives.lengths import span_counts
from t5repro.objectives.philox import MANTISSA, Seed, split, uniform, words


def first_positions(lengths: Int32, width: int) -> Mask:
    """Return the mask ``(segments, width)`` of the first `lengths` positions of each segment."""
    return np.arange(width, dtype=np.int32) < lengths[:, np.newaxis]


def iid_noise_mask(lengths: Int32, *, max_tokens: int, noise_density: float, seed: Seed) -> Mask:
    """Make each token noise independently of all others.

    Args:
        lengths: tokens of each segment, int32 ``(segments,)``.
        max_tokens: width of the mask.
        noise_density: probability.
        seed: two integers.

    Source: released code, ``iid_noise_mask``.
    """
    draws = uniform(seed, len(lengths), max_tokens)
    return (draws < noise_density) & first_positions(lengths, max_tokens)


def random_prefix_mask(
    lengths: Int32, *, max_tokens: int, noise_density: float, seed: Seed
) -> Mask:
    """Mark a prefix of random length, for the prefix language model.

    All lengths from ``(1 - 2 * noise_density)`` of a segment up to one token less than the segment
    are equally likely, so that on average `noise_density` of it remains as targets.

    Args:
        lengths: tokens of each segment, at least 2, int32 ``(segments,)``.
        max_tokens: width of the mask.
        noise_density: share of tokens after the prefix, at most 0.5.
        seed: two integers.

    Source: released code, ``random_prefix_noise_mask``.
    """
    # At least one token each for the prefix and the targets.
    longest = lengths - 1
    shortest = np.round((1 - 2 * noise_density) * longest.astype(np.float32)).astype(np.int32)
    shortest = np.maximum(np.minimum(shortest, longest), 1)
    choices = (longest - shortest + 1).astype(np.float32)
    # The minimum guards against rounding: one token at least must remain after the prefix.
    extra = np.minimum((uniform(seed, len(lengths)) * choices).astype(np.int32), longest - shortest)
    return first_positions(shortest + extra, max_tokens)


def random_spans_noise_mask(
    lengths: Int32,
    *,
    max_tokens: int,
    noise_density: float,
    mean_noise_span_length: float,
    seed: Seed,
) -> Mask:
    """Make a fixed number of spans noise; all positions and lengths of spans are equally likely.

    Each segment begins with a kept token and ends with a noise token.

    Args:
        lengths: tokens of each segment, int32 ``(segments,)``.
        max_tokens: width of the mask.
        noise_density: share of noise tokens.
        mean_noise_span_length: tokens.
        seed: two integers.

    Source: released code, ``random_spans_noise_mask``.
    """
    noise_table, spans_table = span_counts(
        max_tokens, noise_density=noise_density, mean_noise_span_length=mean_noise_span_length
    )
    most_spans = int(spans_table.max())
    noise_tokens, spans = noise_table[lengths], spans_table[lengths]
    kept_tokens = np.maximum(lengths, 2) - noise_tokens
    # Noise and kept tokens are cut into the same number of parts, which then alternate.
    seeds = split(seed)
    noise_ends = _random_composition(
        noise_tokens, spans, slots=int(noise_table.max()), most_parts=most_spans, seed=seeds[0]
    )
    kept_ends = _random_composition(
        kept_tokens, spans, slots=max(max_tokens, 2), most_parts=most_spans, seed=seeds[1]
    )
    # Kept and noise runs alternate: the i-th noise run begins after i + 1 kept and i noise runs.
    noise_starts = np.pad(noise_ends[:, :-1], [(0, 0), (1, 0)])
    return _fill(kept_ends + noise_starts, kept_ends + noise_ends, lengths, max_tokens)


def _random_composition(
    total: Int32, part_count: Int32, *, slots: int, most_parts: int, seed: Seed
) -> Int32:
    """Cut each total into positive parts, every composition equally likely.

    Args:
        total: items of each segment, int32 ``(segments,)``.
        part_count: parts of each segment, from 1 to `total`.
        slots: the largest total.
        most_parts: the largest number of parts.
        seed: two integers.

    Returns:
        The end of each part, ascending, ``(segments, most_parts)``; `total` from the last on.
    """
    total_column = total[:, np.newaxis]
    if most_parts == 1:
        return total_column
    # One draw for each of the `total - 1` positions between two items. The `parts - 1` largest are
    # the cuts: a random subset of fixed size. -1 excludes positions after the end of a segment.
    draws = (words(seed, len(total) * (slots - 1)) & MANTISSA).astype(np.int64)
    draws = np.where(first_positions(total - 1, slots - 1), draws.reshape(len(total), -1), -1)
    largest = _largest_positions(draws, most_parts - 1) + 1
    cuts = np.where(first_positions(part_count - 1, most_parts - 1), largest, total_column)
    return np.concatenate([np.sort(cuts, axis=1), total_column], axis=1)


def _largest_positions(values: Int64, count: int) -> Int32:
    """Return the positions of the `count` largest values of each row, the largest first.

    Of equal values the first is the larger: draws of 23 bits are equal now and then.
    """
    width = values.shape[1]
    # Unique keys: no order of equal elements, which a partition does not keep, is left open.
    keys = values << np.int64(32) | np.arange(width - 1, -1, -1)
    largest = np.sort(np.partition(keys, width - count, axis=1)[:, width - count :], axis=1)
    return (width - 1 - (largest[:, ::-1] & 0xFFFFFFFF)).astype(np.int32)


def _fill(starts: Int32, stops: Int32, lengths: Int32, max_tokens: int) -> Mask:
    """Return the mask that is True from each start up to its stop, without the stop."""
    # +1 at starts and -1 at stops: the cumulative sum is 1 inside a span. Segments with fewer spans
    # than the batch's maximum have empty ones: start and stop cancel out.
    width = max(max_tokens, 2) + 1  # one more column for the end of a span at the segment's end
    shape = (len(lengths), width)
    row_starts = np.arange(len(lengths))[:, np.newaxis] * width
    begun, ended = (
        np.bincount((row_starts + positions).ravel(), minlength=len(lengths) * width)
        for positions in (starts, stops)
    )
    inside = np.cumsum((begun - ended).reshape(shape), axis=1)[:, :max_tokens] > 0
    return inside & first_positions(lengths, max_tokens)
