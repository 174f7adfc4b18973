"""The Parquet files between the rules: columns, writing, and reading in batches."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.c4.keys import KEY_BYTES
from t5repro.c4.reasons import LINE_REASONS
from t5repro.errors import ArtifactError
from t5repro.files import atomic_path

BATCH_PAGES = 128
GROUP_PAGES = 512  # pages of a row group of a cleaned file
GROUP_BYTES = 8_000_000  # of their text before cleaning

_KEY = pa.binary(KEY_BYTES)

# One row per page that was read and is short enough. `language` is the most probable language of
# `text`, empty if it has none, and null if one set of Punkt parameters splits every page. `text`,
# `language` and the keys are null if the page was dropped (`reason`); keys of a unit other than
# `c4.dedup.unit` are null too. `url_key` is the MD5 of the normalised URL, `owner` of the raw one.
CLEANED = pa.schema(
    [
        ("file", pa.string()),
        ("record", pa.uint32()),
        ("url", pa.string()),
        ("timestamp", pa.string()),
        ("url_key", _KEY),
        ("owner", _KEY),
        ("reason", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),
        ("probability", pa.float64()),
        ("kept_lines", pa.uint32()),
        *((f"lines_{reason}", pa.uint32()) for reason in LINE_REASONS),
        ("line_keys", pa.binary()),
        ("span_keys", pa.binary()),
        ("span_places", pa.binary()),
    ]
)
LINE_COUNTS = ("kept_lines", *(f"lines_{reason}" for reason in LINE_REASONS))

# Decisions about one cleaned file: a row per page that loses something, ordered by `row`, its row
# there. `places` are the positions of the removed text.
DECISIONS = pa.schema(
    [("row", pa.uint32()), ("duplicate_url", pa.bool_()), ("places", pa.binary())]
)

CORPUS = pa.schema([(name, pa.string()) for name in ("url", "text", "timestamp", "language")])

# The position of a unit of text in its page, as in `span_places` and `places`: `count` sentences of
# a line from `start` on, or the whole line if `count` is 0.
POSITION_FIELDS = [("line", "<u4"), ("start", "<u4"), ("count", "<u4")]
POSITION = np.dtype(POSITION_FIELDS)

# Columns with few distinct values. Searching texts or keys for a dictionary costs as much as
# compressing them and finds none.
DICTIONARY_COLUMNS = {"file", "reason", "language"}.union(LINE_COUNTS[1:])

# Keys of the metadata of the files:
COUNTS_KEY = b"t5repro.counts"  # pages read, units compared
SAMPLES_KEY = b"t5repro.samples"  # examples of dropped pages and lines
FAULTS_KEY = b"t5repro.faults"  # faults of the WET files
SIGNALS_KEY = b"t5repro.signals"  # pages by signal, if signals were read
SPLIT_KEY = b"t5repro.split"  # split of all pages of a cleaned file, if the user states it
SHARD_KEY = b"t5repro.shard"  # name and number of pages of the cleaned file of the decisions


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a Parquet writer that tries dictionaries for `DICTIONARY_COLUMNS` only."""
    dictionaries = [name for name in schema.names if name in DICTIONARY_COLUMNS]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=dictionaries)


@contextlib.contextmanager
def atomic_writer(
    output: Path, schema: pa.Schema, metadata: Callable[[], Mapping[bytes, Any]]
) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of a file that appears complete when the block ends.

    Args:
        output: file to write.
        schema: of its rows.
        metadata: called at the end; returns values for the metadata of the file, as JSON.
    """
    with atomic_path(output) as temporary, open_writer(temporary, schema) as writer:
        yield writer
        writer.add_key_value_metadata({key: json.dumps(value) for key, value in metadata().items()})


def row_groups(batches: Iterable[tuple[pa.RecordBatch, Sequence[int]]]) -> Iterator[pa.Table]:
    """Divide rows into row groups that do not depend on the size of the batches.

    Args:
        batches: rows, with the number of bytes of each row's text before cleaning.
    """
    group: list[pa.RecordBatch] = []
    pages = size = 0
    for batch, sizes in batches:
        first_page = 0
        for end, count in enumerate(sizes, start=1):
            pages, size = pages + 1, size + count
            if pages >= GROUP_PAGES or size >= GROUP_BYTES:
                group.append(batch.slice(first_page, end - first_page))
                yield pa.Table.from_batches(group).combine_chunks()
                group, first_page, pages, size = [], end, 0, 0
        if first_page < len(batch):
            group.append(batch.slice(first_page))
    if group:
        yield pa.Table.from_batches(group).combine_chunks()


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """Open a Parquet file of an earlier rule.

    Raises:
        ArtifactError: it is missing, damaged or has other columns.
    """
    try:
        # A buffer in advance would keep the whole compressed file in memory until its last row.
        parquet = pq.ParquetFile(path, pre_buffer=False)
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage that writes it") from error
    except (OSError, pa.ArrowInvalid) as error:
        raise ArtifactError(
            f"{path} is not Parquet ({error}); delete it and rerun its stage"
        ) from error
    if not parquet.schema_arrow.equals(schema):
        raise ArtifactError(
            f"{path} has the columns {parquet.schema_arrow.names}, not {schema.names}; "
            "delete it and rerun its stage"
        )
    return parquet


def read_batches(
    parquet: pq.ParquetFile,
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches of `BATCH_PAGES`.

    Args:
        parquet: the open file.
        path: of the file, for the error.
        columns: columns to read; None reads all.
        groups: row groups to read; None reads all.

    Raises:
        ArtifactError: its data is damaged.
    """
    stream = parquet.iter_batches(
        BATCH_PAGES,
        row_groups=None if groups is None else list(groups),
        columns=None if columns is None else list(columns),
        use_threads=False,  # starting threads takes longer than reading so small a batch
    )
    while True:
        try:
            batch = next(stream, None)
        except (OSError, pa.ArrowInvalid) as error:
            raise ArtifactError(
                f"{path} is damaged ({error}); delete it and rerun its stage"
            ) from error
        if batch is None:
            return
        yield batch


def page_count(path: Path) -> int:
    """Return the number of pages of a cleaned file."""
    rows: int = open_parquet(path, CLEANED).metadata.num_rows
    return rows


def name_and_pages(path: Path) -> list[Any]:
    """Return name and number of pages of a cleaned file."""
    return [path.name, page_count(path)]


def column_bytes(path: Path, name: str) -> int:
    """Return the uncompressed size of a column of a cleaned file."""
    parquet = open_parquet(path, CLEANED)
    column = parquet.schema_arrow.names.index(name)
    metadata = parquet.metadata
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return sum(group.column(column).total_uncompressed_size for group in groups)


def groups_from(parquet: pq.ParquetFile, name: str, minimum: int) -> list[int]:
    """Return the row groups that may contain a value of `minimum` or more in a column."""
    column = parquet.schema_arrow.names.index(name)
    matching = []
    for group in range(parquet.metadata.num_row_groups):
        statistics = parquet.metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max or statistics.max >= minimum:
            matching.append(group)
    return matching


def split_of(parquet: pq.ParquetFile) -> str:
    """Return the split that a cleaned file states for all its pages; empty if URLs decide."""
    metadata = parquet.metadata.metadata or {}
    split: str = json.loads(metadata.get(SPLIT_KEY, b'""'))
    return split


def signals_of(parquet: pq.ParquetFile) -> dict[str, int]:
    """Return pages by signal of a cleaned file; none if signals were not read."""
    metadata = parquet.metadata.metadata or {}
    signals: dict[str, int] = json.loads(metadata.get(SIGNALS_KEY, b"{}"))
    return signals


def metadata_of(parquet: pq.ParquetFile, key: bytes, path: Path) -> Any:
    """Return the JSON value of `key` in the file's metadata.

    Raises:
        ArtifactError: the key is missing.
    """
    metadata = parquet.metadata.metadata or {}
    if key not in metadata:
        raise ArtifactError(f"{path} contains no counts; delete it and rerun its stage")
    return json.loads(metadata[key])
