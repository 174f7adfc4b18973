"""Corruption: tokens and noise mask to inputs or targets (paper section 3.3, table 3).

An objective of the paper is a mask and two of these functions, one for the inputs and one for the
targets. All take padded tokens ``(segments, max_tokens)``. A function that shortens the segments
marks the kept positions, and `flatten` removes all others.
"""

from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Mask
from t5repro.objectives.masks import first_positions
from t5repro.objectives.philox import Seed, integers, split, uniform
from t5repro.vocab.special_ids import EOS_ID, FIRST_PIECE_ID, sentinel_id

RANDOM_SHARE = 0.1  # of the noise tokens of the BERT-style objective


class Corrupted(NamedTuple):
    """Segments after corruption, before `flatten` drops tokens.

    Attributes:
        ids: int32 ``(segments, max_tokens)``.
        keep: bool of the same shape, False where a token is dropped or the segment has ended.
    """

    ids: Int32
    keep: Mask


def spans_to_unique_sentinels(
    tokens: Int32, mask: Mask, valid: Mask, *, total_ids: int
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
    mask = mask & valid
    starts = _run_starts(mask)
    # The cumulative sum numbers the runs from 1; the first sentinel is the last id.
    sentinels = sentinel_id(np.cumsum(starts, axis=1, dtype=np.int32) - 1, total_ids)
    # A run keeps its first position, for the sentinel.
    keep = valid & (starts | ~mask)
    return Corrupted(np.where(starts, sentinels, tokens), keep)


def append_final_sentinel(
    targets: Corrupted, mask: Mask, valid: Mask, *, total_ids: int
) -> Corrupted:
    """Append one more sentinel to the targets of segments that end in noise, as in figure 2.

    Args:
        targets: result of `spans_to_unique_sentinels` on the complement of the noise.
        mask: True for noise.
        valid: True up to the end of each segment.
        total_ids: pieces and sentinels of the vocabulary.

    Source: paper section 3.1.4; the released code leaves this sentinel out.
    """
    # The targets have a sentinel for each run of kept tokens; the final one is the next in order.
    final_ids = sentinel_id(_run_count(valid & ~mask), total_ids)
    return Corrupted(
        np.column_stack([targets.ids, final_ids]),
        np.column_stack([targets.keep, _ends_in_noise(mask, valid)]),
    )


def noise_to_one_sentinel(tokens: Int32, mask: Mask, valid: Mask, *, total_ids: int) -> Corrupted:
    """Replace every noise token by the first sentinel (MASS-style).

    Source: released code, ``noise_token_to_sentinel``.
    """
    return Corrupted(np.where(mask, np.int32(sentinel_id(0, total_ids)), tokens), valid)


def noise_to_random_token_or_sentinel(
    tokens: Int32, mask: Mask, valid: Mask, *, total_ids: int, seed: Seed
) -> Corrupted:
    """Replace a tenth of the noise tokens by random ones, the rest by one sentinel (BERT-style).

    Source: released code, ``noise_token_to_random_token_or_sentinel``.
    """
    seeds = split(seed)
    random = integers(seeds[1], FIRST_PIECE_ID, total_ids, *tokens.shape)
    is_random = uniform(seeds[0], *tokens.shape) < RANDOM_SHARE
    replaced = np.where(is_random, random, np.int32(sentinel_id(0, total_ids)))
    return Corrupted(np.where(mask, replaced, tokens), valid)


def drop_noise(tokens: Int32, mask: Mask, valid: Mask) -> Corrupted:
    """Drop noise tokens without a sentinel; the complement of the mask keeps only the noise.

    Source: released code, ``drop_noise_tokens`` and ``drop_nonnoise_tokens``.
    """
    return Corrupted(tokens, valid & ~mask)


def permute_noise(tokens: Int32, mask: Mask, valid: Mask, *, seed: Seed) -> Corrupted:
    """Put the noise tokens of each segment in random order (deshuffling, when all are noise).

    Source: released code, ``permute_noise_tokens``.
    """
    mask = mask & valid
    # Draws are below 1, so the noise positions come first, in random order.
    keys = np.where(mask, uniform(seed, *tokens.shape), np.float32(2))
    order = np.argsort(keys, axis=1, kind="stable")
    # The n-th noise position takes the token at the n-th position of that order.
    shuffled = np.take_along_axis(tokens, order, axis=1)
    permuted = tokens.copy()
    permuted[mask] = shuffled[first_positions(mask.sum(axis=1), tokens.shape[1])]
    return Corrupted(permuted, valid)


def sentinel_overflow(
    mask: Mask, valid: Mask, *, extra_ids: int, final_sentinel: bool = False
) -> Int32:
    """Return how many sentinels each segment lacks, int32 ``(segments,)``.

    Inputs need one for each run of noise and targets one for each run between, which can be one
    more; both count from the same first sentinel, so the larger number decides.

    Args:
        mask: True at noise.
        valid: True up to the end of each segment.
        extra_ids: sentinels of the vocabulary.
        final_sentinel: whether targets end in a further sentinel (`append_final_sentinel`).
    """
    target_sentinels = _run_count(valid & ~mask)  # targets replace the runs between the noise
    if final_sentinel:
        target_sentinels += _ends_in_noise(mask, valid)
    return np.maximum(np.maximum(_run_count(mask & valid), target_sentinels) - extra_ids, 0)


def _ends_in_noise(mask: Mask, valid: Mask) -> Mask:
    """Return whether the last token of each segment is noise, ``(segments,)``."""
    last = np.maximum(valid.sum(axis=1) - 1, 0)
    return np.asarray((mask & valid)[np.arange(len(last)), last])


def _run_count(mask: Mask) -> Int32:
    return _run_starts(mask).sum(axis=1, dtype=np.int32)


def _run_starts(mask: Mask) -> Mask:
    starts = mask.copy()
    starts[:, 1:] &= ~mask[:, :-1]
    return starts


class Segments(NamedTuple):
    """Segments of many lengths, one after another.

    Attributes:
        ids: int32 ``(tokens of all segments,)``.
        lengths: int32 ``(segments,)``.
        cut: tokens that did not fit, int32 ``(segments,)``.
    """

    ids: Int32
    lengths: Int32
    cut: Int32


def flatten(corrupted: Corrupted, *, limits: Int32) -> Segments:
    """Drop tokens that are not kept, cut each segment to its limit and append EOS.

    Args:
        corrupted: segments.
        limits: most tokens of each segment, EOS included, int32 ``(segments,)``.

    Source: released code, ``append_eos_after_trim``.
    """
    positions = np.cumsum(corrupted.keep, axis=1, dtype=np.int32)  # after the drop, from 1
    # `<`, not `<=`: one place of the limit is for EOS.
    fits = corrupted.keep & (positions < limits[:, np.newaxis])
    # One more column for EOS, which every segment keeps.
    ids = np.pad(corrupted.ids, [(0, 0), (0, 1)], constant_values=EOS_ID)
    keep = np.pad(fits, [(0, 0), (0, 1)], constant_values=True)
    lengths = keep.sum(axis=1, dtype=np.int32)
    return Segments(ids[keep], lengths, positions[:, -1] + 1 - lengths)
