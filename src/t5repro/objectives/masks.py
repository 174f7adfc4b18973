"""Noise masks: the tokens of a segment to corrupt (paper sections 3.3.1, 3.3.3 and 3.3.4).

Every function takes the lengths of a batch of segments and returns a mask
``(segments, max_tokens)``, True at noise, False after the end of a segment. Draws are stateless:
the same seed gives the same mask on every machine. To add a mask, write such a function.
"""

import tensorflow as tf

from t5repro.objectives.lengths import span_counts

PHILOX = "philox"  # named, because the default generator depends on the device


def iid_noise_mask(
    lengths: tf.Tensor, *, max_tokens: int, noise_density: float, seed: tf.Tensor
) -> tf.Tensor:
    """Make each token noise independently of all others.

    Args:
        lengths: tokens of each segment, int32 ``(segments,)``.
        max_tokens: width of the mask.
        noise_density: probability.
        seed: two int32.

    Source: released code, ``iid_noise_mask``.
    """
    draws = _uniform(lengths, max_tokens, seed)
    return tf.logical_and(draws < noise_density, tf.sequence_mask(lengths, max_tokens))


def random_prefix_mask(
    lengths: tf.Tensor, *, max_tokens: int, noise_density: float, seed: tf.Tensor
) -> tf.Tensor:
    """Mark a prefix of random length, for the prefix language model.

    All lengths from ``(1 - 2 * noise_density)`` of a segment up to one token less than the segment
    are equally likely, so that on average `noise_density` of it remains as targets.

    Args:
        lengths: tokens of each segment, at least 2, int32 ``(segments,)``.
        max_tokens: width of the mask.
        noise_density: share of tokens after the prefix, at most 0.5.
        seed: two int32.

    Source: released code, ``random_prefix_noise_mask``.
    """
    # At least one token each for the prefix and the targets.
    longest = lengths - 1
    shortest = tf.round((1 - 2 * noise_density) * tf.cast(longest, tf.float32))
    shortest = tf.clip_by_value(tf.cast(shortest, tf.int32), 1, longest)
    draws = tf.random.stateless_uniform(tf.shape(lengths), seed, alg=PHILOX)
    choices = tf.cast(longest - shortest + 1, tf.float32)
    # The minimum guards against rounding: one token at least must remain after the prefix.
    extra = tf.minimum(tf.cast(draws * choices, tf.int32), longest - shortest)
    return tf.sequence_mask(shortest + extra, max_tokens)


def random_spans_noise_mask(
    lengths: tf.Tensor,
    *,
    max_tokens: int,
    noise_density: float,
    mean_noise_span_length: float,
    seed: tf.Tensor,
) -> tf.Tensor:
    """Make a fixed number of spans noise; all positions and lengths of spans are equally likely.

    Each segment begins with a kept token and ends with a noise token.

    Args:
        lengths: tokens of each segment, int32 ``(segments,)``.
        max_tokens: width of the mask.
        noise_density: share of noise tokens.
        mean_noise_span_length: tokens.
        seed: two int32.

    Source: released code, ``random_spans_noise_mask``.
    """
    noise_table, spans_table = span_counts(
        max_tokens, noise_density=noise_density, mean_noise_span_length=mean_noise_span_length
    )
    most_spans = int(spans_table.max())
    noise_tokens = tf.gather(noise_table, lengths)
    spans = tf.gather(spans_table, lengths)
    kept_tokens = tf.maximum(lengths, 2) - noise_tokens
    # Noise and kept tokens are cut into the same number of parts, which then alternate.
    seeds = _split(seed)
    noise_ends = _random_composition(
        noise_tokens, spans, slots=int(noise_table.max()), most_parts=most_spans, seed=seeds[0]
    )
    kept_ends = _random_composition(
        kept_tokens, spans, slots=max(max_tokens, 2), most_parts=most_spans, seed=seeds[1]
    )
    # Kept and noise runs alternate: the i-th noise run begins after i + 1 kept and i noise runs.
    noise_starts = tf.concat([tf.zeros_like(noise_ends[:, :1]), noise_ends[:, :-1]], axis=1)
    return _fill(kept_ends + noise_starts, kept_ends + noise_ends, lengths, max_tokens)


def _random_composition(
    total: tf.Tensor, part_count: tf.Tensor, *, slots: int, most_parts: int, seed: tf.Tensor
) -> tf.Tensor:
    """Cut each total into positive parts, every composition equally likely.

    Args:
        total: items of each segment, int32 ``(segments,)``.
        part_count: parts of each segment, from 1 to `total`.
        slots: the largest total.
        most_parts: the largest number of parts.
        seed: two int32.

    Returns:
        The end of each part, ascending, ``(segments, most_parts)``; `total` from the last on.
    """
    total_column = total[:, tf.newaxis]
    if most_parts == 1:
        return total_column
    # One draw for each of the `total - 1` positions between two items. The `parts - 1` largest are
    # the cuts: a random subset of fixed size. -1 excludes positions after the end of a segment.
    draws = _uniform(total, slots - 1, seed)
    draws = tf.where(tf.sequence_mask(total - 1, slots - 1), draws, -1.0)
    largest = tf.math.top_k(draws, k=most_parts - 1, sorted=True).indices + 1
    cuts = tf.where(tf.sequence_mask(part_count - 1, most_parts - 1), largest, total_column)
    return tf.concat([tf.sort(cuts, axis=1), total_column], axis=1)


def _fill(starts: tf.Tensor, stops: tf.Tensor, lengths: tf.Tensor, max_tokens: int) -> tf.Tensor:
    """Return the mask that is True from each start up to its stop, without the stop."""
    # +1 at starts and -1 at stops: the cumulative sum is 1 inside a span. Segments with fewer spans
    # than the batch's maximum have empty ones: start and stop cancel out.
    segments = tf.shape(lengths)[0]
    positions = tf.concat([starts, stops], axis=1)
    steps = tf.concat([tf.ones_like(starts), -tf.ones_like(stops)], axis=1)
    rows = tf.broadcast_to(tf.range(segments)[:, tf.newaxis], tf.shape(positions))
    width = max(max_tokens, 2) + 1  # one more column for the end of a span at the segment's end
    steps = tf.scatter_nd(tf.stack([rows, positions], axis=-1), steps, tf.stack([segments, width]))
    inside = tf.cumsum(steps, axis=1)[:, :max_tokens] > 0
    return tf.logical_and(inside, tf.sequence_mask(lengths, max_tokens))


def _uniform(lengths: tf.Tensor, width: int, seed: tf.Tensor) -> tf.Tensor:
    return tf.random.stateless_uniform([tf.shape(lengths)[0], width], seed, alg=PHILOX)


def _split(seed: tf.Tensor) -> tf.Tensor:
    return tf.random.split(seed, 2, alg=PHILOX)
