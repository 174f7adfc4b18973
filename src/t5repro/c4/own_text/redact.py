"""Delete the text of withdrawn rows from a file of own text without changing any other row.

A withdrawn row keeps its place, so the other rows keep their numbers. In Parquet and JSON it also
keeps its id, time and language, and the rule `corpus` counts it as withdrawn; its other columns are
emptied: they may quote the text. Of a line or paragraph of plain text only the line ends remain;
they are not a row and are not counted.
"""

import gzip
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.c4.own_text.rows import documents, numbered_lines, read_rows
from t5repro.config.sections.corpus import TextRows, format_of
from t5repro.files import LINE_ENCODER, atomic_path
from t5repro.strict_json import parse_line

COMPRESSION = 9


def redact_rows(
    path: Path, name: str, readings: Sequence[TextRows], is_withdrawn: Callable[[str], bool]
) -> int:
    """Rewrite a file without the text of withdrawn rows; return the number of these rows.

    Args:
        path: the file. Without withdrawn rows it is not touched.
        name: its path below `data.folder`.
        readings: columns and documents, for each way in which jobs read the file.
        is_withdrawn: returns whether the row of an id is withdrawn.

    Raises:
        RawDataError: it cannot be read.
    """
    # Rows that were withdrawn before have no text any more.
    withdrawn = [
        {
            row.number
            for row in read_rows(path, name, settings, is_withdrawn)
            if is_withdrawn(row.id)
        }
        for settings in readings
    ]
    numbers = set().union(*withdrawn)
    # Without a withdrawn row the bytes, and so all later jobs, stay.
    if numbers:
        texts = {settings.text for settings in readings}
        # A column that any reading takes as text is emptied, even if another takes it as the id.
        kept_columns = {name for settings in readings for name in _kept_columns(settings)} - texts
        with atomic_path(path) as temporary:
            if format_of(name) == "parquet":
                _rewrite_parquet(path, temporary, numbers, kept_columns, texts)
            else:
                lines = (
                    _json_lines(path, numbers, kept_columns, texts)
                    if format_of(name) == "json"
                    else _text_lines(path, list(zip(readings, withdrawn, strict=True)))
                )
                with _writer(temporary, path.suffix) as write:
                    for line in lines:
                        write(line)
    return len(numbers)


def _kept_columns(settings: TextRows) -> set[str]:
    names = (settings.id or "url", settings.timestamp or "timestamp", settings.language_column)
    return {name for name in names if name}


def _rewrite_parquet(
    source: Path,
    target: Path,
    numbers: Collection[int],
    kept_columns: Collection[str],
    texts: Collection[str],
) -> None:
    with pq.ParquetFile(source, pre_buffer=False) as parquet:
        schema = pa.schema(
            [
                field
                if field.name in kept_columns
                else field.with_type(_without_dictionary(field.type)).with_nullable(True)
                for field in parquet.schema_arrow
            ],
            metadata=parquet.schema_arrow.metadata,
        )
        first = 0
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for group in range(parquet.num_row_groups):
                table = parquet.read_row_group(group)
                # `take` with a null index gives a null value: the row stays, its content goes.
                indices: list[int | None] = [
                    None if first + row in numbers else row for row in range(len(table))
                ]
                columns = [
                    table.column(field.name)
                    if field.name in kept_columns
                    else _emptied(table.column(field.name), field, indices, texts)
                    for field in schema
                ]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
                # Row numbers count through the file, `take` within the row group.
                first += len(table)


def _emptied(column: Any, field: Any, indices: list[int | None], texts: Collection[str]) -> Any:
    """Return a column with its withdrawn rows set to null, or to "" in a column of texts."""
    emptied = column.cast(field.type).take(pa.array(indices, pa.int64()))
    # A job that knows the row by another id reads it too, and refuses null.
    return emptied.fill_null("") if field.name in texts else emptied


def _without_dictionary(kind: Any) -> Any:
    """Return a type without dictionaries: one would keep the values of rows that are emptied."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_dictionary(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_without_dictionary(kind.key_type), _without_dictionary(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_without_dictionary(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_dictionary(kind.value_type))
    return kind


def _json_lines(
    path: Path, numbers: Collection[int], kept_columns: Collection[str], texts: Collection[str]
) -> Iterator[bytes]:
    """Yield the lines of a file with withdrawn rows emptied."""
    for number, line in numbered_lines(path):
        yield _without_text(line, kept_columns, texts) if number in numbers else line


def _text_lines(path: Path, withdrawn: list[tuple[TextRows, set[int]]]) -> Iterator[bytes]:
    """Yield the lines of a plain text; withdrawn documents keep only their line ends."""
    lines = [line.decode("utf-8") for _, line in numbered_lines(path)]
    # All readings together: a line that one of them withdraws is empty for all.
    emptied = {
        line
        for settings, numbers in withdrawn
        for number, text in documents(iter(enumerate(lines)), settings.documents)
        if number in numbers
        for line in range(number, number + text.count("\n") + 1)
    }
    for number, line_text in enumerate(lines):
        yield (_line_end(line_text) if number in emptied else line_text).encode("utf-8")


def _without_text(line: bytes, kept_columns: Collection[str], texts: Collection[str]) -> bytes:
    row: dict[str, Any] = parse_line(line.decode("utf-8"), constants=True)
    # Only named columns are kept: another one may quote the text, such as a title.
    values = {key: value for key, value in row.items() if key in kept_columns}
    return (LINE_ENCODER.encode({**values, **dict.fromkeys(sorted(texts), "")}) + "\n").encode()


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


@contextmanager
def _writer(path: Path, suffix: str) -> Iterator[Callable[[bytes], Any]]:
    """Yield a function that appends bytes to a file, compressed as its name says."""
    with path.open("wb") as handle:
        if suffix == ".gz":
            # Without name and time the same rows give the same bytes.
            with gzip.GzipFile("", "wb", COMPRESSION, handle, mtime=0) as compressed:
                yield compressed.write
        elif suffix == ".zst":
            with pa.CompressedOutputStream(handle, "zstd") as stream:
                yield stream.write
        else:
            yield handle.write
