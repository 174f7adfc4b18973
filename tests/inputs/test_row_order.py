"""The order of rows is the permutation of TensorFlow's ``RandomIndexShuffle``."""

import numpy as np
import pytest

from t5repro.inputs.row_order import SHUFFLE_ROUNDS, phases, shuffled_rows
from t5repro.randomness import seed_pair

COUNTS = (1, 17, 999, 65_535, 65_536, 65_537, 262_144, 262_145, 3_000_000, 1 << 40)


def shuffled_by_tensorflow(
    index: np.ndarray, epoch: np.ndarray, count: int, seeds: tuple[int, int]
) -> np.ndarray:
    """Return the position of each index in the permutation of ``0 .. count - 1`` of its epoch."""
    tf = pytest.importorskip("tensorflow")
    columns = [np.full_like(epoch, seeds[0]), np.full_like(epoch, seeds[1]), epoch]
    positions: np.ndarray = tf.raw_ops.RandomIndexShuffle(
        index=index,
        seed=np.stack(columns, axis=1),
        max_index=np.int64(count - 1),
        rounds=SHUFFLE_ROUNDS,
    ).numpy()
    return positions


@pytest.mark.keras
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1])
@pytest.mark.parametrize("rows", COUNTS)
def test_rows_have_the_order_of_tensorflow(rows: int, seed: int) -> None:
    number = np.concatenate([np.arange(3000), np.arange(rows - 2, rows + 2), [5 * rows]])
    number = number[number >= 0].astype(np.int64)
    row, epoch = shuffled_rows(number, rows, seed)
    np.testing.assert_array_equal(epoch, number // rows)
    expected = shuffled_by_tensorflow(
        number % rows, epoch, rows, seed_pair(seed, "pretrain", "rows")
    )
    np.testing.assert_array_equal(row, expected)


@pytest.mark.keras
@pytest.mark.parametrize("phase_range", [0, 1, 130, 511, 70_000])
def test_epochs_begin_where_tensorflow_draws_their_phases(phase_range: int) -> None:
    epoch, count = np.arange(300, dtype=np.int64), phase_range + 1
    expected = shuffled_by_tensorflow(
        epoch % count, epoch // count, count, seed_pair(3, "pretrain", "phase")
    )
    np.testing.assert_array_equal(phases(epoch, phase_range, 3), expected)


@pytest.mark.parametrize("rows", [1, 2, 7, 100, 70_000])
def test_every_epoch_takes_each_row_once_in_another_order(rows: int) -> None:
    row, epoch = shuffled_rows(np.arange(6 * rows, dtype=np.int64), rows, 5)
    orders = row.reshape(6, rows)
    assert (epoch.reshape(6, rows) == np.arange(6)[:, np.newaxis]).all()
    assert (np.sort(orders, axis=1) == np.arange(rows)).all()
    if rows >= 100:
        assert len(np.unique(orders, axis=0)) == 6
