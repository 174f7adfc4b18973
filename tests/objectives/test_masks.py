"""Masks against NumPy twins that are given the same random draws."""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.objectives.lengths import span_counts
from t5repro.objectives.masks import (
    PHILOX,
    iid_noise_mask,
    random_prefix_mask,
    random_spans_noise_mask,
)

pytestmark = pytest.mark.keras


def draws(shape: tuple[int, int], seed: object) -> np.ndarray:
    return tf.random.stateless_uniform(shape, seed, alg=PHILOX).numpy()


def spans_mask(lengths, density=0.15, mean=3.0, seed=(1, 2), max_tokens=None) -> np.ndarray:
    return random_spans_noise_mask(
        tf.constant(lengths, tf.int32),
        max_tokens=max_tokens or max(lengths),
        noise_density=density,
        mean_noise_span_length=mean,
        seed=tf.constant(seed),
    ).numpy()


def parts_twin(total: int, parts: int, values: np.ndarray) -> list[int]:
    """Cut `total` where the largest of the first `total` - 1 values are."""
    places = np.argsort(-values[: total - 1], kind="stable")[: parts - 1]
    return np.diff([0, *sorted(places + 1), total]).tolist()


def spans_twin(length, density, mean, noise_values, kept_values) -> list[bool]:
    """The definition, one segment at a time, in plain Python."""
    assumed = max(length, 2)
    noise = min(max(round(assumed * density), 1), assumed - 1)
    spans = max(1, round(noise / mean))
    spans = min(spans, noise, assumed - noise)
    mask: list[bool] = []
    for kept_run, noise_run in zip(
        parts_twin(assumed - noise, spans, kept_values),
        parts_twin(noise, spans, noise_values),
        strict=True,
    ):
        mask += [False] * kept_run + [True] * noise_run
    return mask[:length]


def runs(mask: np.ndarray) -> int:
    """How many runs of True there are."""
    return int(np.sum(np.diff(np.concatenate([[0], mask.astype(int)])) == 1))


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 70), min_size=1, max_size=6),
    density=st.sampled_from([0.1, 0.15, 0.25, 0.5, 0.9]),
    mean=st.sampled_from([1.0, 2.0, 3.0, 5.0, 10.0]),
    seed=st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)),
)
def test_random_spans_are_those_of_the_definition(lengths, density, mean, seed):
    width = max(lengths)
    mask = spans_mask(lengths, density, mean, seed)
    noise, _ = span_counts(width, noise_density=density, mean_noise_span_length=mean)
    seeds = tf.random.split(tf.constant(seed), 2, alg=PHILOX)
    count = len(lengths)
    noise_values = draws((count, max(int(noise.max()) - 1, 1)), seeds[0])
    kept_values = draws((count, max(width, 2) - 1), seeds[1])
    for number, length in enumerate(lengths):
        twin = spans_twin(length, density, mean, noise_values[number], kept_values[number])
        assert mask[number, :length].tolist() == twin
        assert not mask[number, length:].any()


def test_a_segment_of_568_tokens_has_85_noise_tokens_in_28_spans():
    mask = spans_mask([568] * 20)
    assert mask.sum(axis=1).tolist() == [85] * 20
    assert [runs(row) for row in mask] == [28] * 20
    assert not mask[:, 0].any()
    assert mask[:, -1].all()


def test_all_ways_to_place_the_spans_are_equally_likely():
    mask = spans_mask([8] * 20_000, density=0.5, mean=2.0)  # 4 noise tokens in 2 spans: 3 * 3 ways
    ways = Counter(tuple(row) for row in mask.tolist())
    assert len(ways) == 9
    expected = 20_000 / 9
    chi_square = sum((count - expected) ** 2 / expected for count in ways.values())
    assert chi_square < 26.1  # 99.9 % of chi-square with 8 degrees of freedom


def test_the_seed_alone_decides_the_draw():
    first = spans_mask([50] * 4, seed=(3, 4))
    assert (first == spans_mask([50] * 4, seed=(3, 4))).all()
    assert (first != spans_mask([50] * 4, seed=(3, 5))).any()
    compiled = tf.function(random_spans_noise_mask)(
        tf.constant([50] * 4),
        max_tokens=50,
        noise_density=0.15,
        mean_noise_span_length=3.0,
        seed=tf.constant((3, 4)),
    )
    assert (first == compiled.numpy()).all()


def test_known_draw_does_not_move():
    """Weights of a run depend on it: a change here changes every pre-training."""
    mask = spans_mask([12, 6], density=0.3, mean=2.0, seed=(1, 2))
    drawn = ["".join("x" if noise else "." for noise in row) for row in mask]
    assert drawn == [".......xx.xx", "....xx......"]


def test_iid_noise_is_a_draw_below_the_density():
    lengths = [40, 7]
    mask = iid_noise_mask(
        tf.constant(lengths), max_tokens=40, noise_density=0.15, seed=tf.constant((1, 2))
    ).numpy()
    expected = draws((2, 40), (1, 2)) < 0.15
    expected[1, 7:] = False
    assert (mask == expected).all()


def test_iid_noise_has_its_density():
    mask = iid_noise_mask(
        tf.fill([200], 500), max_tokens=500, noise_density=0.15, seed=tf.constant((5, 6))
    ).numpy()
    assert abs(mask.mean() - 0.15) < 4 * np.sqrt(0.15 * 0.85 / mask.size)


@pytest.mark.parametrize(("density", "shortest"), [(0.5, 1), (0.25, 4), (0.1, 7)])
def test_prefixes_of_all_allowed_lengths_are_equally_likely(density: float, shortest: int):
    mask = random_prefix_mask(
        tf.fill([9000], 10), max_tokens=12, noise_density=density, seed=tf.constant((7, 8))
    ).numpy()
    lengths = mask.sum(axis=1)
    assert (mask == (np.arange(12) < lengths[:, np.newaxis])).all()
    found, counts = np.unique(lengths, return_counts=True)
    assert found.tolist() == list(range(shortest, 10))
    assert (np.abs(counts / 9000 - 1 / len(found)) < 4 * np.sqrt(0.25 / 9000)).all()
