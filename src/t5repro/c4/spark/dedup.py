"""Deduplication on Spark: fixed-width hashes are compared, pages are not moved.

The cleaned files are divided into *pieces* of whole row groups. For each piece a kernel keeps the
first row of every key, so a line that occurs ten million times sends at most one row per piece
through the shuffle. The rows, 40 bytes for a unit of text, are partitioned and sorted by key. All
but the first row of a key are later copies; their number in the piece returns to that piece. There
the kernel of one machine decides, given which first rows of the piece have an earlier copy
elsewhere. No task ever has all rows of a key in memory. The decisions about each cleaned file are
written by a task of their own.

Rows are ordered by their content down to their position in the crawl, so the decisions depend
neither on pieces nor on partitions or workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.dedup import duplicates, key_rows, removals
from t5repro.c4.dedup.duplicates import REMOVAL_ROW, UNIT_ROW, URL_ROW, Rows
from t5repro.c4.spark.rows import (
    NO_VALUE,
    NOTE,
    NOTES,
    Batches,
    cast_to,
    column,
    groups_of,
    note_batch,
    notes_first,
    runs_of,
    signed,
    spark_schema,
    task_numbers,
    with_columns,
)

# A position is the piece in the upper bits and the number within the piece in the lower ones.
PIECE_BITS = 32
NUMBER_MASK = 0xFFFFFFFF


def _integers(*names: str) -> pa.Schema:
    return pa.schema([*((name, pa.int64()) for name in names), (NOTE, pa.string())])


URLS = _integers("key", "key_low", "age_0", "age_1", "age_2", "age_3", "file", "position")
UNITS = _integers("key", "key_low", "url_md5", "url_md5_low", "position")
# Later copies, returned to their piece; `kind` is one of the constants below.
COPIES = _integers("piece", "kind", "number")
PIECE, URL, UNIT = range(3)  # `number` counts nothing, pages, or units of text of the piece
DECISIONS = spark_schema(tables.DECISIONS, ("shard", pa.int64()))


class Piece(NamedTuple):
    """Some row groups of a cleaned file.

    Attributes:
        shard: number of the file.
        path: of the file.
        groups: numbers of the row groups.
        first_row: number of their first row in the file.
    """

    shard: int
    path: Path
    groups: tuple[int, ...]
    first_row: int


def divide(shards: Sequence[Path], columns: Sequence[str], max_bytes: int) -> list[Piece]:
    """Divide cleaned files into pieces of about `max_bytes` of `columns` in memory."""
    pieces: list[Piece] = []
    for shard, path in enumerate(shards):
        parquet = tables.open_parquet(path, tables.CLEANED)
        groups: list[int] = []
        first_row = row = size = 0
        for number in range(parquet.metadata.num_row_groups):
            groups.append(number)
            row += parquet.metadata.row_group(number).num_rows
            size += _group_bytes(parquet, number, columns)
            # A row group is never split, so a piece may exceed the limit by one group.
            if size >= max_bytes:
                pieces.append(Piece(shard, path, tuple(groups), first_row))
                groups, first_row, size = [], row, 0
        if groups:
            pieces.append(Piece(shard, path, tuple(groups), first_row))
    return pieces


def _group_bytes(parquet: pq.ParquetFile, number: int, columns: Sequence[str]) -> int:
    group = parquet.metadata.row_group(number)
    indices = [parquet.schema_arrow.names.index(name) for name in columns]
    return sum(group.column(index).total_uncompressed_size for index in indices)


class PieceReader(NamedTuple):
    """Reads the rows of pieces.

    Attributes:
        pieces: of the cleaned files.
        unit: `c4.dedup.unit`; with ``off`` only pages are compared.
        files: name of a WET file -> its rank; may be empty for `file_names`.
    """

    pieces: Sequence[Piece]
    unit: str
    files: Mapping[str, int]

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of a piece, each batch with the number of its first row in the file."""
        row = piece.first_row
        parquet = tables.open_parquet(piece.path, tables.CLEANED)
        for batch in tables.read_batches(parquet, piece.path, columns, groups=piece.groups):
            yield row, batch
            row += len(batch)

    def url_rows(self, piece: Piece) -> Rows:
        """Return a row of dtype `URL_ROW` for each page of a piece."""
        row_arrays = [
            key_rows.url_rows(batch, self.files, piece.shard, row)
            for row, batch in self.batches(piece, key_rows.URL_COLUMNS)
        ]
        return np.concatenate([np.zeros(0, URL_ROW), *row_arrays])

    def unit_rows(self, piece: Piece, older_rows: NDArray[np.int64]) -> Rows:
        """Return a row of dtype `UNIT_ROW` for each unit of the newest pages of a piece."""
        if self.unit not in key_rows.KEY_COLUMNS:
            return np.zeros(0, UNIT_ROW)
        row_arrays = [
            key_rows.unit_rows(batch, self.unit, older_rows, piece.shard, row, piece.path)
            for row, batch in self.batches(piece, key_rows.unit_columns(self.unit))
        ]
        return np.concatenate([np.zeros(0, UNIT_ROW), *row_arrays])

    def older_pages(self, piece: Piece, later_copies: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the file that are not the newest page of their URL.

        Args:
            piece: part of a cleaned file.
            later_copies: numbers within the piece of pages with a newer copy in another piece.
        """
        # Copies that are older than another page of the piece were not sent through the shuffle.
        older_in_piece = duplicates.duplicate_urls(self.url_rows(piece))["row"].astype(np.int64)
        return np.union1d(older_in_piece, later_copies + piece.first_row)


def file_names(batches: Batches, reader: PieceReader) -> Batches:
    """Note the names of the WET files of pieces."""
    for number in task_numbers(batches):
        names: set[str] = set()
        for _, batch in reader.batches(reader.pieces[number], ("file",)):
            names.update(batch.column("file").unique().to_pylist())
        yield note_batch(NOTES, {"files": sorted(names)})


def first_urls(batches: Batches, reader: PieceReader) -> Batches:
    """Yield the newest page of each URL of a piece, columns `URLS`."""
    for number in task_numbers(batches):
        piece = reader.pieces[number]
        rows = reader.url_rows(piece)
        # Only the newest page of each URL of the piece competes with other pieces.
        rows = rows[~np.isin(rows["row"], duplicates.duplicate_urls(rows)["row"])]
        # Spark sorts ascending and has no binary order: the 32 bytes of a timestamp become four
        # big-endian integers, inverted so that the newest is the smallest.
        ages = ~np.ascontiguousarray(rows["timestamp"]).view(">u8").astype(np.uint64).reshape(-1, 4)
        columns = {
            "key": signed(rows["high"]),
            "key_low": signed(rows["low"]),
            **{f"age_{word}": signed(ages[:, word]) for word in range(4)},
            "file": (rows["file"].astype(np.int64) << PIECE_BITS) | rows["record"],
            "position": _positions(number, rows["row"].astype(np.int64) - piece.first_row),
        }
        yield with_columns(URLS, columns)


def first_units(batches: Batches, reader: PieceReader) -> Batches:
    """Yield the first unit of each key of a piece, columns `UNITS`."""
    notes, rows = notes_first(batches)
    yield from (note_batch(UNITS, note) for note in notes)
    for number, copies in _copies_by_piece(rows):
        piece = reader.pieces[number]
        units = reader.unit_rows(piece, reader.older_pages(piece, copies[URL]))
        firsts = duplicates.first_units(units)
        units = units[firsts]
        columns = {
            "key": signed(units["high"]),
            "key_low": signed(units["low"]),
            "url_md5": signed(units["url_md5_high"]),
            "url_md5_low": signed(units["url_md5_low"]),
            "position": _positions(number, firsts),
        }
        yield with_columns(UNITS, columns)


def later_of_key(batches: Batches, kind: int) -> Batches:
    """Yield all rows but the first of each key, columns `COPIES`.

    Args:
        batches: rows `URLS` or `UNITS`, sorted by all columns, after the notes.
        kind: `URL` or `UNIT`.
    """
    notes, batches = notes_first(batches)
    yield from (note_batch(COPIES, note) for note in notes)
    previous = None
    for batch in batches:
        high, low = column(batch, "key"), column(batch, "key_low")
        repeated = np.empty(len(batch), dtype=bool)
        # A key may continue from the previous batch.
        repeated[0] = (high[0], low[0]) == previous
        repeated[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        previous = (high[-1], low[-1])
        positions = column(batch, "position")[repeated]
        columns = {
            "piece": positions >> PIECE_BITS,
            "kind": np.full(len(positions), kind, dtype=np.int64),
            "number": positions & NUMBER_MASK,
        }
        yield with_columns(COPIES, columns)


def decide(batches: Batches, reader: PieceReader) -> Batches:
    """Yield the removals of each page of a piece, columns `DECISIONS`, and note its units."""
    notes, rows = notes_first(batches)
    yield from (note_batch(DECISIONS, note) for note in notes)
    for number, copies in _copies_by_piece(rows):
        piece = reader.pieces[number]
        older_rows = reader.older_pages(piece, copies[URL])
        units = reader.unit_rows(piece, older_rows)
        earlier_exists = np.zeros(len(units), dtype=bool)
        # `number` of a copy counts the units in the same order as here, in `first_units`.
        earlier_exists[copies[UNIT]] = True
        older_pages = np.zeros(len(older_rows), dtype=REMOVAL_ROW)
        older_pages["row"] = older_rows
        removed = duplicates.duplicate_spans(units, earlier_exists=earlier_exists)
        # The note of a shard sorts before its rows, so the writer knows the count at the start.
        yield note_batch(DECISIONS, {"units": len(units)}, shard=piece.shard)
        for batch in removals.decisions_of(older_pages, removed):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield with_columns(DECISIONS, {"shard": [piece.shard] * len(batch), **columns})


def _copies_by_piece(batches: Batches) -> Iterator[tuple[int, dict[int, NDArray[np.int64]]]]:
    """Yield each piece with the numbers of its later copies by kind, from rows sorted by piece."""
    current: int | None = None
    copies: dict[int, list[NDArray[np.int64]]] = {}
    for batch in batches:
        for number, rows in runs_of(batch, "piece"):
            # The rows of a piece may arrive in several batches.
            if number != current:
                if current is not None:
                    yield current, _concatenated(copies)
                current, copies = number, {URL: [], UNIT: []}
            kinds, numbers = column(rows, "kind"), column(rows, "number")
            for kind, number_arrays in copies.items():
                number_arrays.append(numbers[kinds == kind])
    if current is not None:
        yield current, _concatenated(copies)


def _concatenated(copies: Mapping[int, list[NDArray[np.int64]]]) -> dict[int, NDArray[np.int64]]:
    return {kind: np.concatenate(number_arrays) for kind, number_arrays in copies.items()}


def write_decisions(batches: Batches, shards: Sequence[Sequence[Any]], folder: Path) -> Batches:
    """Write the decisions about each cleaned file that arrives; note its counts.

    Args:
        batches: rows `DECISIONS`, sorted by shard and row, the notes of a shard before its rows.
        shards: name and number of pages of each cleaned file, ordered.
        folder: receives the files.
    """
    for shard, notes, rows in groups_of(batches, "shard"):
        if shard == NO_VALUE:
            yield from (note_batch(NOTES, note) for note in notes)
            continue
        counts = {"units": sum(note["units"] for note in notes)}
        decisions = (cast_to(batch, tables.DECISIONS) for batch in rows)
        name = str(shards[shard][0])
        total = removals.write_decisions(folder / name, shards[shard], counts, decisions)
        yield note_batch(NOTES, {"shard": shard, "counts": total})


def _positions(piece: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return (np.int64(piece) << PIECE_BITS) | numbers
