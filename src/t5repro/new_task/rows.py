"""The columns and rows of a file, read as the rule `tasks` reads them."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from t5repro.config.field import repeated
from t5repro.config.sections.tasks import OWN_SUFFIXES, check_encoding
from t5repro.errors import SettingsError, TaskDataError, nearest
from t5repro.strict_json import parse_line
from t5repro.tasks import lines, own, parquet
from t5repro.tasks.lines import BYTE_ORDER_MARK, invalid_data, raw_lines, read_lines
from t5repro.tasks.parquet import parquet_columns
from t5repro.tasks.records import LONE_SURROGATE

CURE = "correct the file"
RUN_FILE_CURES = (lines.CURE, own.CURE, parquet.CURE)  # there is no run file yet
TYPED_SUFFIXES = (".jsonl", ".parquet")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class Rows:
    """A file of rows.

    Attributes:
        path: the file.
        columns: its columns.
        cells: location and cells of each row, as text; null and NaN are blank, unreadable columns
            are absent.
        unreadable: column that no task can have -> its first fault, such as a list.
        form: options of `tasks.own` that read the file: delimiter and encoding, unless usual ones.
    """

    path: Path
    columns: tuple[str, ...]
    cells: tuple[tuple[str, dict[str, str]], ...]
    unreadable: Mapping[str, TaskDataError]
    form: Mapping[str, str]

    @property
    def readable(self) -> list[str]:
        """The columns that a task can have."""
        return [name for name in self.columns if name not in self.unreadable]

    def column(self, name: str) -> list[str]:
        """Return the values of a column.

        Raises:
            TaskDataError: it is unreadable.
        """
        if name in self.unreadable:
            raise self.unreadable[name]
        return [cells[name] for _, cells in self.cells]


def check_exists(path: Path) -> None:
    """Refuse a file of another format, and one that does not exist.

    Raises:
        TaskDataError: it is one of them.
    """
    if path.suffix not in OWN_SUFFIXES:
        raise TaskDataError(
            f"{path}: the file must end in {', '.join(OWN_SUFFIXES)}; convert it, or rename it if "
            "it has such a content"
        )
    if not path.exists():
        raise TaskDataError(f"{path} is missing; name a file of rows that exists")


def read_rows(path: Path, *, delimiter: str = "", encoding: str = "") -> Rows:
    """Read a file.

    Args:
        path: the file.
        delimiter: character between the cells of a .csv file; if empty, a comma, or what separates
            the names of the header if no comma does.
        encoding: encoding of a .csv or .tsv file; if empty, UTF-8.

    Raises:
        TaskDataError: the file is missing, broken, empty or has fewer than two columns.
    """
    check_exists(path)
    if encoding:
        try:
            check_encoding(encoding)
        except ValueError as error:
            raise SettingsError(str(error)) from error
    form = {"encoding": encoding} if encoding else {}
    if delimiter:
        form["delimiter"] = delimiter
    with cures_without_run_file():
        header = columns_of(path, **form)
        # Only a file that is one column with commas: a comma in the header decides otherwise.
        if len(header) == 1 and path.suffix == ".csv" and not delimiter:
            for character in SEPARATORS:
                columns = columns_of(path, **form, delimiter=character)
                if len(columns) > 1:
                    form["delimiter"], header = character, columns
                    break
    _check_header(path, header)
    cells, unreadable = _cells(path, header, form)
    if not cells:
        raise TaskDataError(f"{path} has a header and no rows; add a row for each example")
    # The proposed run file states only what differs from the defaults.
    usual = {"delimiter": ",", "encoding": "utf-8"}
    options = {name: value for name, value in form.items() if value != usual[name]}
    return Rows(path, tuple(header), tuple(cells), unreadable, options)


def _cells(
    path: Path, header: Sequence[str], form: Mapping[str, str]
) -> tuple[list[tuple[str, dict[str, str]]], dict[str, TaskDataError]]:
    """Return location and cells of each row, and the columns that cannot be read."""
    try:
        return _cells_of(path, header, form), {}
    except TaskDataError:
        if path.suffix not in TYPED_SUFFIXES:  # elsewhere every cell is text
            raise
    # Column by column, because one list in a column must not hide the others.
    readable, unreadable = [], {}
    for name in header:
        try:
            _cells_of(path, [name], form)
        except TaskDataError as error:
            unreadable[name] = error
        else:
            readable.append(name)
    if not readable:
        raise next(iter(unreadable.values()))
    return _cells_of(path, readable, form), unreadable


def _cells_of(
    path: Path, names: Sequence[str], form: Mapping[str, str]
) -> list[tuple[str, dict[str, str]]]:
    # The reader of `tasks.own` itself, so a proposal accepts nothing that the run refuses.
    with cures_without_run_file():
        return [
            (location, {name: value or "" for name, value in cells.items()})
            for location, cells in own.read_cells(
                path, "train", tuple(names[:-1]), names[-1], **form
            )
        ]


@contextmanager
def cures_without_run_file() -> Iterator[None]:
    """Replace cures of errors that would edit a run file."""
    try:
        yield
    except TaskDataError as error:
        text = str(error)
        for cure in RUN_FILE_CURES:
            text = text.replace(cure, CURE)
        raise TaskDataError(text) from error


def check_columns(path: Path, header: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse names of columns that a file does not have.

    Raises:
        TaskDataError: a column does not exist; the message names the nearest.
    """
    for name in columns:
        if name not in header:
            raise TaskDataError(
                f"{path} has no column {name!r}; its columns are {list(header)}"
                f"{nearest(name, header)}"
            )


def columns_of(path: Path, *, delimiter: str = ",", encoding: str = "utf-8") -> list[str]:
    """Return the names of the columns of a file; of JSON lines, the keys of all records.

    Args:
        path: the file.
        delimiter: character between the cells of a .csv file.
        encoding: encoding of a .csv or .tsv file.

    Raises:
        TaskDataError: the file is missing, broken or empty.
    """
    if path.suffix == ".parquet":
        return parquet_columns(path)
    if path.suffix == ".csv":
        try:
            # Raw lines, because a quoted name may contain a line break.
            lines = raw_lines(path, encoding=encoding)
            return next(csv.reader(lines, strict=True, delimiter=delimiter), [])
        except csv.Error as error:
            raise invalid_data(
                f"{path} line 1", "not comma-separated values:", str(error), "quoted cells", CURE
            ) from error
    if path.suffix == ".tsv":
        _, first_line = next(read_lines(path, encoding=encoding), ("", ""))
        return first_line.removeprefix(BYTE_ORDER_MARK).split("\t") if first_line else []
    # A blank line is no record.
    records = (line for _, line in read_lines(path) if line.strip())
    keys = dict.fromkeys(_keys(path, next(records, "")))
    # The first may lack a value that the others have; its reader names a record that is broken.
    for line in records:
        with suppress(ValueError):
            record = parse_line(line, constants=True)
            keys |= dict.fromkeys(record if isinstance(record, dict) else ())
    return list(keys)


def _keys(path: Path, line: str) -> list[str]:
    """Return the keys of a JSON object."""
    if not line:
        return []
    if line.startswith(BYTE_ORDER_MARK):  # the rule `tasks` cannot read it either
        raise TaskDataError(
            f"{path} line 1 begins with a byte order mark, which JSON does not allow; save the "
            "file as UTF-8 without one"
        )
    try:
        record = parse_line(line, constants=True)
    except ValueError as error:
        raise invalid_data(
            f"{path} line 1", f"not JSON ({error}):", line, "one JSON object per line", CURE
        ) from error
    if not isinstance(record, dict):
        raise invalid_data(f"{path} line 1", "found", record, "one JSON object per line", CURE)
    return list(record)


def _check_header(path: Path, header: Sequence[str]) -> None:
    if not header:
        raise TaskDataError(f"{path} is empty; it must have a header and a row for each example")
    if broken := [name for name in header if LONE_SURROGATE.search(name)]:
        allowed = "names without halves of surrogate pairs"
        raise invalid_data(f"{path} line 1", "the columns are", broken, allowed, CURE)
    if header[0].lower().startswith("sep="):
        cure = "delete the line, with which Excel names what separates the cells"
        raise invalid_data(f"{path} line 1", "found", ",".join(header), "the header", cure)
    if path.suffix == ".tsv" and any("\r" in name for name in header):
        cure = "convert the line ends to line feeds, as tr '\\r' '\\n' does"
        allowed = "no carriage return in a name"
        raise invalid_data(f"{path} line 1", "the columns are", header, allowed, cure)
    if duplicates := repeated(header):
        raise invalid_data(
            f"{path} line 1", "the header repeats", duplicates, "each name once", CURE
        )
    if len(header) == 1:
        # The likely separator, which the user can then name.
        separator = next((name for sign, name in SEPARATORS.items() if sign in header[0]), "")
        cure = f"the cells are separated by {separator}: {CURE}" if separator else CURE
        if path.suffix == ".tsv" and "," in header[0]:
            cure = "the cells are separated by commas: give its name the ending .csv"
        raise invalid_data(
            f"{path} line 1", "found one column", header[0], "two columns or more", cure
        )
