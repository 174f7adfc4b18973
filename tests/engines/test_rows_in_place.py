"""Rows of an array are written in its memory, which no other array shares."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
from keras import ops  # noqa: E402

from t5repro.engines import tensorflow_engine  # noqa: E402

pytestmark = pytest.mark.keras
SHAPE = (6, 2)


def filled(steps: int) -> list[np.ndarray]:
    """Return two arrays of zeros after a loop that writes other rows of them."""

    def write(step: object, first: object, second: object) -> tuple[object, ...]:
        rows = ops.convert_to_tensor([step, step + 3])
        values = ops.cast(ops.full((2, 2), step + 1), "float32")
        return (
            step + 1,
            tensorflow_engine.with_rows(first, rows, values),
            tensorflow_engine.with_rows(second, rows[:1], -values[:1]),
        )

    def run() -> tuple[object, ...]:
        arrays = [tensorflow_engine.zeros(SHAPE, "float32") for _ in range(2)]
        start = (ops.convert_to_tensor(0, dtype="int32"), *arrays)
        return ops.while_loop(lambda step, *_: step < steps, write, start)[1:]

    return [array.numpy() for array in tf.function(run)()]


@pytest.mark.parametrize("in_place", [True, False])
def test_arrays_written_in_a_loop_have_their_own_rows(
    in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorflow_engine, "_writes_in_place", lambda: in_place)
    first, second = filled(3)
    numbers = np.array([1, 2, 3, 1, 2, 3], np.float32)
    np.testing.assert_array_equal(first, np.stack([numbers, numbers], axis=1))
    numbers[3:] = 0
    np.testing.assert_array_equal(second, -np.stack([numbers, numbers], axis=1))


def test_a_cpu_writes_in_place() -> None:
    assert tensorflow_engine._writes_in_place()
    array = tensorflow_engine.zeros(SHAPE, "float32")
    written = tensorflow_engine.with_rows(array, tf.constant([4]), tf.constant([[7.0, 8.0]]))
    np.testing.assert_array_equal(array, written)
    np.testing.assert_array_equal(written[4], [7, 8])
