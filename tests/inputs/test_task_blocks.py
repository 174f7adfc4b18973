"""Steps of one task each: how often a task is drawn, and which of its examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.inputs.task_blocks import blocks_per_epoch, draw_blocks
from t5repro.inputs.task_mixture import Mixture


def mixture_of(*counts: int, rates: tuple[float, ...] | None = None) -> Mixture:
    return Mixture(
        tasks=tuple(f"task_{number}" for number in range(len(counts))),
        rates=np.array(rates or counts, np.float64),
        counts=np.array(counts, np.int64),
        lengths=np.ones((sum(counts), 2), np.int32),
    )


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(1, 70), min_size=1, max_size=5),
    batch_size=st.integers(1, 16),
    seed=st.integers(0, 99),
)
def test_an_epoch_has_every_example_and_a_step_one_task(
    counts: list[int], batch_size: int, seed: int
) -> None:
    mixture = mixture_of(*counts)
    steps = sum(-(-count // batch_size) for count in counts)
    drawn = draw_blocks(mixture, batch_size, first_step=0, steps=steps, seed=seed)
    rows = drawn.reshape(steps, batch_size)
    tasks = mixture.task_indices[rows]
    assert (tasks == tasks[:, :1]).all()
    assert set(drawn.tolist()) == set(range(sum(counts)))
    # Filled up by the first examples of a task: none but the last block repeats.
    assert np.bincount(tasks[:, 0]).tolist() == [-(-count // batch_size) for count in counts]


def test_the_examples_of_a_step_follow_from_its_number_and_the_seed() -> None:
    mixture = mixture_of(50, 31, 7)
    options = {"mixture": mixture, "batch_size": 8, "seed": 5}
    whole = draw_blocks(**options, first_step=0, steps=60).reshape(60, 8)
    for first in (0, 7, 11, 12, 13, 40):
        part = draw_blocks(**options, first_step=first, steps=20).reshape(20, 8)
        np.testing.assert_array_equal(part, whole[first : first + 20])
    assert draw_blocks(**options, first_step=3, steps=0).size == 0
    other = draw_blocks(mixture, 8, first_step=0, steps=60, seed=6)
    assert (other != whole.ravel()).any()


def test_blocks_are_the_same_in_every_epoch_and_their_order_is_not() -> None:
    mixture = mixture_of(64, 32)
    first, second = (
        draw_blocks(mixture, 8, first_step=12 * epoch, steps=12, seed=1).reshape(12, 8)
        for epoch in range(2)
    )
    assert {tuple(row) for row in first.tolist()} == {tuple(row) for row in second.tolist()}
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize(
    ("rates", "steps"),
    [
        ((1000, 100, 20), [125, 13, 3]),  # in proportion
        ((200, 100, 20), [25, 13, 3]),  # with a limit of 200
        ((1, 1, 1), [3, 3, 3]),  # equal
    ],
)
def test_the_steps_of_a_task_follow_the_rates(rates: tuple[float, ...], steps: list[int]) -> None:
    mixture = mixture_of(1000, 100, 20, rates=rates)
    assert blocks_per_epoch(mixture, 8).tolist() == steps
    length = sum(steps)
    drawn = draw_blocks(mixture, 8, first_step=0, steps=5 * length, seed=0).reshape(-1, 8)
    tasks = mixture.task_indices[drawn[:, 0]]
    assert np.bincount(tasks).tolist() == [5 * count for count in steps]
    if rates[0] == 200:  # the next epochs read on: 125 blocks last for 5 of them
        assert len({tuple(row) for row in drawn[tasks == 0].tolist()}) == 125
