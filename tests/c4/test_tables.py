"""Row groups end where they should, however the rows came."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4 import tables

ROWS = st.lists(st.integers(0, 9), max_size=30)  # the size of each row's text


def expected_groups(sizes):
    groups, pages, size = [[]], 0, 0
    for number, count in enumerate(sizes):
        groups[-1].append(number)
        pages, size = pages + 1, size + count
        if pages == 5 or size >= 20:
            groups.append([])
            pages = size = 0
    return [group for group in groups if group]


@given(ROWS, st.lists(st.integers(0, 7), max_size=30))
def test_rows_are_divided_by_number_and_size_whatever_the_batches(sizes, lengths):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "GROUP_PAGES", 5)
        patch.setattr(tables, "GROUP_BYTES", 20)
        batches, begin = [], 0
        for length in [*lengths, len(sizes)]:
            chosen = range(begin, min(begin + length, len(sizes)))
            batches.append((pa.record_batch({"row": [*chosen]}), [sizes[at] for at in chosen]))
            begin = chosen.stop
        found = [group.column("row").to_pylist() for group in tables.row_groups(batches)]
    assert found == expected_groups(sizes)
