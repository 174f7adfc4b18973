"""The order of rows in NumPy is the one that training draws with TensorFlow."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
from t5repro.inputs import row_index, row_order  # noqa: E402

pytestmark = pytest.mark.keras

COUNTS = (1, 17, 999, 65_535, 65_536, 65_537, 262_144, 3_000_000, 1 << 40)


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1])
@pytest.mark.parametrize("rows", COUNTS)
def test_rows_have_the_order_of_training(rows: int, seed: int) -> None:
    number = np.concatenate([np.arange(3000), np.arange(rows - 2, rows + 2), [5 * rows]])
    number = number[number >= 0].astype(np.int64)
    row, epoch = row_order.shuffled_rows(number, rows, seed)
    expected_row, expected_epoch = row_index.shuffled_rows(tf.constant(number), rows, seed)
    np.testing.assert_array_equal(row, expected_row.numpy())
    np.testing.assert_array_equal(epoch, expected_epoch.numpy())


@pytest.mark.parametrize("phase_range", [0, 1, 130, 511, 70_000])
def test_epochs_begin_where_those_of_training_do(phase_range: int) -> None:
    epoch = np.arange(1200, dtype=np.int64)
    expected = row_index.phases(tf.constant(epoch), phase_range, 3).numpy()
    np.testing.assert_array_equal(row_order.phases(epoch, phase_range, 3), expected)


def test_an_epoch_takes_each_row_once() -> None:
    row, _ = row_order.shuffled_rows(np.arange(70_000, dtype=np.int64), 70_000, 5)
    assert np.array_equal(np.sort(row), np.arange(70_000))
