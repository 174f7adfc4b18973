"""The Parquet files between the steps: their columns, and reading them piece by piece."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.text import rules as page_rules
from t5repro.errors import ArtifactError
from t5repro.files import atomic_path

READ_PAGES = 128
GROUP_PAGES = 512  # of a row group of a cleaned file
GROUP_BYTES = 8_000_000  # of its text, as it was read

_KEY = pa.binary(dedup_spans.KEY_BYTES)

# One row a page that was read and is short enough. `language` is the most probable one of `text`,
# empty if it has none; null where one set of Punkt parameters splits every page. Text, language
# and keys are null where `reason` says why the page was dropped; keys of a unit that was not asked
# for are null as well.
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
        *((f"lines_{reason}", pa.uint32()) for reason in page_rules.LINE_REASONS),
        ("line_keys", pa.binary()),
        ("span_keys", pa.binary()),
        ("span_places", pa.binary()),
    ]
)

# One row a page that loses something, in the order of `shard` and `row`, which say where the page
# is in the cleaned files ordered by name; `places` are those of the units it loses.
DECISIONS = pa.schema(
    [
        ("shard", pa.uint32()),
        ("row", pa.uint32()),
        ("duplicate_url", pa.bool_()),
        ("places", pa.binary()),
    ]
)

CORPUS = pa.schema([(name, pa.string()) for name in ("url", "text", "timestamp", "language")])

# Columns with few values. To look for a dictionary of texts or keys costs as much as compressing
# them, and finds none.
REPEATING = {"file", "reason", "language"}.union(
    f"lines_{reason}" for reason in page_rules.LINE_REASONS
)

# In the metadata of the files:
COUNTS_KEY = b"t5repro.counts"  # pages that were read, units that were compared
SAMPLES_KEY = b"t5repro.samples"  # examples of what cleaning dropped
FAULTS_KEY = b"t5repro.faults"  # what was wrong with the WET files
SHARDS_KEY = b"t5repro.shards"  # name and pages of each file that the decisions are about


def in_order(paths: Sequence[Path]) -> list[Path]:
    """Return the paths in the order that numbers the shards."""
    return sorted(paths, key=lambda path: (path.name, path.as_posix()))


def writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of one of these files; a dictionary is tried for `REPEATING` alone."""
    repeating = [name for name in schema.names if name in REPEATING]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeating)


@contextlib.contextmanager
def written(
    output: Path, schema: pa.Schema, about: Callable[[], Mapping[bytes, Any]]
) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of a file that appears whole when the block ends.

    Args:
        output: file to write.
        schema: of its rows.
        about: is asked at the end for values that go into the metadata of the file as JSON.
    """
    with atomic_path(output) as temporary, writer(temporary, schema) as opened_file:
        yield opened_file
        opened_file.add_key_value_metadata(
            {key: json.dumps(value) for key, value in about().items()}
        )


def row_groups(batches: Iterable[tuple[pa.RecordBatch, Sequence[int]]]) -> Iterator[pa.Table]:
    """Divide rows into row groups, wherever the batches end.

    Args:
        batches: rows, and for each how many bytes its text had.
    """
    held: list[pa.RecordBatch] = []
    pages = size = 0
    for batch, sizes in batches:
        start = 0
        for end, count in enumerate(sizes, start=1):
            pages, size = pages + 1, size + count
            if pages >= GROUP_PAGES or size >= GROUP_BYTES:
                held.append(batch.slice(start, end - start))
                yield pa.Table.from_batches(held).combine_chunks()
                held, start, pages, size = [], end, 0, 0
        if start < len(batch):
            held.append(batch.slice(start))
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def opened(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    """Open a Parquet file of an earlier step.

    Raises:
        ArtifactError: it is missing, damaged or has other columns.
    """
    try:
        parquet = pq.ParquetFile(path)
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


def batches(
    parquet: pq.ParquetFile,
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, or of some of its row groups, in pieces that fit in memory.

    Raises:
        ArtifactError: its data is damaged.
    """
    chosen = None if groups is None else list(groups)
    pieces = parquet.iter_batches(
        READ_PAGES,
        row_groups=chosen,
        columns=None if columns is None else list(columns),
        use_threads=False,  # to wake them takes longer than so small a piece
    )
    while True:
        try:
            batch = next(pieces, None)
        except (OSError, pa.ArrowInvalid) as error:
            raise ArtifactError(
                f"{path} is damaged ({error}); delete it and rerun its stage"
            ) from error
        if batch is None:
            return
        yield batch


def shard_list(paths: Sequence[Path]) -> list[list[Any]]:
    """Return name and number of pages of each cleaned file."""
    return [[path.name, opened(path, CLEANED).metadata.num_rows] for path in paths]


def column_bytes(parquet: pq.ParquetFile, name: str) -> int:
    """Return the size of a column when it is in memory."""
    index = parquet.schema_arrow.names.index(name)
    groups = (parquet.metadata.row_group(at) for at in range(parquet.metadata.num_row_groups))
    return sum(group.column(index).total_uncompressed_size for group in groups)


def groups_from(parquet: pq.ParquetFile, name: str, least: int) -> list[int]:
    """Return the row groups that may hold a value of `least` or more in a column."""
    column = parquet.schema_arrow.names.index(name)
    groups = range(parquet.metadata.num_row_groups)
    found = {at: parquet.metadata.row_group(at).column(column).statistics for at in groups}
    return [
        at
        for at in groups
        if (stats := found[at]) is None or not stats.has_min_max or stats.max >= least
    ]


def metadata_of(parquet: pq.ParquetFile, key: bytes, path: Path) -> Any:
    """Return the JSON value that the file's metadata holds under `key`.

    Raises:
        ArtifactError: it holds none.
    """
    found = parquet.metadata.metadata or {}
    if key not in found:
        raise ArtifactError(f"{path} has no counts in it; delete it and rerun its stage")
    return json.loads(found[key])
