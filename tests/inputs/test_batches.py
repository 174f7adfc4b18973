import numpy as np

from t5repro.inputs.batches import (
    Batches,
    FlatSegments,
    counted,
    encoder_decoder_batch,
    gather_pieces,
    joined_batch,
    pad_segments,
)


def flat(*segments: list[int]) -> FlatSegments:
    ids = [token for segment in segments for token in segment]
    return FlatSegments(np.array(ids, np.int32), np.array([len(item) for item in segments]))


def test_segments_lie_one_after_another_with_their_numbers():
    features, targets = encoder_decoder_batch(
        flat([11, 12, 1], [13, 1], [14, 15, 16, 1]),
        flat([21, 1], [22, 23, 1], [24, 1]),
        np.array([2, 1]),
        inputs_length=6,
        targets_length=5,
    )
    assert {name: value.tolist() for name, value in features.items()} == {
        "encoder_ids": [[11, 12, 1, 13, 1, 0], [14, 15, 16, 1, 0, 0]],
        "encoder_segments": [[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]],
        "decoder_ids": [[0, 21, 0, 22, 23], [0, 24, 0, 0, 0]],
        "decoder_segments": [[1, 1, 2, 2, 2], [1, 1, 0, 0, 0]],
    }
    assert targets.tolist() == [[21, 1, 22, 23, 1], [24, 1, 0, 0, 0]]


def test_everything_is_int32_of_fixed_shape():
    features, targets = encoder_decoder_batch(
        flat([5, 1]), flat([6, 1]), np.array([1]), inputs_length=4, targets_length=3
    )
    assert {(value.dtype, value.shape) for value in features.values()} == {
        (np.dtype("int32"), (1, 4)),
        (np.dtype("int32"), (1, 3)),
    }
    assert targets.dtype == np.int32


def test_pieces_are_gathered_in_order():
    ids = np.arange(100, dtype=np.uint16)
    found = gather_pieces(ids, np.array([90, 3]), np.array([2, 3]))
    assert found.dtype == np.int32
    assert found.tolist() == [90, 91, 3, 4, 5]


def test_padded_segments_have_zero_behind_their_end():
    assert pad_segments(flat([5, 6], [7]), 3).tolist() == [[5, 6, 0], [7, 0, 0]]


def test_what_exceeds_a_row_is_cut_off_and_later_segments_of_it_have_no_token():
    segments = flat([5, 6, 7], [8, 9]), flat([10, 11], [12]), np.array([2])
    features, targets = encoder_decoder_batch(*segments, inputs_length=2, targets_length=3)
    assert features["encoder_ids"].tolist() == [[5, 6]]
    assert features["encoder_segments"].tolist() == [[1, 1]]
    assert targets.tolist() == [[10, 11, 12]]
    features, targets = joined_batch(*segments, inputs_length=2, targets_length=4)
    assert features["decoder_ids"].tolist() == [[0, 5, 6, 7, 10, 0]]
    assert features["decoder_prefix"].tolist() == [[1, 1, 1, 1, 0, 1]]
    assert targets.tolist() == [[0, 0, 0, 10, 11, 0]]


def test_a_segment_without_inputs_is_its_targets_for_a_decoder():
    features, targets = joined_batch(
        flat([], [5]), flat([6, 7], [8]), np.array([1, 1]), inputs_length=1, targets_length=3
    )
    assert features["decoder_ids"].tolist() == [[0, 6, 0, 0], [0, 5, 0, 0]]
    assert features["decoder_prefix"].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert targets.tolist() == [[6, 7, 0, 0], [0, 8, 0, 0]]


def test_positions_are_counted_within_each_length_and_lengths_of_zero_have_none():
    assert counted(np.array([2, 0, 3])).tolist() == [0, 1, 0, 1, 2]
    assert counted(np.zeros(0, np.int64)).tolist() == []


def test_batches_are_made_in_order_when_they_are_read_and_can_be_read_again():
    made = []

    def make(step):
        made.append(step)
        return {"step": np.array(step)}, np.array(-step)

    batches = Batches(make, 7, 3)
    assert len(batches) == 3
    assert made == []
    for _ in range(2):
        assert [int(features["step"]) for features, _ in batches] == [7, 8, 9]
    assert made == [7, 8, 9, 7, 8, 9]
    assert list(Batches(make, 7, 0)) == []
