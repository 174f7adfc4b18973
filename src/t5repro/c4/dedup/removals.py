"""What each page loses to another: made from hashes on disk, read back page by page.

The work is `dedup`'s; here its rows are gathered from the cleaned files, spilled to disk in buckets
of their keys, and its answers are brought back to the order of the pages. Memory holds one bucket,
or what one cleaned file loses, however large the crawl.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import dropwhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.dedup.spill import RowSpill, bucket_of, buckets_for
from t5repro.errors import ArtifactError
from t5repro.progress import Progress

BUCKET_PAGES = 500_000  # rows of pages sorted together
BUCKET_KEY_BYTES = 8_000_000  # keys of units sorted together: half a million rows

URL_COLUMNS = ("url_key", "timestamp", "file", "record")
DUPLICATE_URL = "duplicate_url"
KEY_COLUMNS = {"line": "line_keys", "three_sentence_span": "span_keys"}


def add_losers(spill: RowSpill, rows: dedup_spans.Rows) -> None:
    """Append where each loser is to the bucket of its shard."""
    narrow = np.zeros(len(rows), dtype=dedup_spans.LOSER_ROW)
    for name in set(dedup_spans.LOSER_ROW.names or ()) & set(rows.dtype.names or ()):
        narrow[name] = rows[name]
    spill.add(narrow, narrow["shard"])


def spilled_urls(shards: Sequence[Path], folder: Path, progress: Progress) -> RowSpill:
    """Bring together the rows of equal normalised URLs."""
    files = {name: rank for rank, name in enumerate(_file_names(shards))}
    pages = sum(tables.opened(path, tables.CLEANED).metadata.num_rows for path in shards)
    buckets = buckets_for(pages, BUCKET_PAGES)
    spill = RowSpill(folder / "pages", dedup_spans.URL_ROW, buckets)
    for shard, path in enumerate(shards):
        for first, batch in _numbered(path, URL_COLUMNS):
            rows = url_rows(batch, files, shard, first)
            spill.add(rows, bucket_of(rows["high"], buckets))
        progress.advance()
    return spill


def url_rows(
    batch: pa.RecordBatch, files: Mapping[str, int], shard: int, first: int
) -> dedup_spans.Rows:
    """Return a row for each page of `batch`, columns `URL_COLUMNS`, the first being row `first`."""
    rows = np.zeros(len(batch), dtype=dedup_spans.URL_ROW)
    _set_key(rows, b"".join(batch.column("url_key").to_pylist()))
    rows["timestamp"] = [item.encode() for item in batch.column("timestamp").to_pylist()]
    rows["file"] = [files[name] for name in batch.column("file").to_pylist()]
    rows["record"] = batch.column("record").to_numpy()
    rows["shard"] = shard
    rows["row"] = np.arange(first, first + len(batch))
    return rows


def _file_names(shards: Sequence[Path]) -> list[str]:
    """Return the names of all WET files, in order."""
    names: set[str] = set()
    for path in shards:
        for _, batch in _numbered(path, ("file",)):
            names.update(batch.column("file").unique().to_pylist())
    return sorted(names)


def spilled_units(
    shards: Sequence[Path], unit: str, urls: RowSpill, folder: Path, progress: Progress
) -> RowSpill:
    """Bring together the rows of equal units of text, of the pages that are still in."""
    if unit not in KEY_COLUMNS:
        return RowSpill(folder / "units", dedup_spans.UNIT_ROW, 1)
    keys = KEY_COLUMNS[unit]
    total = sum(tables.column_bytes(tables.opened(path, tables.CLEANED), keys) for path in shards)
    buckets = buckets_for(total, BUCKET_KEY_BYTES)
    spill = RowSpill(folder / "units", dedup_spans.UNIT_ROW, buckets)
    for shard, path in enumerate(shards):
        gone = urls.read(shard)["row"]
        for first, batch in _numbered(path, unit_columns(unit)):
            rows = unit_rows(batch, unit, gone, shard, first, path)
            spill.add(rows, bucket_of(rows["high"], buckets))
        progress.advance()
    return spill


def unit_columns(unit: str) -> tuple[str, ...]:
    """Return the columns that `unit_rows` reads."""
    return ("reason", "owner", KEY_COLUMNS[unit], "span_places")


def unit_rows(
    batch: pa.RecordBatch, unit: str, gone: NDArray[Any], shard: int, first: int, path: Path
) -> dedup_spans.Rows:
    """Return a row for each unit of text of the pages of `batch` that are still in.

    Args:
        batch: rows of a cleaned file, columns `unit_columns`.
        unit: of text, a key of `KEY_COLUMNS`.
        gone: numbers of the rows that are older copies of a page.
        shard: number of the cleaned file.
        first: number of the first row of `batch`.
        path: of the cleaned file, for the error.

    Raises:
        ArtifactError: the file has no keys of the unit.
    """
    keys = KEY_COLUMNS[unit]
    numbers = np.arange(first, first + len(batch))
    stays = pc.is_null(batch.column("reason")).to_numpy(zero_copy_only=False)
    chosen = stays & ~np.isin(numbers, gone)
    if pc.is_null(batch.column(keys)).to_numpy(zero_copy_only=False)[stays].any():
        raise ArtifactError(
            f"{path} has no keys of c4.dedup.unit {unit!r}; delete it and rerun c4_clean"
        )
    return _rows_of_units(batch.filter(pa.array(chosen)), keys, shard, numbers[chosen])


def _rows_of_units(
    batch: pa.RecordBatch, keys: str, shard: int, numbers: NDArray[Any]
) -> dedup_spans.Rows:
    units = pc.binary_length(batch.column(keys)).to_numpy() // dedup_spans.KEY_BYTES
    rows = np.zeros(int(units.sum()), dtype=dedup_spans.UNIT_ROW)
    _set_key(rows, b"".join(batch.column(keys).to_pylist()))
    owners = dedup_spans.key_halves(b"".join(batch.column("owner").to_pylist()))
    rows["owner_high"] = np.repeat(owners[:, 0], units)
    rows["owner_low"] = np.repeat(owners[:, 1], units)
    rows["shard"] = shard
    rows["row"] = np.repeat(numbers, units)
    if keys == "span_keys":
        places = np.frombuffer(
            b"".join(batch.column("span_places").to_pylist()), dedup_spans.PLACE_TYPE
        )
        for name in dedup_spans.PLACE_TYPE.names or ():
            rows[name] = places[name]
    else:
        begins = np.cumsum(units) - units
        rows["line"] = np.arange(len(rows)) - np.repeat(begins, units)
    return rows


def _set_key(rows: dedup_spans.Rows, keys: bytes) -> None:
    halves = dedup_spans.key_halves(keys)
    rows["high"], rows["low"] = halves[:, 0], halves[:, 1]


def _numbered(
    path: Path, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield pieces of a cleaned file, each with the number of its first row."""
    first = 0
    for batch in tables.batches(tables.opened(path, tables.CLEANED), path, columns):
        yield first, batch
        first += len(batch)


def decisions_of(shard: int, urls: dedup_spans.Rows, units: dedup_spans.Rows) -> pa.RecordBatch:
    """Return rows of `tables.DECISIONS` for one shard."""
    ordered = units[np.lexsort((units["start"], units["line"], units["row"]))]
    numbers, begins = np.unique(ordered["row"], return_index=True)
    places = dedup_spans.places_of(ordered)
    found = {
        number: part.tobytes()
        for number, part in zip(
            numbers.tolist(), np.split(places, begins[1:]) if len(begins) else (), strict=True
        )
    }
    duplicates = set(urls["row"].tolist())
    rows = sorted(duplicates | found.keys())
    return pa.record_batch(
        [
            pa.array([shard] * len(rows), pa.uint32()),
            pa.array(rows, pa.uint32()),
            pa.array([row in duplicates for row in rows], pa.bool_()),
            pa.array([found.get(row, b"") for row in rows], pa.binary()),
        ],
        schema=tables.DECISIONS,
    )


def dedup_counts() -> Counter[str]:
    """Return the counters of deduplication, at zero."""
    counts = Counter(units=0, removed_units=0, pages_with_removed_units=0)
    counts[DUPLICATE_URL] = 0
    return counts


def counts_of_decisions(batch: pa.RecordBatch) -> dict[str, int]:
    """Return how many pages and units of text some decisions remove."""
    lost = pc.binary_length(batch.column("places")).to_numpy() // dedup_spans.PLACE_TYPE.itemsize
    return {
        DUPLICATE_URL: pc.sum(batch.column("duplicate_url")).as_py() or 0,
        "removed_units": int(lost.sum()),
        "pages_with_removed_units": int((lost > 0).sum()),
    }


def decisions_writer(
    output: Path, counts: Mapping[str, int], shards: Sequence[Sequence[Any]]
) -> AbstractContextManager[Any]:
    """Return a writer of rows of `tables.DECISIONS`, a row group for each shard.

    Args:
        output: file to write.
        counts: go into the file at the end.
        shards: name and pages of each cleaned file, in order.
    """
    return tables.written(
        output, tables.DECISIONS, lambda: {tables.COUNTS_KEY: counts, tables.SHARDS_KEY: shards}
    )


class Losses:
    """What pages lose, asked for in the order of the pages.

    Args:
        path: what the step of deduplication wrote.
        begin: shard and row of the first page that is asked for.

    Raises:
        ArtifactError: the decisions are missing or damaged.
    """

    def __init__(self, path: Path, begin: tuple[int, int] = (0, 0)) -> None:
        parquet = tables.opened(path, tables.DECISIONS)
        self.counts: dict[str, int] = tables.metadata_of(parquet, tables.COUNTS_KEY, path)
        groups = tables.groups_from(parquet, "shard", begin[0])
        rows = self._read(tables.batches(parquet, path, groups=groups))
        self._rows = dropwhile(lambda row: row[0] < begin, rows)
        self._next = next(self._rows, None)

    def of(self, shard: int, row: int) -> tuple[bool, dedup_spans.Rows] | None:
        """Return whether the page is an older copy, and the places it loses; None: nothing."""
        if self._next is None or self._next[0] != (shard, row):
            return None
        _, duplicate, places = self._next
        self._next = next(self._rows, None)
        return duplicate, np.frombuffer(places, dtype=dedup_spans.PLACE_TYPE)

    @staticmethod
    def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[int, int], bool, bytes]]:
        for batch in batches:
            for shard, row, duplicate, places in zip(*batch.to_pydict().values(), strict=True):
                yield (shard, row), duplicate, places


def check_shards(path: Path, shards: Sequence[Path]) -> None:
    """Refuse decisions about other cleaned files than `shards`, which are in order.

    Raises:
        ArtifactError: they are about other files, or are missing or damaged.
    """
    decided = tables.metadata_of(tables.opened(path, tables.DECISIONS), tables.SHARDS_KEY, path)
    given = tables.shard_list(shards)
    if decided != given:
        raise ArtifactError(
            f"{path} was made for the cleaned files and pages {decided}, not {given}; "
            "rerun c4_dedup"
        )
