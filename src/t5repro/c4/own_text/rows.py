"""Read rows of own text: Parquet, JSON lines, plain text.

A row is numbered from 0: its position in a Parquet file, otherwise its first line in the file.
Every fault stops the reading with the file and the row; nothing is repaired.
"""

import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.c4.own_text.faults import refuse, rows_of, shown
from t5repro.config.languages import is_language, nearest_code
from t5repro.config.sections.corpus import ENDINGS, TextRows, format_of
from t5repro.errors import RawDataError
from t5repro.files import refuse_other_form
from t5repro.strict_json import parse_line

ROWS_PER_BATCH = 256
SCHEME = "row://"  # begins an id that is no URL, so that an auditor can ask for it as for one


class Row(NamedTuple):
    """A row of own text.

    Attributes:
        number: number of the row in its file, from 0.
        id: its URL, or `SCHEME` and its id; unique in the corpus.
        text: its text, unchanged.
        timestamp: its time as the file states it, in UTC if a Parquet file states a zone; may be
            empty.
        language: its language; None if langdetect is to find it.
    """

    number: int
    id: str
    text: str
    timestamp: str
    language: str | None


class Columns(NamedTuple):
    """The columns of a file; None for those that it lacks and the settings do not require."""

    text: str
    id: str | None
    timestamp: str | None
    language: str | None


IsWithdrawn = Callable[[str], bool]
ReadRow = Callable[[], Row]


def read_rows(
    path: Path, name: str, settings: TextRows, is_withdrawn: IsWithdrawn | None = None
) -> Iterator[Row]:
    """Yield the rows of a file; a withdrawn one has an empty text.

    Args:
        path: the file.
        name: its path below `data.folder`, which ids of rows without an id begin with.
        settings: columns and documents.
        is_withdrawn: returns whether the row of an id is withdrawn; None without a list.

    Raises:
        RawDataError: the file is empty, damaged or of another format, or a row lacks a value. The
            message has the file, the row and the value.
    """
    readers = {"parquet": _parquet_rows, "json": _json_rows, "text": _text_rows}
    with _readable(path):
        refuse_other_form(path)
    if (kind := format_of(name)) is None:
        raise RawDataError(f"{path} is no file of own text; they end in {ENDINGS}")
    withdrawn = is_withdrawn or _nothing
    if path.stat().st_size == 0:
        # A redacted text keeps its line ends, so a text of one unfinished line becomes an empty
        # file: not a fault.
        if kind == "text" and withdrawn(_row_id(name, 0)):
            return
        raise RawDataError(f"{path} is empty (0 bytes); get the file again, or do not name it")
    has_rows = False
    with _readable(path):
        for row in rows_of(readers[kind](path, name, settings, withdrawn)):
            has_rows = True
            yield row
    if not has_rows and not (kind == "text" and _is_emptied(path, name, withdrawn)):
        raise RawDataError(f"{path} has no row; get the file again, or do not name it")


def _is_emptied(path: Path, name: str, is_withdrawn: IsWithdrawn) -> bool:
    """Return whether withdrawals emptied a plain text: only line ends remain."""
    with open_bytes(path) as lines:
        last = sum(1 for _ in lines)  # a last line without a line end is gone
    # A file of only line ends is empty by withdrawal, or damaged: the list decides.
    return any(is_withdrawn(_row_id(name, number)) for number in range(last + 1))


def _row_id(name: str, number: int) -> str:
    return f"{SCHEME}{name}#{number}"


def _nothing(row_id: str) -> bool:
    return False


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn the errors of damaged files into errors that name the file."""
    try:
        yield
    except EOFError as error:
        raise RawDataError(
            f"{path} is cut off: its compressed data ends too early; get the file again"
        ) from error
    except (OSError, pa.ArrowException, zlib.error) as error:
        cure = "get the file again"
        if "too much memory" in str(error):  # the window of zstd --long, not damage
            cure = "the file is intact: unpack it with zstd -d --long=31 and name the result"
        raise RawDataError(f"{path} cannot be read ({error}); {cure}") from error


def _parquet_rows(
    path: Path, name: str, settings: TextRows, is_withdrawn: IsWithdrawn
) -> Iterator[ReadRow]:
    with pq.ParquetFile(path, pre_buffer=False) as parquet:
        schema = parquet.schema_arrow
        if repeated := sorted({name for name in schema.names if schema.names.count(name) > 1}):
            raise RawDataError(
                f"{path} has several columns {repeated}; give each a name of its own"
            )
        columns = _columns(settings, schema.names, f"{path}: its columns are {schema.names}")
        names_to_read = [name for name in columns if name is not None]
        for column in {columns.text, columns.language} - {None}:
            _check_string(path, schema.field(column))
        first = 0
        for batch in parquet.iter_batches(ROWS_PER_BATCH, columns=names_to_read):
            values = {
                column: _python_values(path, first, batch, column) for column in names_to_read
            }
            for index in range(len(batch)):
                row = {column: values[column][index] for column in names_to_read}
                where = f"{path} row {first + index}"
                number = first + index
                yield partial(_row, row, columns, number, name, where, settings, is_withdrawn)
            first += len(batch)


def _check_string(path: Path, field: Any) -> None:
    """Refuse a column of something other than text."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    ):
        raise RawDataError(
            f"{path}: the column {field.name!r} has the type {field.type}; it must be string: "
            "name another column, or convert this one"
        )


def _python_values(path: Path, first: int, batch: pa.RecordBatch, column: str) -> list[Any]:
    """Return the values of a column, times in UTC.

    Raises:
        RawDataError: a value is not UTF-8 or no date; the message names its row.
    """
    array = batch.column(column)
    try:
        # Fast path: whole columns. Only after a failure is the faulty row searched, to name it.
        return _python_list(array)
    except (ValueError, OverflowError):
        for index in range(len(array)):
            where = f"{path} row {first + index}: {column!r}"
            try:
                _python_list(array.slice(index, 1))
            except UnicodeDecodeError as error:
                raise RawDataError(
                    f"{where} is not UTF-8 ({error}); convert the file to UTF-8"
                ) from error
            except (ValueError, OverflowError) as error:
                raise RawDataError(
                    f"{where} is no date of the years 1 to 9999 ({error}); correct the row"
                ) from error
        raise


def _python_list(array: Any) -> list[Any]:
    """Return the values of an array; Arrow converts times to UTC, to Python's microseconds."""
    if pa.types.is_timestamp(array.type):
        zone = "UTC" if array.type.tz else None
        # A safe cast refuses an overflow, but also nanoseconds, which Python's times do not have.
        array = array.cast(pa.timestamp("us", zone), safe=array.type.unit != "ns")
    return list(array.to_pylist())


def _json_rows(
    path: Path, name: str, settings: TextRows, is_withdrawn: IsWithdrawn
) -> Iterator[ReadRow]:
    columns: Columns | None = None
    for number, line in numbered_lines(path):
        where = f"{path} line {number + 1}"
        text = _decoded(line, where)
        if not text.strip():
            continue
        try:
            row = parse_line(text, constants=True)  # in columns that are not read
        except ValueError as error:
            raise RawDataError(f"{where} is not JSON ({error}); write one object a line") from error
        if not isinstance(row, dict):
            raise RawDataError(
                f"{where} is a JSON {type(row).__name__}: {shown(row)}; write one object a line"
            )
        if columns is None:
            # The first object decides which optional fields exist; later rows may leave them out.
            columns = _columns(settings, list(row), f"{where}: its fields are {list(row)}")
        yield partial(_row, row, columns, number, name, where, settings, is_withdrawn)


def _text_rows(
    path: Path, name: str, settings: TextRows, is_withdrawn: IsWithdrawn
) -> Iterator[ReadRow]:
    if settings.language_column:
        raise RawDataError(
            f"{path} is plain text and has no column {settings.language_column!r}; name "
            "corpus.language, or write JSON lines"
        )
    columns = Columns("text", None, None, None)
    for number, text in documents(_decoded_lines(path), settings.documents):
        where = f"{path} line {number + 1}"
        yield partial(_row, {"text": text}, columns, number, name, where, settings, is_withdrawn)


def documents(lines: Iterator[tuple[int, str]], unit: str) -> Iterator[tuple[int, str]]:
    """Yield the documents of a plain text, each with the number of its first line.

    Args:
        lines: number and content of each line, with its line end.
        unit: `corpus.documents`.
    """
    first_line, gathered = 0, list[str]()
    for number, line in lines:
        is_blank = not line.strip()
        ends_document = unit == "line" or (unit == "paragraph" and is_blank)
        # With the unit `file` only the end of the file closes the document.
        if ends_document and gathered:
            yield first_line, "".join(gathered).rstrip("\r\n")
            gathered = []
        if unit == "file" or not is_blank:
            first_line = first_line if gathered else number
            gathered.append(line)
    if gathered:
        yield first_line, "".join(gathered).rstrip("\r\n")


def _decoded_lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(path):
        yield number, _decoded(line, f"{path} line {number + 1}")


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each line, the first without a byte order mark."""
    with open_bytes(path) as handle:
        for number, line in enumerate(handle):
            yield number, line if number else line.removeprefix(BOM_UTF8)


@contextmanager
def open_bytes(path: Path) -> Iterator[Iterable[bytes]]:
    """Open a file for reading, decompressed by the end of its name."""
    if path.suffix == ".gz":
        with gzip.open(path) as handle:
            yield handle
    elif path.suffix == ".zst":
        with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
            yield io.BufferedReader(stream)
    else:
        with path.open("rb") as handle:
            yield handle


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RawDataError(f"{where} is not UTF-8 ({error}); convert the file to UTF-8") from error


def _columns(settings: TextRows, names: list[str], which: str) -> Columns:
    """Return the columns of a file with these names.

    Raises:
        RawDataError: a column that the settings name is missing.
    """
    for key in ("text", "id", "timestamp", "language_column"):
        column = getattr(settings, key)
        if column and column not in names:
            raise RawDataError(f"{which}, and corpus.{key} is {column!r}; name one of them")
    return Columns(
        settings.text,
        settings.id or ("url" if "url" in names else None),
        settings.timestamp or ("timestamp" if "timestamp" in names else None),
        settings.language_column or None,
    )


def _row(
    values: Mapping[str, Any],
    columns: Columns,
    number: int,
    name: str,
    where: str,
    settings: TextRows,
    is_withdrawn: IsWithdrawn,
) -> Row:
    """Return a row.

    Raises:
        RawDataError: a value is missing, of another type, or cannot be part of a text.
    """
    row_id = _row_id(name, number) if columns.id is None else _id(values, columns.id, where)
    if "://" not in row_id:
        row_id = SCHEME + row_id
    timestamp = "" if columns.timestamp is None else _time(values, columns.timestamp, where)
    language: str | None = settings.language or None
    # Also if the file still contains the text: a withdrawn row is read without it.
    if is_withdrawn(row_id):
        return Row(number, row_id, "", timestamp, language)
    text = _string(values, columns.text, where)
    if columns.language is not None:
        language = _string(values, columns.language, where)
        if not is_language(language):
            raise RawDataError(
                f"{where}: {columns.language!r} is {shown(language)}; a language is a code such "
                f"as 'en'{nearest_code(language)}; correct it"
            )
    return Row(number, row_id, text, timestamp, language)


def _id(values: Mapping[str, Any], column: str, where: str) -> str:
    value = values.get(column)
    # JSON's `true` is an `int` for `isinstance`, but not an id.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    row_id = _string(values, column, where)
    return row_id if row_id.strip() else refuse(where, column, row_id, "text or a whole number")


def _time(values: Mapping[str, Any], column: str, where: str) -> str:
    value = values.get(column)
    if value is None or value != value:  # NaN, as pandas writes a missing one
        return ""
    if isinstance(value, int | float | date) and not isinstance(value, bool):
        return str(value)
    return _string(values, column, where, "text, a number or a date")


def _string(values: Mapping[str, Any], column: str, where: str, allowed: str = "text") -> str:
    """Return the text of a column.

    Raises:
        RawDataError: it is missing, no text, or contains what no text may contain.
    """
    value = values.get(column)
    if not isinstance(value, str):
        refuse(where, column, value, allowed)
    if "\0" in value:
        raise RawDataError(
            f"{where}: {column!r} has a NUL character at {value.index(chr(0))}: {shown(value)}; "
            "remove it"
        )
    try:
        # JSON can spell half of a surrogate pair ("\ud800"), which no UTF-8 file can contain.
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RawDataError(
            f"{where}: {column!r} is not Unicode ({error}); it contains a half of a surrogate "
            "pair: remove it"
        ) from error
    return value
