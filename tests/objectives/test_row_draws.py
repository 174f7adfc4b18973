"""Random numbers of a row depend on the row and its epoch only."""

import numpy as np
import pytest

from t5repro.objectives.row_draws import Draw, RowDraws

MANY = 200_000


def draws_of(rows: np.ndarray | list[int], epoch: int = 0, seed: int = 0) -> RowDraws:
    row = np.asarray(rows, np.int64)
    return RowDraws(seed, row, np.full_like(row, epoch))


def test_a_row_draws_the_same_numbers_in_any_batch() -> None:
    together = draws_of([5, 7, 1 << 40]).uniform(Draw.POSITIONS, 10)
    alone = draws_of([1 << 40]).uniform(Draw.POSITIONS, 3)
    assert (together[2, :3] == alone[0]).all()


def test_rows_epochs_uses_and_seeds_have_different_numbers() -> None:
    first = draws_of([3]).words(Draw.POSITIONS, 8)
    others = [
        draws_of([4]).words(Draw.POSITIONS, 8),
        draws_of([3 + (1 << 32)]).words(Draw.POSITIONS, 8),
        draws_of([3], epoch=1).words(Draw.POSITIONS, 8),
        draws_of([3]).words(Draw.REPLACEMENT, 8),
        draws_of([3], seed=1).words(Draw.POSITIONS, 8),
    ]
    for other in others:
        assert not (other == first).any()


def test_uniform_numbers_fill_the_unit_interval_evenly() -> None:
    numbers = draws_of(np.arange(MANY)).uniform(Draw.BUDGET, 1)[:, 0]
    assert numbers.min() >= 0
    assert numbers.max() < 1
    shares = np.bincount((numbers * 16).astype(int), minlength=16) / MANY
    assert np.abs(shares - 1 / 16).max() < 4 * np.sqrt(1 / 16 / MANY)


def test_bounded_numbers_are_even_and_a_bound_of_zero_gives_zero() -> None:
    bounds = np.resize([7, 1, 0], MANY)
    numbers = draws_of(np.arange(MANY)).below(Draw.OTHER_DOCUMENT, bounds)
    counts = np.bincount(numbers[::3])
    assert len(counts) == 7
    assert np.abs(counts / counts.sum() - 1 / 7).max() < 4 * np.sqrt(1 / 7 / counts.sum())
    assert not numbers[1::3].any()
    assert not numbers[2::3].any()


@pytest.mark.parametrize("tosses", [1, 31, 32, 33, 100])
def test_heads_are_binomial(tosses: int) -> None:
    fair = np.full(MANY, tosses)
    heads = draws_of(np.arange(MANY)).heads(Draw.FRONT_OF_FIRST, fair)
    assert heads.min() >= 0
    assert heads.max() <= tosses
    assert abs(heads.mean() - tosses / 2) < 4 * np.sqrt(tosses / 4 / MANY)
    assert abs(heads.var() / (tosses / 4) - 1) < 4 * np.sqrt(2 / MANY)


def test_heads_of_rows_of_a_batch_have_numbers_of_tosses_of_their_own() -> None:
    tosses = np.array([0, 64, 0, 5])
    heads = draws_of([0, 1, 2, 3]).heads(Draw.FRONT_OF_FIRST, tosses)
    assert heads[0] == heads[2] == 0
    assert heads[3] <= 5
    assert draws_of([0]).heads(Draw.FRONT_OF_FIRST, tosses[:1]) == [0]
