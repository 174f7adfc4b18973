"""Philox 4x32-10 and the draws of TensorFlow's stateless operations that follow from it.

The masks of this project were first drawn by ``tf.random.stateless_uniform``; the same numbers are
drawn here with NumPy, bit for bit, so that a batch needs neither TensorFlow nor its device. Only
integer operations and one exact product, so every machine draws the same bits.

Source: Salmon et al., 2011, section 4.3, and the constants of Random123; TensorFlow,
``core/kernels/stateless_random_ops_v2.cc`` and ``core/lib/random/random_distributions.h``.
"""

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Array, Int32

Words = npt.NDArray[np.uint32]
Seed = Array  # two integers

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
WORD_BITS = np.uint64(32)
LOW_WORD = 0xFFFFFFFF
SCRAMBLE_KEY = (0x3EC8F720, 0x02461E29)  # under which TensorFlow turns a seed into key and counter
MANTISSA = np.uint32(0x7FFFFF)
FLOAT_STEP = np.float32(2.0**-23)


def philox(counter: npt.NDArray[np.uint64], key: tuple[int, int]) -> npt.NDArray[np.uint64]:
    """Encrypt counters of four words.

    Args:
        counter: the words, below 2^32, uint64 ``(4, ...)``.
        key: two words.

    Returns:
        Four words for each counter, below 2^32, uint64 ``(4, ...)``.
    """
    first, second, third, fourth = counter
    for number in range(ROUNDS):
        # Each round multiplies two words, crosses the halves of the products and adds the key of
        # the round with XOR.
        keys = [
            np.uint64(word + number * step & LOW_WORD)
            for word, step in zip(key, KEY_STEPS, strict=True)
        ]
        first_product, third_product = first * MULTIPLIERS[0], third * MULTIPLIERS[1]
        first = third_product >> WORD_BITS ^ second ^ keys[0]
        third = first_product >> WORD_BITS ^ fourth ^ keys[1]
        second, fourth = third_product & LOW_WORD, first_product & LOW_WORD
    return np.stack([first, second, third, fourth])


def words(seed: Seed, count: int) -> Words:
    """Return the first `count` words of the stream of a seed.

    Args:
        seed: two integers, int32 or int64.
        count: number of words.
    """
    low, high = (int(word) & 0xFFFFFFFFFFFFFFFF for word in seed)
    parts = [low & LOW_WORD, low >> 32, high & LOW_WORD, high >> 32]
    scrambled = philox(np.array(parts, np.uint64)[:, np.newaxis], SCRAMBLE_KEY)[:, 0]
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    counter = np.zeros((4, len(blocks)), np.uint64)
    counter[0], counter[1] = blocks & np.uint64(LOW_WORD), blocks >> WORD_BITS
    counter[2], counter[3] = scrambled[2], scrambled[3]
    encrypted = philox(counter, (int(scrambled[0]), int(scrambled[1])))
    return encrypted.T.reshape(-1)[:count].astype(np.uint32)


def uniform(seed: Seed, *shape: int) -> npt.NDArray[np.float32]:
    """Return float32 in [0, 1) with 23 bits, as ``tf.random.stateless_uniform`` does."""
    drawn = words(seed, int(np.prod(shape))) & MANTISSA
    return (drawn.astype(np.float32) * FLOAT_STEP).reshape(shape)


def integers(seed: Seed, low: int, high: int, *shape: int) -> Int32:
    """Return int32 from `low` to ``high - 1``, as ``tf.random.stateless_uniform`` does."""
    drawn = words(seed, int(np.prod(shape))) % np.uint32(high - low)
    return (drawn.astype(np.int64) + low).astype(np.int32).reshape(shape)


def split(seed: Seed, count: int = 2) -> Array:
    """Return `count` new seeds of the type of a seed, as ``tf.random.split`` does."""
    return _full_integers(seed, 2 * count).reshape(count, 2)


def fold_in(seed: Seed, number: int) -> Seed:
    """Return the seed of a number, int64, as ``tf.random.fold_in`` does with an int64 number."""
    first = _full_integers(np.asarray(seed, np.int64), 1)[0]
    return np.array([first, number], np.int64)


def _full_integers(seed: Seed, count: int) -> Array:
    """Return integers of the type of the seed with all their bits random."""
    if seed.dtype == np.int32:
        return words(seed, count).view(np.int32)
    return words(seed, 2 * count).view(np.int64)  # two words a number, the low one first
