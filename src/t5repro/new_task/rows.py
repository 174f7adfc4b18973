"""The columns and rows of a file, read as the rule `tasks` reads them."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from t5repro.config.field import repeated
from t5repro.config.sections.tasks import OWN_SUFFIXES
from t5repro.errors import TaskDataError, nearest
from t5repro.tasks.lines import BYTE_ORDER_MARK, invalid_data, raw_lines, read_lines
from t5repro.tasks.own import read_cells
from t5repro.tasks.parquet import parquet_columns

CURE = "correct the file"
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class Rows:
    """A file of rows.

    Attributes:
        path: the file.
        columns: its columns, or those that were asked for.
        cells: location and cells of each row, as text.
    """

    path: Path
    columns: tuple[str, ...]
    cells: tuple[tuple[str, dict[str, str]], ...]

    def column(self, name: str) -> list[str]:
        """Return the values of a column."""
        return [cells[name] for _, cells in self.cells]


def read_rows(path: Path, columns: Sequence[str] = ()) -> Rows:
    """Read a file.

    Args:
        path: .csv, .tsv, .jsonl or .parquet.
        columns: columns to read; all by default.

    Raises:
        TaskDataError: the file is missing, broken, empty or has fewer than two columns, or lacks
            one of the columns.
    """
    if path.suffix not in OWN_SUFFIXES:
        raise TaskDataError(
            f"{path}: the file must end in {', '.join(OWN_SUFFIXES)}; convert it, or rename it if "
            "it has such a content"
        )
    header = columns_of(path)
    _check_header(path, header)
    check_columns(path, header, columns)
    names = tuple(dict.fromkeys(columns)) or tuple(header)
    cells = tuple(read_cells(path, "train", names[:-1], names[-1]))
    if not cells:
        raise TaskDataError(f"{path} has a header and no rows; add a row for each example")
    return Rows(path, names, cells)


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


def columns_of(path: Path) -> list[str]:
    """Return the names of the columns of a file; of JSON lines, those of the first record.

    Raises:
        TaskDataError: the file is missing, broken or empty.
    """
    if path.suffix == ".parquet":
        return parquet_columns(path)
    if path.suffix == ".csv":
        try:
            return next(csv.reader(raw_lines(path), strict=True), [])
        except csv.Error as error:
            raise invalid_data(
                f"{path} line 1", "not comma-separated values:", str(error), "quoted cells", CURE
            ) from error
    _, first_line = next(read_lines(path), ("", ""))
    if path.suffix == ".tsv":
        return first_line.removeprefix(BYTE_ORDER_MARK).split("\t") if first_line else []
    return _keys(path, first_line)


def _keys(path: Path, line: str) -> list[str]:
    """Return the keys of a JSON object whose values are no lists and no objects."""
    if not line:
        return []
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise invalid_data(
            f"{path} line 1", f"not JSON ({error}):", line, "one JSON object per line", CURE
        ) from error
    if not isinstance(record, dict):
        raise invalid_data(f"{path} line 1", "found", record, "one JSON object per line", CURE)
    return [key for key, value in record.items() if not isinstance(value, dict | list)]


def _check_header(path: Path, header: Sequence[str]) -> None:
    if not header:
        raise TaskDataError(f"{path} is empty; it must have a header and a row for each example")
    if duplicates := repeated(header):
        raise invalid_data(
            f"{path} line 1", "the header repeats", duplicates, "each name once", CURE
        )
    if len(header) == 1:
        separator = next((name for sign, name in SEPARATORS.items() if sign in header[0]), "")
        cure = f"the cells are separated by {separator}: {CURE}" if separator else CURE
        raise invalid_data(
            f"{path} line 1", "found one column", header[0], "two columns or more", cure
        )
