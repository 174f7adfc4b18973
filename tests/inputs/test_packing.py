from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import CorpusError
from t5repro.inputs.packing import (
    OPEN_ROWS,
    Documents,
    chunk_documents,
    cut_documents,
    document_stream,
    pack_documents,
    pack_rows,
    row_splits,
)

MAX_LENGTHS = (16, 6)


def offsets_of(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int64)


def documents_of(offsets: np.ndarray) -> Documents:
    return chunk_documents(offsets, chunk_tokens=0, seed=0)


def twin(lengths: np.ndarray, room: tuple[int, int], block_items: int) -> list[int]:
    """First fit with open rows, one item at a time."""
    rows: list[int] = []
    last = -1
    for start in range(0, len(lengths), block_items):
        slots = [{"row": None, "free": (0, 0)} for _ in range(OPEN_ROWS)]
        for wanted in lengths[start : start + block_items].tolist():
            for slot in slots:
                if all(free >= size for free, size in zip(slot["free"], wanted, strict=True)):
                    break
            else:
                slot = min(
                    slots, key=lambda s: min(f / r for f, r in zip(s["free"], room, strict=True))
                )
                last += 1
                slot.update(row=last, free=room)
            slot["free"] = tuple(f - w for f, w in zip(slot["free"], wanted, strict=True))
            rows.append(slot["row"])
    return rows


items = st.lists(st.tuples(st.integers(1, 16), st.integers(1, 6)), min_size=1, max_size=120)


@given(items, st.integers(1, 50))
def test_rows_are_those_of_first_fit_one_item_at_a_time(lengths, block_items):
    lengths = np.array(lengths, np.int32)
    rows = pack_rows(lengths, max_lengths=MAX_LENGTHS, block_items=block_items)
    assert rows.tolist() == twin(lengths, MAX_LENGTHS, block_items)


@given(items, st.integers(1, 50))
def test_no_row_is_over_full_and_none_is_empty(lengths, block_items):
    lengths = np.array(lengths, np.int32)
    rows = pack_rows(lengths, max_lengths=MAX_LENGTHS, block_items=block_items)
    splits = row_splits(rows)
    assert (np.diff(splits) > 0).all()
    assert splits[-1] == len(lengths)
    for side in range(2):
        assert (np.bincount(rows, weights=lengths[:, side]) <= MAX_LENGTHS[side]).all()


def test_short_examples_fill_rows_of_512_nearly_whole():
    random = np.random.default_rng(0)
    inputs = np.minimum(random.lognormal(3.1, 0.8, 40_000).astype(int) + 3, 512)
    targets = random.integers(2, 7, 40_000)
    rows = pack_rows(np.stack([inputs, targets], 1).astype(np.int32), max_lengths=(512, 114))
    fill = inputs.sum() / (512 * (rows.max() + 1))
    assert fill > 0.985


@given(st.lists(st.integers(1, 60), min_size=1, max_size=20), st.integers(2, 25))
def test_cut_segments_hold_every_token_once_and_none_crosses_documents(lengths, segment_tokens):
    offsets = offsets_of(lengths)
    starts, sizes = cut_documents(documents_of(offsets), segment_tokens=segment_tokens)
    tokens = np.concatenate([np.arange(a, a + b) for a, b in zip(starts, sizes, strict=True)])
    assert tokens.tolist() == list(range(offsets[-1]))
    first = np.searchsorted(offsets, starts, side="right")
    assert (first == np.searchsorted(offsets, starts + sizes - 1, side="right")).all()
    full = sizes == segment_tokens
    ends_document = np.isin(starts + sizes, offsets)
    assert (full | ends_document).all()


def test_packed_rows_hold_every_long_enough_segment_once():
    lengths = [40, 3, 11, 25, 4, 90]
    limits = np.stack([np.arange(21) + 1, np.arange(21) // 4 + 2], 1).astype(np.int32)
    packed = pack_documents(
        documents_of(offsets_of(lengths)),
        segment_tokens=20,
        limits_by_tokens=limits,
        inputs_length=40,
        targets_length=20,
        seed=0,
    )
    starts, sizes = cut_documents(documents_of(offsets_of(lengths)), segment_tokens=20)
    wanted = {(a, b) for a, b in zip(starts.tolist(), sizes.tolist(), strict=True) if b >= 4}
    found = list(zip(packed.starts.tolist(), packed.lengths.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == wanted
    assert packed.dropped == 1
    assert (packed.limits == limits[packed.lengths]).all()
    for low, high in pairwise(packed.splits):
        assert (packed.limits[low:high].sum(axis=0) <= (40, 20)).all()


def test_the_stream_holds_every_document_in_a_seeded_order():
    offsets = offsets_of([5, 9, 2, 14])
    stream = document_stream(documents_of(offsets), segment_tokens=8, seed=0)
    lengths = np.diff([0, *stream.end_offsets])
    assert sorted(zip(stream.starts.tolist(), lengths.tolist(), strict=True)) == [
        (0, 5),
        (5, 9),
        (14, 2),
        (16, 14),
    ]
    orders = {
        tuple(document_stream(documents_of(offsets), segment_tokens=8, seed=seed).starts)
        for seed in range(20)
    }
    assert len(orders) > 5


@given(st.lists(st.integers(1, 40), min_size=1, max_size=10), st.integers(1, 30))
def test_the_segments_of_an_epoch_fit_the_stream_wherever_it_begins(lengths, segment_tokens):
    offsets = offsets_of(lengths)
    if offsets[-1] < segment_tokens:
        with pytest.raises(CorpusError):
            document_stream(documents_of(offsets), segment_tokens=segment_tokens, seed=0)
        return
    stream = document_stream(documents_of(offsets), segment_tokens=segment_tokens, seed=0)
    assert stream.segments >= 1
    assert 0 <= stream.phase_range < segment_tokens
    assert stream.phase_range + stream.segments * segment_tokens <= offsets[-1]


@given(tokens=st.integers(1, 400), segment_tokens=st.integers(1, 30))
def test_an_epoch_leaves_less_than_two_segments_unread_and_a_run_at_most_one(
    tokens, segment_tokens
):
    if tokens < segment_tokens:
        return
    stream = document_stream(
        documents_of(offsets_of([tokens])), segment_tokens=segment_tokens, seed=0
    )
    read = np.zeros((stream.phase_range + 1, tokens), bool)
    for begin, row in enumerate(read):
        row[begin : begin + stream.segments * segment_tokens] = True
    assert (~read).sum(axis=1).max() < 2 * segment_tokens
    never = np.flatnonzero(~read.any(axis=0))
    # The cut moves by a segment less one: the last tokens of the order stay behind it (D-038).
    left = tokens % segment_tokens + 1 if tokens >= 2 * segment_tokens else 0
    assert never.tolist() == list(range(tokens - left, tokens))


def test_a_corpus_that_fills_no_row_is_refused():
    with pytest.raises(CorpusError, match=r"the corpus has 7 tokens, one row needs 8; .* lower"):
        document_stream(documents_of(offsets_of([3, 4])), segment_tokens=8, seed=0)


def test_documents_that_are_all_too_short_are_refused():
    with pytest.raises(CorpusError, match=r"no document of the corpus has 4 tokens"):
        pack_documents(
            documents_of(offsets_of([3, 2])),
            segment_tokens=8,
            limits_by_tokens=np.ones((9, 2), np.int32),
            inputs_length=8,
            targets_length=8,
            seed=0,
        )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=20), st.integers(1, 30))
def test_of_a_long_document_one_chunk_is_used(lengths: list[int], chunk_tokens: int):
    offsets = offsets_of(lengths)
    found = chunk_documents(offsets, chunk_tokens=chunk_tokens, seed=3)
    again = chunk_documents(offsets, chunk_tokens=chunk_tokens, seed=3)
    assert (found.starts == again.starts).all()
    for start, tokens, begin, length in zip(*found, offsets, lengths, strict=False):
        assert (start - begin) % chunk_tokens == 0
        assert tokens == min(chunk_tokens, length - (start - begin))
        assert tokens >= 1


def test_each_chunk_of_a_document_is_equally_likely_and_short_documents_stay_whole():
    found = chunk_documents(offsets_of([25] * 3000 + [9]), chunk_tokens=10, seed=0)
    first = (found.starts[:-1] - offsets_of([25] * 3000)[:-1]) // 10
    counts = np.bincount(first)
    assert len(counts) == 3
    assert ((counts - 1000) ** 2 / 1000).sum() < 13.8  # 99.9 % of chi-square, 2 degrees
    assert found.lengths[-1] == 9
    assert found.lengths[:-1][first == 2].tolist() == [5] * counts[2]
