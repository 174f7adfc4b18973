"""Deduplication on Spark: hashes of fixed width are compared, pages stay where they are.

The cleaned files are divided into *pieces* of whole row groups. For each piece a kernel keeps the
first row of every key (min-by on the map side), so that of a line that occurs ten million times at
most one row a piece is shuffled. The rows, 40 bytes each for units of text, are partitioned and
sorted by key; all but the first of a key are losers, and eight bytes, piece and number, go back to
the piece. There the kernel that works on one machine decides with one more fact: whether the
first of a key here is beaten elsewhere. Nothing ever holds all rows of a key.

Rows are ordered by their contents down to their place in the crawl, so neither pieces, partitions
nor workers show in the decisions.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.dedup import removals as decided
from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.spark.rows import (
    NOTE,
    NOTES,
    Batches,
    column,
    error_of,
    joined,
    note_batch,
    notes_first,
    numbers_in,
    plain_schema,
    rows_of,
    runs_of,
    signed,
    with_columns,
)

LOWEST = 0xFFFFFFFF  # of a place: the number within its piece; above it the piece
PIECE_BITS = 32


def _numbers(*names: str) -> pa.Schema:
    return pa.schema([*((name, pa.int64()) for name in names), (NOTE, pa.string())])


URLS = _numbers("key", "key_low", "age_0", "age_1", "age_2", "age_3", "file", "place")
UNITS = _numbers("key", "key_low", "owner", "owner_low", "place")
# What comes back to a piece; `kind` says what `number` counts.
LOSERS = _numbers("piece", "kind", "number")
PIECE, URL, UNIT = range(3)  # the piece itself, a page of it, a unit of text of it
DECIDED = plain_schema(tables.DECISIONS)


class Piece(NamedTuple):
    """Some row groups of a cleaned file.

    Attributes:
        shard: number of the file.
        path: of the file.
        groups: the row groups.
        first: number of their first row in the file.
    """

    shard: int
    path: Path
    groups: tuple[int, ...]
    first: int


def pieces_of(shards: Sequence[Path], columns: Sequence[str], most_bytes: int) -> list[Piece]:
    """Divide cleaned files into pieces whose `columns` have about `most_bytes` in memory."""
    pieces: list[Piece] = []
    for shard, path in enumerate(shards):
        parquet = tables.opened(path, tables.CLEANED)
        at = [parquet.schema_arrow.names.index(name) for name in columns]
        groups: list[int] = []
        first = row = held = 0
        for number in range(parquet.metadata.num_row_groups):
            group = parquet.metadata.row_group(number)
            groups.append(number)
            row += group.num_rows
            held += sum(group.column(index).total_uncompressed_size for index in at)
            if held >= most_bytes:
                pieces.append(Piece(shard, path, tuple(groups), first))
                groups, first, held = [], row, 0
        if groups:
            pieces.append(Piece(shard, path, tuple(groups), first))
    return pieces


class DedupJob(NamedTuple):
    """What the kernels of deduplication need.

    Attributes:
        pieces: of the cleaned files.
        unit: of text; ``off``: pages alone are compared.
        files: rank of each WET file by name; empty as long as it is not known.
    """

    pieces: Sequence[Piece]
    unit: str
    files: Mapping[str, int]

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of a piece, with the number of the first of each batch in its file."""
        first = piece.first
        parquet = tables.opened(piece.path, tables.CLEANED)
        for batch in tables.batches(parquet, piece.path, columns, groups=piece.groups):
            yield first, batch
            first += len(batch)

    def url_rows(self, piece: Piece) -> dedup_spans.Rows:
        """Return a row for each page of a piece."""
        found = [
            decided.url_rows(batch, self.files, piece.shard, first)
            for first, batch in self.batches(piece, decided.URL_COLUMNS)
        ]
        return np.concatenate([np.zeros(0, dedup_spans.URL_ROW), *found])

    def unit_rows(self, piece: Piece, gone: NDArray[np.int64]) -> dedup_spans.Rows:
        """Return a row for each unit of the pages of a piece that are still in."""
        if self.unit not in decided.KEY_COLUMNS:
            return np.zeros(0, dedup_spans.UNIT_ROW)
        found = [
            decided.unit_rows(batch, self.unit, gone, piece.shard, first, piece.path)
            for first, batch in self.batches(piece, decided.unit_columns(self.unit))
        ]
        return np.concatenate([np.zeros(0, dedup_spans.UNIT_ROW), *found])

    def older_pages(self, piece: Piece, beaten: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the piece's file that are older copies of a page.

        Args:
            piece: part of a cleaned file.
            beaten: places in the piece of pages that a page of another piece beats.
        """
        # A copy that lost to another of its piece was not compared further: it lost anyway.
        here = dedup_spans.losing_urls(self.url_rows(piece))["row"].astype(np.int64)
        return np.union1d(here, beaten + piece.first)


# Kernels


def file_names(batches: Batches, job: DedupJob) -> Batches:
    """Note the names of the WET files that pieces come from."""
    for number in numbers_in(batches):
        names: set[str] = set()
        for _, batch in job.batches(job.pieces[number], ("file",)):
            names.update(batch.column("file").unique().to_pylist())
        yield note_batch(NOTES, {"files": sorted(names)})


def first_urls(batches: Batches, job: DedupJob) -> Batches:
    """Yield the newest page of each URL of a piece, columns `URLS`."""
    for number in numbers_in(batches):
        piece = job.pieces[number]
        rows = job.url_rows(piece)
        rows = rows[~np.isin(rows["row"], dedup_spans.losing_urls(rows)["row"])]
        # Inverted, so that the newest is the smallest; the bytes order as numbers do.
        ages = ~np.ascontiguousarray(rows["timestamp"]).view(">u8").astype(np.uint64).reshape(-1, 4)
        columns = {
            "key": signed(rows["high"]),
            "key_low": signed(rows["low"]),
            **{f"age_{part}": signed(ages[:, part]) for part in range(4)},
            "file": (rows["file"].astype(np.int64) << PIECE_BITS) | rows["record"],
            "place": _places(number, rows["row"].astype(np.int64) - piece.first),
        }
        yield with_columns(URLS, columns)


def first_units(batches: Batches, job: DedupJob) -> Batches:
    """Yield the first unit of each key of a piece, columns `UNITS`."""
    notes, rows = notes_first(batches)
    yield from (note_batch(UNITS, note) for note in notes)
    for number, losers in _by_piece(rows):
        piece = job.pieces[number]
        units = job.unit_rows(piece, job.older_pages(piece, losers[URL]))
        firsts = dedup_spans.first_units(units)
        units = units[firsts]
        columns = {
            "key": signed(units["high"]),
            "key_low": signed(units["low"]),
            "owner": signed(units["owner_high"]),
            "owner_low": signed(units["owner_low"]),
            "place": _places(number, firsts),
        }
        yield with_columns(UNITS, columns)


def later_of_key(batches: Batches, kind: int) -> Batches:
    """Yield the places of all rows but the first of each key, of rows sorted by key and rank."""
    notes, batches = notes_first(batches)
    yield from (note_batch(LOSERS, note) for note in notes)
    last = None
    for batch in batches:
        high, low = column(batch, "key"), column(batch, "key_low")
        again = np.empty(len(batch), dtype=bool)
        again[0] = (high[0], low[0]) == last
        again[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        last = (high[-1], low[-1])
        places = column(batch, "place")[again]
        columns = {
            "piece": places >> PIECE_BITS,
            "kind": np.full(len(places), kind, dtype=np.int64),
            "number": places & LOWEST,
        }
        yield with_columns(LOSERS, columns)


def decide(batches: Batches, job: DedupJob) -> Batches:
    """Yield what each page of a piece loses, columns `DECIDED`, and note the counts."""
    notes, rows = notes_first(batches)
    yield from (note_batch(DECIDED, note) for note in notes)
    for number, losers in _by_piece(rows):
        piece = job.pieces[number]
        older = job.older_pages(piece, losers[URL])
        units = job.unit_rows(piece, older)
        beaten = np.zeros(len(units), dtype=bool)
        beaten[losers[UNIT]] = True
        pages = np.zeros(len(older), dtype=dedup_spans.LOSER_ROW)
        pages["row"] = older
        batch = decided.decisions_of(
            piece.shard, pages, dedup_spans.losing_units(units, lost=beaten)
        )
        yield note_batch(
            DECIDED, {"counts": decided.counts_of_decisions(batch) | {"units": len(units)}}
        )
        yield with_columns(DECIDED, dict(zip(batch.schema.names, batch.columns, strict=True)))


def _by_piece(batches: Batches) -> Iterator[tuple[int, dict[int, NDArray[np.int64]]]]:
    """Yield each piece with the numbers of its losers by kind, of rows sorted by piece."""
    current: int | None = None
    held: dict[int, list[NDArray[np.int64]]] = {}
    for batch in batches:
        for number, rows in runs_of(batch, "piece"):
            if number != current:
                if current is not None:
                    yield current, _numbers_by_kind(held)
                current, held = number, {URL: [], UNIT: []}
            kinds, numbers = column(rows, "kind"), column(rows, "number")
            for kind, parts in held.items():
                parts.append(numbers[kinds == kind])
    if current is not None:
        yield current, _numbers_by_kind(held)


def _numbers_by_kind(held: Mapping[int, list[NDArray[np.int64]]]) -> dict[int, NDArray[np.int64]]:
    return {kind: np.concatenate(parts) for kind, parts in held.items()}


def write_decisions(batches: Batches, output: Path, shards: Sequence[Sequence[object]]) -> Batches:
    """Write all decisions, sorted by shard and row, into one file; note the counts."""
    notes, rows = notes_first(batches)
    if error := error_of(notes):
        yield note_batch(NOTES, error)
        return
    counts = decided.dedup_counts()
    for note in notes:
        counts.update(note["counts"])
    nothing = np.zeros(0, dtype=dedup_spans.LOSER_ROW)
    with decided.decisions_writer(output, counts, shards) as writer:
        written = 0
        for shard, batch in _by_shard(rows):
            while written < shard:  # as on one machine, a shard that loses nothing has a row group
                writer.write_batch(decided.decisions_of(written, nothing, nothing))
                written += 1
            writer.write_batch(batch)
            written += 1
        while written < len(shards):
            writer.write_batch(decided.decisions_of(written, nothing, nothing))
            written += 1
    yield note_batch(NOTES, {"counts": counts})


def _by_shard(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the decisions of each shard that has any as one batch."""
    number = -1
    held: list[pa.RecordBatch] = []
    for batch in batches:
        for shard, rows in runs_of(batch, "shard"):
            if shard != number and held:
                yield number, rows_of(joined(held), tables.DECISIONS)
                held = []
            number = shard
            held.append(rows)
    if held:
        yield number, rows_of(joined(held), tables.DECISIONS)


def _places(piece: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return (np.int64(piece) << PIECE_BITS) | numbers
