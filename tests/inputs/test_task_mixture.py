import sys
from itertools import pairwise

import numpy as np
import pytest

from t5repro.inputs import task_mixture as planner
from t5repro.inputs.packing import BLOCK_ITEMS
from t5repro.inputs.task_mixture import Mixture, draw_examples, draw_rows

MAX_LENGTHS = (64, 16)


@pytest.fixture
def mixture() -> Mixture:
    random = np.random.default_rng(0)
    counts = np.array([3000, 500, 7])
    lengths = np.stack([random.integers(3, 30, 3507), random.integers(2, 6, 3507)], 1)
    return Mixture(
        tasks=("large", "middle", "small"),
        rates=np.array([0.6, 0.3, 0.1]),
        counts=counts,
        lengths=lengths.astype(np.int32),
    )


def plan(mixture: Mixture, first_row: int, rows: int, seed: int = 0) -> list[list[int]]:
    found = draw_rows(mixture, max_lengths=MAX_LENGTHS, first_row=first_row, rows=rows, seed=seed)
    assert len(found.splits) == rows + 1
    return [found.examples[low:high].tolist() for low, high in pairwise(found.splits)]


def test_rows_depend_on_their_number_not_on_where_the_plan_begins(mixture: Mixture):
    whole = plan(mixture, 0, 9000)
    assert sum(map(len, whole)) > 2 * BLOCK_ITEMS
    assert plan(mixture, 8000, 1000) == whole[8000:]
    assert plan(mixture, 4321, 1) == whole[4321:4322]
    assert plan(mixture, 17, 0) == []


def test_rows_do_not_depend_on_how_many_blocks_are_planned_together(mixture: Mixture, monkeypatch):
    whole = plan(mixture, 0, 9000)
    monkeypatch.setattr(planner, "BLOCKS_PER_DRAW", 1)
    assert plan(mixture, 0, 9000) == whole


def test_no_row_is_over_full_and_rows_are_nearly_full(mixture: Mixture):
    rows = plan(mixture, 0, 5000)
    filled = np.array([mixture.lengths[row].sum(axis=0) for row in rows])
    assert (filled <= MAX_LENGTHS).all()
    assert (filled / MAX_LENGTHS).max(axis=1).mean() > 0.95


def test_tasks_are_drawn_by_their_rates(mixture: Mixture):
    drawn, used = draw_examples(
        mixture, first_block=0, blocks=4, draw_counts=np.zeros(3, np.int64), seed=0
    )
    share = used / len(drawn)
    spread = np.sqrt(mixture.rates * (1 - mixture.rates) / len(drawn))
    assert (np.abs(share - mixture.rates) < 4 * spread).all()


def test_each_task_goes_through_all_its_examples_before_any_comes_again(mixture: Mixture):
    drawn, _ = draw_examples(
        mixture, first_block=0, blocks=2, draw_counts=np.zeros(3, np.int64), seed=0
    )
    for first, count in ((0, 3000), (3000, 500), (3500, 7)):
        mine = drawn[(drawn >= first) & (drawn < first + count)]
        epochs = [mine[low : low + count] for low in range(0, len(mine) - count, count)]
        assert len(epochs) >= 2
        assert all(sorted(epoch) == list(range(first, first + count)) for epoch in epochs)
        assert any((one != other).any() for one, other in pairwise(epochs))


def test_blocks_continue_where_the_last_one_stopped(mixture: Mixture):
    start = np.zeros(3, np.int64)
    both, used = draw_examples(mixture, first_block=0, blocks=2, draw_counts=start, seed=0)
    one, after_one = draw_examples(mixture, first_block=0, blocks=1, draw_counts=start, seed=0)
    two, after_two = draw_examples(mixture, first_block=1, blocks=1, draw_counts=after_one, seed=0)
    assert (both == np.concatenate([one, two])).all()
    assert (used == after_two).all()


def test_another_seed_draws_another_stream(mixture: Mixture):
    assert plan(mixture, 0, 50) != plan(mixture, 0, 50, seed=1)


def test_a_task_of_rate_zero_is_never_drawn(mixture: Mixture):
    silent = Mixture(mixture.tasks, np.array([1.0, 0.0, 0.0]), mixture.counts, mixture.lengths)
    assert max(max(row) for row in plan(silent, 0, 3000)) < 3000


def function_calls(mixture: Mixture, first_row: int) -> int:
    """Return how many functions are called to draw a few rows from `first_row` on."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        draw_rows(mixture, max_lengths=MAX_LENGTHS, first_row=first_row, rows=10, seed=0)
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_of_a_late_resumption_is_a_few_calls_for_each_earlier_row(mixture: Mixture):
    early, late = function_calls(mixture, 50_000), function_calls(mixture, 100_000)
    assert late < 2.2 * early
    assert late < 30 * 100_000
