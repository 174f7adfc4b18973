"""Examples as ids: truncation, padded lengths and batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.model.decode_inputs import EncodedInputs, batches, end_inputs, pad_batch, padded_length
from t5repro.vocab.special_ids import EOS_ID

LENGTHS = st.lists(st.integers(0, 90), min_size=1, max_size=60)


def encoded(lengths: list[int], task: str = "a", longest: int = 64) -> list[EncodedInputs]:
    return end_inputs(task, [[7] * length for length in lengths], inputs_length=longest)


def test_inputs_are_cut_to_leave_room_for_eos() -> None:
    short, exact, long = encoded([2, 63, 64])
    assert short.tokens == (7, 7, EOS_ID)
    assert not short.truncated
    assert (len(exact.tokens), exact.truncated) == (64, False)
    assert (len(long.tokens), long.truncated) == (64, True)
    assert long.tokens[-1] == EOS_ID


@pytest.mark.parametrize(
    ("tokens", "longest", "length"),
    [(1, 512, 32), (32, 512, 32), (33, 512, 64), (300, 512, 512), (65, 96, 96), (5, 20, 20)],
)
def test_lengths_are_padded_to_few_sizes(tokens: int, longest: int, length: int) -> None:
    assert padded_length(tokens, longest=longest) == length


@given(LENGTHS, st.integers(1, 9))
def test_every_example_is_in_exactly_one_batch_of_its_own_padded_length(
    lengths: list[int], batch_size: int
) -> None:
    inputs = encoded(lengths) + encoded(lengths, "b")
    groups = list(batches(inputs, batch_size=batch_size))
    assert sorted((example.task, example.row) for batch in groups for example in batch) == sorted(
        (example.task, example.row) for example in inputs
    )
    for batch in groups:
        assert len(batch) <= batch_size
        assert len({example.padded_length for example in batch}) == 1
    assert len({batch[0].padded_length for batch in groups}) <= 2  # 32 and 64


@given(LENGTHS, st.integers(60, 70))
def test_a_row_of_a_batch_has_its_tokens_and_then_zeros(
    lengths: list[int], batch_size: int
) -> None:
    batch = [example for example in encoded(lengths) if example.padded_length == 64]
    if not batch:
        return
    ids = pad_batch(batch, batch_size=batch_size)
    assert ids.shape == (batch_size, 64)
    for row, example in enumerate(batch):
        assert tuple(ids[row][ids[row] > 0]) == example.tokens
    assert all((ids[row] == ids[0]).all() for row in range(len(batch), batch_size))
