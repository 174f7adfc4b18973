"""Corruption: tokens and noise mask to inputs or targets (paper section 3.3, table 3).

An objective of the paper is a mask and two of these functions, one for the inputs and one for the
targets. All take padded tokens ``(segments, max_tokens)``. A function that shortens the segments
marks the kept positions, and `flatten` removes all others.
"""

from typing import NamedTuple

import tensorflow as tf

from t5repro.objectives.masks import PHILOX
from t5repro.vocab.special_ids import EOS_ID, FIRST_PIECE_ID

RANDOM_SHARE = 0.1  # of the noise tokens of the BERT-style objective


class Corrupted(NamedTuple):
    """Segments after corruption, before `flatten` drops tokens.

    Attributes:
        ids: int32 ``(segments, max_tokens)``.
        keep: bool of the same shape, False where a token is dropped or the segment has ended.
    """

    ids: tf.Tensor
    keep: tf.Tensor


def spans_to_unique_sentinels(
    tokens: tf.Tensor, mask: tf.Tensor, valid: tf.Tensor, *, total_ids: int
) -> Corrupted:
    """Replace the i-th run of noise by the sentinel `total_ids` - 1 - i.

    The noise mask gives the inputs, its complement the targets. More runs than sentinels take the
    ids of pieces, as in the released code; `sentinel_overflow` counts them.

    Args:
        tokens: int32 ``(segments, max_tokens)``.
        mask: True at tokens to replace.
        valid: True up to the end of each segment.
        total_ids: pieces and sentinels of the vocabulary.

    Source: released code, ``noise_span_to_unique_sentinel``.
    """
    mask = tf.logical_and(mask, valid)
    starts = _run_starts(mask)
    # The cumulative sum numbers the runs from 1; the first sentinel is the last id.
    sentinels = total_ids - tf.cumsum(tf.cast(starts, tf.int32), axis=1)
    # A run keeps its first position, for the sentinel.
    keep = tf.logical_and(valid, tf.logical_or(starts, tf.logical_not(mask)))
    return Corrupted(tf.where(starts, sentinels, tokens), keep)


def append_final_sentinel(
    targets: Corrupted, mask: tf.Tensor, valid: tf.Tensor, *, total_ids: int
) -> Corrupted:
    """Append one more sentinel to the targets of segments that end in noise, as in figure 2.

    Args:
        targets: result of `spans_to_unique_sentinels` on the complement of the noise.
        mask: True for noise.
        valid: True up to the end of each segment.
        total_ids: pieces and sentinels of the vocabulary.

    Source: paper section 3.1.4; the released code leaves this sentinel out.
    """
    kept_tokens = tf.logical_and(valid, tf.logical_not(mask))
    # The targets have a sentinel for each run of kept tokens; the final one is the next in order.
    final_ids = (total_ids - 1 - _run_count(kept_tokens))[:, tf.newaxis]
    return Corrupted(
        tf.concat([targets.ids, final_ids], axis=1),
        tf.concat([targets.keep, _ends_in_noise(mask, valid)[:, tf.newaxis]], axis=1),
    )


def noise_to_one_sentinel(
    tokens: tf.Tensor, mask: tf.Tensor, valid: tf.Tensor, *, total_ids: int
) -> Corrupted:
    """Replace every noise token by the first sentinel (MASS-style).

    Source: released code, ``noise_token_to_sentinel``.
    """
    return Corrupted(tf.where(mask, total_ids - 1, tokens), valid)


def noise_to_random_token_or_sentinel(
    tokens: tf.Tensor, mask: tf.Tensor, valid: tf.Tensor, *, total_ids: int, seed: tf.Tensor
) -> Corrupted:
    """Replace a tenth of the noise tokens by random ones, the rest by one sentinel (BERT-style).

    Source: released code, ``noise_token_to_random_token_or_sentinel``.
    """
    seeds = tf.random.split(seed, 2, alg=PHILOX)
    shape = tf.shape(tokens)
    chance = tf.random.stateless_uniform(shape, seeds[0], alg=PHILOX)
    random = tf.random.stateless_uniform(
        shape, seeds[1], FIRST_PIECE_ID, total_ids, dtype=tf.int32, alg=PHILOX
    )
    replaced = tf.where(chance < RANDOM_SHARE, random, total_ids - 1)
    return Corrupted(tf.where(mask, replaced, tokens), valid)


def drop_noise(tokens: tf.Tensor, mask: tf.Tensor, valid: tf.Tensor) -> Corrupted:
    """Drop noise tokens without a sentinel; the complement of the mask keeps only the noise.

    Source: released code, ``drop_noise_tokens`` and ``drop_nonnoise_tokens``.
    """
    return Corrupted(tokens, tf.logical_and(valid, tf.logical_not(mask)))


def permute_noise(
    tokens: tf.Tensor, mask: tf.Tensor, valid: tf.Tensor, *, seed: tf.Tensor
) -> Corrupted:
    """Put the noise tokens of each segment in random order (deshuffling, when all are noise).

    Source: released code, ``permute_noise_tokens``.
    """
    mask = tf.logical_and(mask, valid)
    draws = tf.random.stateless_uniform(tf.shape(tokens), seed, alg=PHILOX)
    # Draws are below 1, so the noise positions come first, in random order.
    order = tf.argsort(tf.where(mask, draws, 2.0), axis=1, stable=True)
    # The n-th noise position takes the token at the n-th position of that order.
    rank = tf.cumsum(tf.cast(mask, tf.int32), axis=1, exclusive=True)
    permuted = tf.gather(tokens, tf.gather(order, rank, batch_dims=1), batch_dims=1)
    return Corrupted(tf.where(mask, permuted, tokens), valid)


def sentinel_overflow(
    mask: tf.Tensor, valid: tf.Tensor, *, extra_ids: int, final_sentinel: bool = False
) -> tf.Tensor:
    """Return how many sentinels each segment lacks, int32 ``(segments,)``.

    Inputs need one for each run of noise and targets one for each run between, which can be one
    more; both count from the same first sentinel, so the larger number decides.

    Args:
        mask: True at noise.
        valid: True up to the end of each segment.
        extra_ids: sentinels of the vocabulary.
        final_sentinel: whether targets end in a further sentinel (`append_final_sentinel`).
    """
    # Targets replace the runs between the noise.
    between = tf.logical_and(tf.logical_not(mask), valid)
    target_sentinels = _run_count(between)
    if final_sentinel:
        target_sentinels += tf.cast(_ends_in_noise(mask, valid), tf.int32)
    input_sentinels = _run_count(tf.logical_and(mask, valid))
    return tf.maximum(tf.maximum(input_sentinels, target_sentinels) - extra_ids, 0)


def _ends_in_noise(mask: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    # The last valid position: valid itself, and the next one is not.
    last_token = tf.logical_and(valid, tf.logical_not(tf.pad(valid[:, 1:], [[0, 0], [0, 1]])))
    return tf.reduce_any(tf.logical_and(mask, last_token), axis=1)


def _run_count(mask: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(_run_starts(mask), tf.int32), axis=1)


def _run_starts(mask: tf.Tensor) -> tf.Tensor:
    previous = tf.pad(mask[:, :-1], [[0, 0], [1, 0]])
    return tf.logical_and(mask, tf.logical_not(previous))


class Segments(NamedTuple):
    """Segments of many lengths, one after another.

    Attributes:
        ids: int32 ``(tokens of all segments,)``.
        lengths: int32 ``(segments,)``.
        cut: tokens that did not fit, int32 ``(segments,)``.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    cut: tf.Tensor


def flatten(corrupted: Corrupted, *, limits: tf.Tensor) -> Segments:
    """Drop tokens that are not kept, cut each segment to its limit and append EOS.

    Args:
        corrupted: segments.
        limits: most tokens of each segment, EOS included, int32 ``(segments,)``.

    Source: released code, ``append_eos_after_trim``.
    """
    positions = tf.cumsum(tf.cast(corrupted.keep, tf.int32), axis=1)  # after the drop, from 1
    # `<`, not `<=`: one place of the limit is for EOS.
    fits = tf.logical_and(corrupted.keep, positions < limits[:, tf.newaxis])
    # One more column for EOS, which every segment keeps.
    ids = tf.pad(corrupted.ids, [[0, 0], [0, 1]], constant_values=EOS_ID)
    keep = tf.pad(fits, [[0, 0], [0, 1]], constant_values=True)
    lengths = tf.reduce_sum(tf.cast(keep, tf.int32), axis=1)
    return Segments(tf.boolean_mask(ids, keep), lengths, positions[:, -1] + 1 - lengths)
