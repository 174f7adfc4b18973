import numpy as np
import pytest
import tensorflow as tf

from t5repro.inputs.batches import (
    FlatSegments,
    encoder_decoder_batch,
    gather_pieces,
    map_in_order,
    pad_segments,
)

pytestmark = pytest.mark.keras


def flat(*segments: list[int]) -> FlatSegments:
    ids = [token for segment in segments for token in segment]
    return FlatSegments(tf.constant(ids, tf.int32), tf.constant([len(item) for item in segments]))


def test_segments_lie_one_after_another_with_their_numbers():
    features, targets = encoder_decoder_batch(
        flat([11, 12, 1], [13, 1], [14, 15, 16, 1]),
        flat([21, 1], [22, 23, 1], [24, 1]),
        tf.constant([2, 1]),
        inputs_length=6,
        targets_length=5,
    )
    assert {name: value.numpy().tolist() for name, value in features.items()} == {
        "encoder_ids": [[11, 12, 1, 13, 1, 0], [14, 15, 16, 1, 0, 0]],
        "encoder_segments": [[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]],
        "decoder_ids": [[0, 21, 0, 22, 23], [0, 24, 0, 0, 0]],
        "decoder_segments": [[1, 1, 2, 2, 2], [1, 1, 0, 0, 0]],
    }
    assert targets.numpy().tolist() == [[21, 1, 22, 23, 1], [24, 1, 0, 0, 0]]


def test_everything_is_int32_of_fixed_shape():
    features, targets = encoder_decoder_batch(
        flat([5, 1]), flat([6, 1]), tf.constant([1]), inputs_length=4, targets_length=3
    )
    assert {(value.dtype, tuple(value.shape)) for value in features.values()} == {
        (tf.int32, (1, 4)),
        (tf.int32, (1, 3)),
    }
    assert targets.dtype == tf.int32


def test_pieces_are_gathered_in_order():
    ids = tf.constant(np.arange(100, dtype=np.uint16))
    found = gather_pieces(ids, tf.constant([90, 3], tf.int64), tf.constant([2, 3]))
    assert found.dtype == tf.int32
    assert found.numpy().tolist() == [90, 91, 3, 4, 5]


def test_padded_segments_have_zero_behind_their_end():
    assert pad_segments(flat([5, 6], [7]), 3).numpy().tolist() == [[5, 6, 0], [7, 0, 0]]


def test_batches_keep_their_order_and_nothing_rewrites_the_function_that_makes_them():
    numbers = tf.data.Dataset.range(100)
    squares = map_in_order(numbers, lambda number: number * number)
    assert list(squares.as_numpy_iterator()) == [number**2 for number in range(100)]

    def of_a_tensor(number):
        return number if number > 0 else -number

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        map_in_order(numbers, of_a_tensor)
