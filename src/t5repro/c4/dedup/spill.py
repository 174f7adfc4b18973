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
BUFFER_BYTES = 8_000_000  # of one spill in memory before it is written to disk
KEY_BITS = 64


def bucket_count(total: int, per_bucket: int) -> int:
    """Return the number of buckets for `total` with about `per_bucket` each: a power of two."""
    buckets = 1
    # A power of two, so that a bucket is a prefix of bits of the key.
    while buckets < MAX_BUCKETS and buckets * per_bucket < total:
        buckets *= 2
    return buckets


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
    """Fixed-width rows in buckets; up to `BUFFER_BYTES` stay in memory.

    Args:
        stem: prefix of the paths of its files.
        dtype: of the rows.
        buckets: number of buckets.
    """

    def __init__(self, stem: Path, dtype: np.dtype[Any], buckets: int) -> None:
        self._stem = stem
        self._dtype = dtype
        self._buckets = buckets
        self._buffer: defaultdict[int, list[bytes]] = defaultdict(list)
        self._buffer_bytes = 0

    def add(self, rows: NDArray[Any], buckets: NDArray[Any]) -> None:
        """Append each row to its bucket."""
        # A stable sort keeps the rows of a bucket in the order of their arrival.
        order = np.argsort(buckets, kind="stable")
        starts = np.searchsorted(buckets[order], np.arange(self._buckets + 1))
        for bucket in np.flatnonzero(np.diff(starts)).tolist():
            bucket_rows = rows[order[starts[bucket] : starts[bucket + 1]]]
            self._buffer[bucket].append(bucket_rows.astype(self._dtype, copy=False).tobytes())
            self._buffer_bytes += len(self._buffer[bucket][-1])
        if self._buffer_bytes > BUFFER_BYTES:
            self._flush()

    def read(self, bucket: int) -> NDArray[Any]:
        """Return the rows of a bucket in the order in which they were added."""
        path = self._path(bucket)
        data = [path.read_bytes()] if path.exists() else []
        # Disk first: buffered rows were added after those of the last flush.
        return np.frombuffer(b"".join(data + self._buffer.get(bucket, [])), dtype=self._dtype)

    def drain(self) -> Iterator[NDArray[Any]]:
        """Yield the rows of each bucket and delete them."""
        for bucket in range(self._buckets):
            yield self.read(bucket)
            self._buffer.pop(bucket, None)
            self._path(bucket).unlink(missing_ok=True)

    def _flush(self) -> None:
        # Opened one at a time: there may be more buckets than a process may open files.
        for bucket, blocks in self._buffer.items():
            with self._path(bucket).open("ab") as handle:
                handle.writelines(blocks)
        self._buffer.clear()
        self._buffer_bytes = 0

    def _path(self, bucket: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{bucket}")


class TableSpill:
    """Arrow rows in buckets; up to `BUFFER_BYTES` stay in memory.

    Args:
        stem: prefix of the paths of its files.
        schema: of the rows.
    """

    def __init__(self, stem: Path, schema: pa.Schema) -> None:
        self._stem = stem
        self._schema = schema
        self._buffer: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._buffer_bytes = 0
        self._on_disk: set[int] = set()

    def add(self, batch: pa.RecordBatch, buckets: NDArray[Any]) -> None:
        """Append each row to its bucket."""
        for bucket in np.unique(buckets).tolist():
            # `take` copies, so the buffer does not keep the whole batch in memory.
            bucket_batch = batch.take(pa.array(np.flatnonzero(buckets == bucket)))
            self._buffer[bucket].append(bucket_batch)
            self._buffer_bytes += bucket_batch.nbytes
        if self._buffer_bytes > BUFFER_BYTES:
            self._flush()

    def drain(self) -> Iterator[pa.Table]:
        """Yield the rows of each bucket and delete them."""
        for bucket in sorted({*self._on_disk, *self._buffer}):
            batches = [*self._read(bucket), *self._buffer.pop(bucket, [])]
            yield pa.Table.from_batches(batches, self._schema)
            self._path(bucket).unlink(missing_ok=True)

    def _flush(self) -> None:
        # Each flush appends a complete Arrow stream, so no file stays open between flushes.
        for bucket, batches in self._buffer.items():
            with (
                self._path(bucket).open("ab") as handle,
                pa.ipc.new_stream(handle, self._schema) as writer,
            ):
                for batch in batches:
                    writer.write_batch(batch)
        self._on_disk.update(self._buffer)
        self._buffer.clear()
        self._buffer_bytes = 0

    def _read(self, bucket: int) -> Iterator[pa.RecordBatch]:
        if bucket not in self._on_disk:
            return
        with self._path(bucket).open("rb") as handle:
            end = os.fstat(handle.fileno()).st_size
            while handle.tell() < end:  # one Arrow stream per flush
                yield from pa.ipc.open_stream(handle)

    def _path(self, bucket: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{bucket}")
