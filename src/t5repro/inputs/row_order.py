"""The order of rows in an epoch of pre-training, a permutation that is never in memory.

Fine-tuning draws its examples in `task_mixture`.

It is the permutation of ``tf.raw_ops.RandomIndexShuffle``, computed with NumPy.

Source: TensorFlow, ``core/kernels/random_index_shuffle.cc``: the Simon cipher on the numbers of an
even number of bits, at least 16, repeated until the result is in the range.
"""

import functools

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Int64
from t5repro.randomness import seed_pair

Words = npt.NDArray[np.uint64]

SHUFFLE_ROUNDS = 8  # TensorFlow's own wrapper takes 4
MIN_BLOCK_BITS = 16
KEY_SEQUENCE = 0x7369F885192C0EF5
KEY_CONSTANT = 0xFFFFFFFC
KEY_MASK = 0xFFFFFFFF  # of each of the three numbers of a seed


def shuffled_rows(number: Int64, rows: int, seed: int) -> tuple[Int64, Int64]:
    """Return the row of the layout for each row of the run, and its epoch.

    Args:
        number: rows counted from the start of the run.
        rows: rows of an epoch.
        seed: the run's seed.
    """
    epoch = number // rows
    return _permuted(number % rows, epoch, rows, seed_pair(seed, "pretrain", "rows")), epoch


def phases(epoch: Int64, phase_range: int, seed: int) -> Int64:
    """Return the token of the stream at which each epoch begins, 0 to `phase_range`."""
    count = phase_range + 1
    seeds = seed_pair(seed, "pretrain", "phase")
    return _permuted(epoch % count, epoch // count, count, seeds)


def _permuted(index: Int64, epoch: Int64, count: int, seeds: tuple[int, int]) -> Int64:
    """Return the position of each index in the permutation of ``0 .. count - 1`` of its epoch."""
    if count == 1:
        return np.zeros_like(index)  # the cipher would walk through its 2^16 numbers to find it
    # TensorFlow has a bit too few for 2^16 + 1, 2^18 + 1, ... rows: the last takes row 0's place.
    bits = int(np.ceil(np.log2(count - 1)))
    width = max(bits + bits % 2, MIN_BLOCK_BITS) // 2
    if 2 * width == MIN_BLOCK_BITS:
        return _small_permuted(index, epoch, count, seeds)
    keys = _round_keys(seeds, epoch, width)
    values = index.astype(np.uint64)
    # Cycle walking: encrypt again until the value is in range. The cipher is a permutation of all
    # numbers of its width, so this is one of the numbers below `count`.
    outside = np.arange(len(values))
    while len(outside):
        values[outside] = _encrypt(values[outside], keys[:, outside], width)
        outside = outside[values[outside] >= count]
    return values.astype(np.int64)


def _small_permuted(index: Int64, epoch: Int64, count: int, seeds: tuple[int, int]) -> Int64:
    """Return the result of `_permuted` where few of the numbers of the cipher are in range."""
    permuted = np.empty_like(index)
    for number in np.unique(epoch).tolist():
        is_epoch = epoch == number
        # The cipher reads 16 bits: of 2^16 + 1 rows the last takes row 0's place.
        block_index = index[is_epoch] & ((1 << MIN_BLOCK_BITS) - 1)
        permuted[is_epoch] = _small_permutation(number, count, seeds)[block_index]
    return permuted


@functools.lru_cache(maxsize=4)
def _small_permutation(epoch: int, count: int, seeds: tuple[int, int]) -> Int64:
    """Return the whole permutation of an epoch, from one encryption of all numbers."""
    width = MIN_BLOCK_BITS // 2
    numbers = np.arange(1 << MIN_BLOCK_BITS)
    keys = _round_keys(seeds, np.array([epoch]), width)
    encrypted = _encrypt(numbers.astype(np.uint64), keys, width).astype(np.int64)
    # Walks of thousands of numbers end after a few doublings of all steps at once.
    following = np.where(numbers < count, numbers, encrypted)
    while (following[encrypted[:count]] >= count).any():
        following = following[following]
    return following[encrypted[:count]]


def _round_keys(seeds: tuple[int, int], epoch: Int64, width: int) -> Words:
    """Return the keys of each epoch, (rounds, epochs)."""
    # Simon's key schedule for three words of key; its constant sequence is read bit by bit.
    mask = (1 << width) - 1
    sequence, constant = KEY_SEQUENCE & mask, KEY_CONSTANT & mask
    first, second = (np.full(len(epoch), seed & KEY_MASK & mask, np.uint64) for seed in seeds)
    keys = [first, second, epoch.astype(np.uint64) & np.uint64(KEY_MASK & mask)]
    for number in range(3, SHUFFLE_ROUNDS):
        last = keys[number - 1]
        rotated = _rotated(last, width - 3, width) ^ _rotated(last, width - 4, width)
        keys.append(np.uint64(constant ^ (sequence & 1)) ^ keys[number - 3] ^ rotated)
        sequence >>= 1
    return np.stack(keys)


def _rotated(values: Words, bits: int, width: int) -> Words:
    left_shift, right_shift = np.uint64(bits % width), np.uint64((width - bits) % width)
    if not left_shift:
        return values
    return (values << left_shift | values >> right_shift) & np.uint64((1 << width) - 1)


def _encrypt(values: Words, keys: Words, width: int) -> Words:
    shift, mask = np.uint64(width), np.uint64((1 << width) - 1)
    left_half, right_half = values >> shift & mask, values & mask
    # Two Feistel rounds at a time, which saves the exchange of the halves.
    for first, second in zip(keys[::2], keys[1::2], strict=True):
        left_half ^= _mixed(right_half, width) ^ first
        right_half ^= _mixed(left_half, width) ^ second
    return left_half << shift | right_half


def _mixed(half: Words, width: int) -> Words:
    """Return the nonlinear function of the cipher."""
    return _rotated(half, 1, width) & _rotated(half, 8, width) ^ _rotated(half, 2, width)
