"""Collect the keys of all cleaned files in buckets, so that equal keys come together.

Memory contains one bucket, or the removals of one cleaned file, however large the crawl.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.dedup.duplicates import REMOVAL_ROW, UNIT_ROW, URL_ROW, Rows
from t5repro.c4.dedup.spill import RowSpill, bucket_count, bucket_of
from t5repro.c4.keys import KEY_BYTES, key_halves
from t5repro.errors import ArtifactError
from t5repro.progress import Progress

BUCKET_PAGES = 500_000  # pages sorted together
BUCKET_KEY_BYTES = 8_000_000  # keys of units sorted together: half a million rows

URL_COLUMNS = ("url_key", "timestamp", "file", "record")
KEY_COLUMNS = {"line": "line_keys", "three_sentence_span": "span_keys"}


def spill_urls(shards: Sequence[Path], folder: Path, progress: Progress) -> RowSpill:
    """Return a row of dtype `URL_ROW` for every page, in buckets by normalised URL."""
    # Ties between equal timestamps are broken by file name; its rank sorts as a fixed-width
    # integer.
    files = {name: rank for rank, name in enumerate(_file_names(shards))}
    buckets = bucket_count(sum(map(tables.page_count, shards)), BUCKET_PAGES)
    spill = RowSpill(folder / "pages", URL_ROW, buckets)
    for shard, path in enumerate(shards):
        for first_row, batch in _batches(path, URL_COLUMNS):
            rows = url_rows(batch, files, shard, first_row)
            spill.add(rows, bucket_of(rows["high"], buckets))
        progress.advance()
    return spill


def url_rows(batch: pa.RecordBatch, files: Mapping[str, int], shard: int, first_row: int) -> Rows:
    """Return a row of dtype `URL_ROW` for each page of a batch.

    Args:
        batch: rows of a cleaned file, columns `URL_COLUMNS`.
        files: name of a WET file -> its rank.
        shard: number of the cleaned file.
        first_row: number of the first row of `batch`.
    """
    rows = np.zeros(len(batch), dtype=URL_ROW)
    _set_key(rows, b"".join(batch.column("url_key").to_pylist()))
    rows["timestamp"] = [date.encode() for date in batch.column("timestamp").to_pylist()]
    rows["file"] = [files[name] for name in batch.column("file").to_pylist()]
    rows["record"] = batch.column("record").to_numpy()
    rows["shard"] = shard
    rows["row"] = np.arange(first_row, first_row + len(batch))
    return rows


def _file_names(shards: Sequence[Path]) -> list[str]:
    """Return the names of all WET files, sorted."""
    names: set[str] = set()
    for path in shards:
        for _, batch in _batches(path, ("file",)):
            names.update(batch.column("file").unique().to_pylist())
    return sorted(names)


def spill_units(
    shards: Sequence[Path], unit: str, older_pages: RowSpill, folder: Path, progress: Progress
) -> RowSpill:
    """Return a row of dtype `UNIT_ROW` for every unit of the newest pages, in buckets by key.

    Args:
        shards: cleaned files, ordered.
        unit: `c4.dedup.unit`; without keys for it the result is empty.
        older_pages: pages that are not the newest of their URL, in buckets by shard.
        folder: folder of the buckets.
        progress: advances by one for each shard.
    """
    if unit not in KEY_COLUMNS:
        progress.advance(len(shards))
        return RowSpill(folder / "units", UNIT_ROW, 1)
    key_bytes = sum(tables.column_bytes(path, KEY_COLUMNS[unit]) for path in shards)
    buckets = bucket_count(key_bytes, BUCKET_KEY_BYTES)
    spill = RowSpill(folder / "units", UNIT_ROW, buckets)
    for shard, path in enumerate(shards):
        older_rows = np.sort(older_pages.read(shard)["row"])
        for first_row, batch in _batches(path, unit_columns(unit)):
            rows = unit_rows(batch, unit, older_rows, shard, first_row, path)
            spill.add(rows, bucket_of(rows["high"], buckets))
        progress.advance()
    return spill


def unit_columns(unit: str) -> tuple[str, ...]:
    """Return the columns that `unit_rows` reads."""
    return ("reason", "owner", KEY_COLUMNS[unit], "span_places")


def unit_rows(
    batch: pa.RecordBatch,
    unit: str,
    older_rows: NDArray[Any],
    shard: int,
    first_row: int,
    path: Path,
) -> Rows:
    """Return a row of dtype `UNIT_ROW` for each unit of the clean, newest pages of a batch.

    Args:
        batch: rows of a cleaned file, columns `unit_columns`.
        unit: unit of text, a key of `KEY_COLUMNS`.
        older_rows: numbers of the rows that are not the newest of their URL, ascending.
        shard: number of the cleaned file.
        first_row: number of the first row of `batch`.
        path: of the cleaned file, for the error.

    Raises:
        ArtifactError: the file has no keys of the unit.
    """
    keys = KEY_COLUMNS[unit]
    numbers = np.arange(first_row, first_row + len(batch))
    clean = pc.is_null(batch.column("reason")).to_numpy(zero_copy_only=False)
    if pc.is_null(batch.column(keys)).to_numpy(zero_copy_only=False)[clean].any():
        raise ArtifactError(
            f"{path} has no keys of c4.dedup.unit {unit!r}; delete it and rerun c4_clean"
        )
    # The share of the batch is a slice: a search of all rows would cost the square of the shard.
    begin, end = np.searchsorted(older_rows, (first_row, first_row + len(batch)))
    compared = clean & ~np.isin(numbers, older_rows[begin:end])
    return _rows_of_units(batch.filter(pa.array(compared)), keys, shard, numbers[compared])


def _rows_of_units(batch: pa.RecordBatch, keys: str, shard: int, numbers: NDArray[Any]) -> Rows:
    # A page's keys are one binary value, 16 bytes a unit.
    units = pc.binary_length(batch.column(keys)).to_numpy() // KEY_BYTES
    rows = np.zeros(int(units.sum()), dtype=UNIT_ROW)
    _set_key(rows, b"".join(batch.column(keys).to_pylist()))
    url_md5 = key_halves(b"".join(batch.column("owner").to_pylist()))
    rows["url_md5_high"] = np.repeat(url_md5[:, 0], units)
    rows["url_md5_low"] = np.repeat(url_md5[:, 1], units)
    rows["shard"] = shard
    rows["row"] = np.repeat(numbers, units)
    if keys == "span_keys":
        positions = np.frombuffer(
            b"".join(batch.column("span_places").to_pylist()), tables.POSITION
        )
        for name in tables.POSITION.names or ():
            rows[name] = positions[name]
    else:
        # Lines are numbered from 0 in each page: subtract the page's first index.
        page_starts = np.cumsum(units) - units
        rows["line"] = np.arange(len(rows)) - np.repeat(page_starts, units)
    return rows


def _set_key(rows: Rows, keys: bytes) -> None:
    halves = key_halves(keys)
    rows["high"], rows["low"] = halves[:, 0], halves[:, 1]


def _batches(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the batches of a cleaned file, each with the number of its first row."""
    first_row = 0
    parquet = tables.open_parquet(path, tables.CLEANED)
    for batch in tables.read_batches(parquet, path, columns):
        yield first_row, batch
        first_row += len(batch)


def add_removals(spill: RowSpill, rows: Rows) -> None:
    """Append the position of each removed page or unit to the bucket of its shard."""
    removals = np.zeros(len(rows), dtype=REMOVAL_ROW)
    for name in set(REMOVAL_ROW.names or ()) & set(rows.dtype.names or ()):
        removals[name] = rows[name]
    spill.add(removals, removals["shard"])
