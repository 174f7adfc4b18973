"""Rows on disk in buckets, so that a corpus larger than memory can be sorted a bucket at a time.

Buckets are ranges of a key, in order: what is sorted within each bucket is sorted as a whole, and
the result does not depend on how many there are.
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
from t5repro.files import TEMPORARY_PREFIX

MAX_BUCKETS = 4096
HELD_BYTES = 8_000_000  # of one spill in memory, before it goes to the disk
KEY_BITS = 64


def buckets_for(total: int, per_bucket: int) -> int:
    """Return how many buckets hold `total` in parts of about `per_bucket`: a power of two."""
    buckets = 1
    while buckets < MAX_BUCKETS and buckets * per_bucket < total:
        buckets *= 2
    return buckets


def bucket_of(high: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each key by its upper half, in the order of the keys."""
    if buckets == 1:
        return np.zeros(len(high), dtype=np.int64)
    return (high >> np.uint64(KEY_BITS - buckets.bit_length() + 1)).astype(np.int64)


@contextlib.contextmanager
def spill_folder(beside: Path) -> Iterator[Path]:
    """Yield an empty folder beside a file to be written; it goes when the block ends.

    Raises:
        StorageError: the disk is full, or the folder cannot be written.
    """
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=TEMPORARY_PREFIX, suffix="-spill", dir=beside.parent
        ) as folder:
            yield Path(folder)
    except OSError as error:
        raise storage_error(beside, error) from error


class RowSpill:
    """Fixed-width rows in buckets; what is little stays in memory.

    Args:
        stem: the begin of the paths of its files.
        dtype: of the rows.
        buckets: how many there are.
    """

    def __init__(self, stem: Path, dtype: np.dtype[Any], buckets: int) -> None:
        self._stem = stem
        self._dtype = dtype
        self._buckets = buckets
        self._held: defaultdict[int, list[bytes]] = defaultdict(list)
        self._held_bytes = 0

    def add(self, rows: NDArray[Any], buckets: NDArray[Any]) -> None:
        """Append each row to its bucket."""
        order = np.argsort(buckets, kind="stable")
        begins = np.searchsorted(buckets[order], np.arange(self._buckets + 1))
        for bucket in np.flatnonzero(np.diff(begins)).tolist():
            chosen = rows[order[begins[bucket] : begins[bucket + 1]]]
            self._held[bucket].append(chosen.astype(self._dtype, copy=False).tobytes())
            self._held_bytes += len(self._held[bucket][-1])
        if self._held_bytes > HELD_BYTES:
            self._write()

    def read(self, bucket: int) -> NDArray[Any]:
        """Return the rows of a bucket, in the order in which they were added."""
        path = self._path(bucket)
        data = [path.read_bytes()] if path.exists() else []
        return np.frombuffer(b"".join(data + self._held.get(bucket, [])), dtype=self._dtype)

    def drain(self) -> Iterator[NDArray[Any]]:
        """Yield the rows of each bucket and let go of them."""
        for bucket in range(self._buckets):
            yield self.read(bucket)
            self._held.pop(bucket, None)
            self._path(bucket).unlink(missing_ok=True)

    def _write(self) -> None:
        for bucket, held in self._held.items():
            with self._path(bucket).open("ab") as handle:
                handle.writelines(held)
        self._held.clear()
        self._held_bytes = 0

    def _path(self, bucket: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{bucket}")


class TableSpill:
    """Arrow rows in buckets; what is little stays in memory.

    Args:
        stem: the begin of the paths of its files.
        schema: of the rows.
        buckets: how many there are.
    """

    def __init__(self, stem: Path, schema: pa.Schema, buckets: int) -> None:
        self._stem = stem
        self._schema = schema
        self._buckets = buckets
        self._held: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._held_bytes = 0
        self._written: set[int] = set()

    def add(self, batch: pa.RecordBatch, buckets: NDArray[Any]) -> None:
        """Append each row to its bucket."""
        for bucket in np.unique(buckets).tolist():
            chosen = batch.take(pa.array(np.flatnonzero(buckets == bucket)))
            self._held[bucket].append(chosen)
            self._held_bytes += chosen.nbytes
        if self._held_bytes > HELD_BYTES:
            self._write()

    def drain(self) -> Iterator[pa.Table]:
        """Yield the rows of each bucket and let go of them."""
        for bucket in sorted({*self._written, *self._held}):
            batches = [*self._read(bucket), *self._held.pop(bucket, [])]
            yield pa.Table.from_batches(batches, self._schema)
            self._path(bucket).unlink(missing_ok=True)

    def _write(self) -> None:
        """Append what is held, a stream for each bucket, so that no file stays open."""
        for bucket, held in self._held.items():
            with (
                self._path(bucket).open("ab") as handle,
                pa.ipc.new_stream(handle, self._schema) as writer,
            ):
                for batch in held:
                    writer.write_batch(batch)
        self._written.update(self._held)
        self._held.clear()
        self._held_bytes = 0

    def _read(self, bucket: int) -> Iterator[pa.RecordBatch]:
        if bucket not in self._written:
            return
        with self._path(bucket).open("rb") as handle:
            end = os.fstat(handle.fileno()).st_size
            while handle.tell() < end:
                yield from pa.ipc.open_stream(handle)

    def _path(self, bucket: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}-{bucket}")
