"""Masks against twins in plain Python that are given the same random draws."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.objectives.lengths import span_counts
from t5repro.objectives.masks import (
    _largest_positions,
    iid_noise_mask,
    random_prefix_mask,
    random_spans_noise_mask,
)
from t5repro.objectives.philox import split, uniform


def seed_of(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def spans_mask(lengths, density=0.15, mean=3.0, seed=(1, 2), max_tokens=None) -> np.ndarray:
    return random_spans_noise_mask(
        np.array(lengths, np.int32),
        max_tokens=max_tokens or max(lengths),
        noise_density=density,
        mean_noise_span_length=mean,
        seed=seed_of(*seed),
    )


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
    seeds = split(seed_of(*seed))
    count = len(lengths)
    noise_values = uniform(seeds[0], count, max(int(noise.max()) - 1, 1))
    kept_values = uniform(seeds[1], count, max(width, 2) - 1)
    for number, length in enumerate(lengths):
        twin = spans_twin(length, density, mean, noise_values[number], kept_values[number])
        assert mask[number, :length].tolist() == twin
        assert not mask[number, length:].any()


@settings(max_examples=200)
@given(
    values=st.integers(1, 4).flatmap(
        lambda rows: st.integers(1, 40).flatmap(
            # Few different values, so that ties decide; -1 marks positions after the end.
            lambda width: st.lists(
                st.lists(st.integers(-1, 3), min_size=width, max_size=width),
                min_size=rows,
                max_size=rows,
            )
        )
    ),
    data=st.data(),
)
def test_of_equal_draws_the_first_is_the_larger(values, data):
    drawn = np.array(values, np.int64)
    count = data.draw(st.integers(1, drawn.shape[1]))
    expected = np.argsort(-drawn, axis=1, kind="stable")[:, :count]
    assert (_largest_positions(drawn, count) == expected).all()


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


def test_known_draw_does_not_move():
    """Weights of a run depend on it: a change here changes every pre-training."""
    mask = spans_mask([12, 6], density=0.3, mean=2.0, seed=(1, 2))
    drawn = ["".join("x" if noise else "." for noise in row) for row in mask]
    assert drawn == [".......xx.xx", "....xx......"]


def test_iid_noise_is_a_draw_below_the_density():
    lengths = [40, 7]
    mask = iid_noise_mask(np.array(lengths), max_tokens=40, noise_density=0.15, seed=seed_of(1, 2))
    expected = uniform(seed_of(1, 2), 2, 40) < 0.15
    expected[1, 7:] = False
    assert (mask == expected).all()


def test_iid_noise_has_its_density():
    mask = iid_noise_mask(np.full(200, 500), max_tokens=500, noise_density=0.15, seed=seed_of(5, 6))
    assert abs(mask.mean() - 0.15) < 4 * np.sqrt(0.15 * 0.85 / mask.size)


@pytest.mark.parametrize(("density", "shortest"), [(0.5, 1), (0.25, 4), (0.1, 7)])
def test_prefixes_of_all_allowed_lengths_are_equally_likely(density: float, shortest: int):
    mask = random_prefix_mask(
        np.full(9000, 10), max_tokens=12, noise_density=density, seed=seed_of(7, 8)
    )
    lengths = mask.sum(axis=1)
    assert (mask == (np.arange(12) < lengths[:, np.newaxis])).all()
    found, counts = np.unique(lengths, return_counts=True)
    assert found.tolist() == list(range(shortest, 10))
    assert (np.abs(counts / 9000 - 1 / len(found)) < 4 * np.sqrt(0.25 / 9000)).all()
