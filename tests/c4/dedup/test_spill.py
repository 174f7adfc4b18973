import errno

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.dedup import spill as spill_module
from t5repro.c4.dedup.spill import (
    MAX_BUCKETS,
    RowSpill,
    TableSpill,
    bucket_count,
    bucket_of,
    buffer_bytes,
    spill_folder,
)
from t5repro.errors import StorageError

ROW = np.dtype([("high", "<u8"), ("value", "<u4")])


@pytest.mark.parametrize(
    ("total", "buckets"), [(0, 1), (10, 1), (11, 2), (20, 2), (21, 4), (10**9, MAX_BUCKETS)]
)
def test_buckets_are_a_power_of_two_that_hold_their_part(total, buckets):
    assert bucket_count(total, 10) == buckets


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.sampled_from([1, 2, 4, 64, 256]))
def test_buckets_are_ranges_in_the_order_of_the_keys(keys, buckets):
    high = np.array(sorted(keys), dtype=np.uint64)
    numbers = bucket_of(high, buckets)
    assert (np.diff(numbers) >= 0).all()
    assert numbers.tolist() == [key * buckets >> 64 for key in sorted(keys)]


@pytest.mark.parametrize(
    ("buckets", "size"), [(1, 8_000_000), (1024, 33_554_432), (4096, 128_000_000)]
)
def test_more_rows_stay_in_memory_the_more_buckets_there_are(buckets, size):
    assert buffer_bytes(buckets) == size


@pytest.fixture(params=[0, 30, 10**6], ids=["all on disk", "some on disk", "none on disk"])
def _held(request, monkeypatch):
    monkeypatch.setattr(spill_module, "buffer_bytes", lambda buckets: request.param)


@pytest.mark.usefixtures("_held")
def test_rows_come_back_from_their_bucket_in_the_order_in_which_they_came(tmp_path):
    spill = RowSpill(tmp_path / "rows", ROW, 3)
    spill.add(np.array([(9, 0), (1, 1), (9, 2)], dtype=ROW), np.array([2, 0, 2]))
    spill.add(np.array([(8, 3)], dtype=ROW), np.array([2]))
    spill.add(np.empty(0, dtype=ROW), np.empty(0, dtype=int))
    assert spill.read(2)["value"].tolist() == [0, 2, 3]
    spill.add(np.array([(1, 4)], dtype=ROW), np.array([0]))
    assert [rows["value"].tolist() for rows in spill.drain()] == [[1, 4], [], [0, 2, 3]]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_held")
def test_tables_come_back_from_their_bucket(tmp_path):
    schema = pa.schema([("text", pa.string())])
    spill = TableSpill(tmp_path / "pages", schema, 4)
    spill.add(pa.record_batch([["a", "b", "c"]], schema=schema), np.array([3, 1, 3]))
    spill.add(pa.record_batch([["d"]], schema=schema), np.array([1]))
    assert [table.column("text").to_pylist() for table in spill.drain()] == [["b", "d"], ["a", "c"]]
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_beside_the_output_and_goes_whatever_happens(tmp_path):
    with pytest.raises(KeyboardInterrupt), spill_folder(tmp_path / "new" / "output") as folder:
        (folder / "rows").write_bytes(b"x")
        assert folder.parent == tmp_path / "new"
        raise KeyboardInterrupt
    assert list((tmp_path / "new").iterdir()) == []


def test_a_full_disk_is_said_to_be_full(tmp_path):
    with (
        pytest.raises(StorageError, match=r"cannot write .*output: .*the disk is full"),
        spill_folder(tmp_path / "output"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
