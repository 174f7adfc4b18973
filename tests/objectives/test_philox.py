"""Draws against the published answers of Philox and against TensorFlow's stateless operations."""

from typing import Any

import numpy as np
import pytest

from t5repro.objectives.philox import fold_in, integers, philox, split, uniform, words

# Random123, kat_vectors, ``philox4x32 10``: counter, key, result.
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
TYPES = pytest.mark.parametrize("dtype", [np.int32, np.int64])
PHILOX = "philox"  # TensorFlow's default differs between devices and under XLA
SEEDS = 150
SHAPES = [(), (0,), (1,), (5,), (3, 7), (2, 3, 4), (129,), (1, 1000), (64, 63)]


@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_philox_gives_the_answers_that_random123_publishes(counter, key, result) -> None:
    assert tuple(philox(np.array(counter, np.uint64), key)) == result


def test_counters_are_encrypted_independently() -> None:
    counters = np.array([counter for counter, _, _ in PUBLISHED], np.uint64).T
    for key in (key for _, key, _ in PUBLISHED):
        together = philox(counters, key)
        for column, counter in enumerate(counters.T):
            assert (together[:, column] == philox(counter, key)).all()


def seeds_of(dtype: type[np.signedinteger[Any]]) -> np.ndarray:
    """Return random seeds with all bits, and the smallest and largest integers."""
    limits = np.iinfo(dtype)
    random = np.random.default_rng(0).integers(limits.min, limits.max, (SEEDS, 2), dtype)
    corners = [0, 1, -1, limits.min, limits.max]
    return np.concatenate([random, np.array([(a, b) for a in corners for b in corners], dtype)])


@TYPES
def test_more_words_begin_with_the_words_of_a_shorter_draw(dtype) -> None:
    for seed in seeds_of(dtype)[:20]:
        longest = words(seed, 41)
        assert all((words(seed, count) == longest[:count]).all() for count in range(41))


@pytest.mark.keras
@TYPES
def test_uniform_draws_are_those_of_tensorflow_to_the_bit(dtype) -> None:
    tf = pytest.importorskip("tensorflow")
    for number, seed in enumerate(seeds_of(dtype)):
        shape = SHAPES[number % len(SHAPES)]
        expected = tf.random.stateless_uniform(shape, seed, alg=PHILOX).numpy()
        drawn = uniform(seed, *shape)
        assert drawn.dtype == expected.dtype
        assert drawn.shape == expected.shape
        assert drawn.tobytes() == expected.tobytes()


@pytest.mark.keras
@TYPES
def test_integers_are_those_of_tensorflow(dtype) -> None:
    tf = pytest.importorskip("tensorflow")
    ranges = [(0, 1), (3, 32_100), (-7, 9), (0, 2**31 - 1), (-(2**31), 2**31 - 1), (5, 8)]
    for number, seed in enumerate(seeds_of(dtype)):
        low, high = ranges[number % len(ranges)]
        shape = SHAPES[number % len(SHAPES)]
        expected = tf.random.stateless_uniform(shape, seed, low, high, np.int32, alg=PHILOX).numpy()
        drawn = integers(seed, low, high, *shape)
        assert drawn.dtype == np.int32
        np.testing.assert_array_equal(drawn, expected)


@pytest.mark.keras
@TYPES
def test_split_seeds_are_those_of_tensorflow_and_of_its_type(dtype) -> None:
    tf = pytest.importorskip("tensorflow")
    for number, seed in enumerate(seeds_of(dtype)):
        count = 1 + number % 9
        made = split(seed, count)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, tf.random.split(seed, count, alg=PHILOX).numpy())


@pytest.mark.keras
@TYPES
def test_a_folded_step_gives_the_seed_of_tensorflow(dtype) -> None:
    tf = pytest.importorskip("tensorflow")
    steps = np.random.default_rng(1).integers(0, 2**62, len(seeds_of(dtype)))
    steps[:3] = [0, 1, 2**31]
    for seed, step in zip(seeds_of(dtype), steps, strict=True):
        made = fold_in(seed, int(step))
        expected = tf.random.fold_in(seed, tf.constant(step, tf.int64), alg=PHILOX).numpy()
        assert made.dtype == expected.dtype == np.int64
        np.testing.assert_array_equal(made, expected)
