"""Rows on disk in buckets, so that a corpus larger than memory is sorted one bucket at a time.

Buckets are consecutive ranges of a key. Sorting each bucket therefore sorts the whole, and the
result does not depend on the number of buckets.
"""

import contextlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from t5repro.errors import storage_error
from t5repro.files import SPILL_SUFFIX, TEMPORARY_PREFIX

MAX_BUCKETS = 4096
BUFFER_BYTES = 8_000_000  # of one spill in memory before it is written to disk, at least
MAX_BUFFER_BYTES = 128_000_000
PIECE_BYTES = 1 << 15  # of each bucket per write; opening a file costs as much as writing this
KEY_BITS = 64


def bucket_count(total: int, per_bucket: int) -> int:
    """Return the number of buckets for `total` with about `per_bucket` each: a power of two."""
    buckets = 1
    # A power of two, so that a bucket is a prefix of bits of the key.
    while buckets < MAX_BUCKETS and buckets * per_bucket < total:
        buckets *= 2
    return buckets


def buffer_bytes(buckets: int) -> int:
    """Return how many bytes of a spill stay in memory: more of them for more buckets."""
    return min(max(BUFFER_BYTES, PIECE_BYTES * buckets), MAX_BUFFER_BYTES)


def bucket_of(high: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each key: the leading bits of its upper half."""
    # A shift by 64 bits is undefined, so the single bucket is a case of its own.
    if buckets == 1:
        return np.zeros(len(high), dtype=np.int64)
    return (high >> np.uint64(KEY_BITS - buckets.bit_length() + 1)).astype(np.int64)


@contextlib.contextmanager
def spill_folder(output: Path) -> Iterator[Path]:
    """Yield an empty folder next to a file to be written; it is deleted when the block ends.

    Raises:
        StorageError: the disk is full, or the folder cannot be written.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=TEMPORARY_PREFIX, suffix=f"-{output.name}{SPILL_SUFFIX}", dir=output.parent
        ) as folder:
            yield Path(folder)
    except OSError as error:
        raise storage_error(output, error) from error


class RowSpill:
    """Fixed-width rows in buckets; up to `buffer_bytes` stay in memory.

    Args:
        stem: prefix of the paths of its files.
        dtype: of the rows.
        buckets: number of buckets.
    """

    def __init__(self, stem: Path, dtype: np.dtype[Any], buckets: int) -> None:
        self._stem = stem
        self._dtype = dtype
        self._buckets = buckets
        self._buffer_bytes = buffer_bytes(buckets)
        self._arrivals = _Arrivals()
        self._divided: dict[int, list[NDArray[Any]]] = defaultdict(list)  # rows by bucket

    def add(self, rows: NDArray[Any], buckets: NDArray[Any]) -> None:
        """Append each row to its bucket."""
        self._arrivals.add(rows.astype(self._dtype), buckets)  # a copy: the caller may reuse `rows`
        if self._arrivals.size > self._buffer_bytes:
            self._divide()
            self._flush()

    def read(self, bucket: int) -> NDArray[Any]:
        """Return the rows of a bucket in the order in which they were added."""
        self._divide()
        path = self._path(bucket)
        # Disk first: the rows in memory were added after those of the last flush.
        on_disk = np.frombuffer(path.read_bytes() if path.exists() else b"", self._dtype)
        return np.concatenate([on_disk, *self._divided.get(bucket, ())])

    def drain(self) -> Iterator[NDArray[Any]]:
        """Yield the rows of each bucket and delete them."""
        for bucket in range(self._buckets):
            yield self.read(bucket)
            self._divided.pop(bucket, None)
            self._path(bucket).unlink(missing_ok=True)

    def _divide(self) -> None:
        if not self._arrivals.size:
            return
        parts, order, ranges = self._arrivals.take()
        rows = np.concatenate(parts)[order]
        for bucket, begin, end in ranges:
            self._divided[bucket].append(rows[begin:end])

    def _flush(self) -> None:
        # Opened one at a time: there may be more buckets than a process may open files.
        for bucket, parts in self._divided.items():
            with self._path(bucket).open("ab") as handle:
                handle.writelines(part.tobytes() for part in parts)
        self._divided.clear()

    def _path(self, bucket: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{bucket}")


class TableSpill:
    """Arrow rows in buckets; up to `buffer_bytes` stay in memory.

    Args:
        stem: prefix of the paths of its files.
        schema: of the rows.
        buckets: number of buckets.
    """

    def __init__(self, stem: Path, schema: pa.Schema, buckets: int) -> None:
        self._stem = stem
        self._schema = schema
        self._buffer_bytes = buffer_bytes(buckets)
        self._arrivals = _Arrivals()
        self._on_disk: set[int] = set()

    def add(self, batch: pa.RecordBatch, buckets: NDArray[Any]) -> None:
        """Append each row to its bucket."""
        self._arrivals.add(batch, buckets)
        if self._arrivals.size > self._buffer_bytes:
            self._flush()

    def drain(self) -> Iterator[pa.Table]:
        """Yield the rows of each bucket and delete them."""
        in_memory = dict(self._divided())
        for bucket in sorted(self._on_disk | in_memory.keys()):
            batches = [*self._read(bucket), *in_memory.pop(bucket, [])]
            yield pa.Table.from_batches(batches, self._schema)
            self._path(bucket).unlink(missing_ok=True)

    def _divided(self) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Take the rows out of memory, bucket after bucket."""
        if not self._arrivals.size:
            return
        batches, order, ranges = self._arrivals.take()
        table = pa.Table.from_batches(batches, self._schema).take(pa.array(order))
        for bucket, begin, end in ranges:
            yield bucket, table.slice(begin, end - begin).to_batches()

    def _flush(self) -> None:
        # Each flush appends a complete Arrow stream, so no file stays open between flushes.
        for bucket, batches in self._divided():
            with (
                self._path(bucket).open("ab") as handle,
                pa.ipc.new_stream(handle, self._schema) as writer,
            ):
                for batch in batches:
                    writer.write_batch(batch)
            self._on_disk.add(bucket)

    def _read(self, bucket: int) -> Iterator[pa.RecordBatch]:
        if bucket not in self._on_disk:
            return
        with self._path(bucket).open("rb") as handle:
            end = os.fstat(handle.fileno()).st_size
            while handle.tell() < end:  # one Arrow stream per flush
                yield from pa.ipc.open_stream(handle)

    def _path(self, bucket: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{bucket}")


class _Arrivals:
    """Rows in memory in the order of their arrival, with their buckets.

    They are divided all at once: dividing each addition would make pieces of one row if there are
    thousands of buckets.
    """

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._buckets: list[NDArray[Any]] = []
        self.size = 0  # bytes

    def add(self, rows: Any, buckets: NDArray[Any]) -> None:
        self._parts.append(rows)
        self._buckets.append(buckets)
        self.size += rows.nbytes

    def take(self) -> tuple[list[Any], NDArray[np.int64], list[tuple[int, int, int]]]:
        """Return the parts, the order of their rows by bucket, and each bucket's range in it."""
        buckets = np.concatenate(self._buckets)
        # A stable sort keeps the rows of a bucket in the order of their arrival.
        order = np.argsort(buckets, kind="stable")
        numbers, begins = np.unique(buckets[order], return_index=True)
        ends = np.append(begins[1:], len(order))
        ranges = list(zip(numbers.tolist(), begins.tolist(), ends.tolist(), strict=True))
        parts = self._parts
        self._parts, self._buckets, self.size = [], [], 0
        return parts, order, ranges
