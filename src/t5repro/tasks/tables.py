"""Tables: GLUE's tab-separated files, and comma-separated ones (CNN/DailyMail)."""

import csv
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.tasks.lines import (
    BYTE_ORDER_MARK,
    invalid_data,
    raw_lines,
    read_lines,
    refuse_repeated,
)
from t5repro.tasks.numbers import number_of
from t5repro.tasks.task import Row

MAX_CSV_FIELD_CHARS = 1 << 24

# Tab-separated


@dataclass(frozen=True)
class Columns:
    """The columns of a TSV file that a task reads.

    Attributes:
        fields: name of a field -> its column.
        label: column of the label.
    """

    fields: Mapping[str, str]
    label: str


def read_tsv(
    files: Sequence[Path],
    split: str,
    excluded: Counter[str],
    *,
    layouts: tuple[Columns, ...],
    parse_label: Callable[[str], Any],
    columns_without_header: tuple[str, ...] = (),
    byte_order_mark: bool = False,
    max_short_rows: int = 0,
    id_columns: tuple[str, ...] = (),
    encoding: str = "utf-8",
    skip_blank_lines: bool = False,
) -> Iterator[Row]:
    """Yield the rows of GLUE's tab-separated files; quotes are text.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may lack the label column.
        excluded: counts ``short_row``.
        layouts: possible columns; the first layout with fields that are all in the header is used.
        parse_label: text of a label -> label; a ValueError lists the allowed texts.
        columns_without_header: columns of files that have no header; ``test`` files always do.
        byte_order_mark: whether a file may begin with one.
        max_short_rows: number of rows with too few columns that are excluded before it is an error.
        id_columns: columns that identify a row, if a file has them; no two rows of a file agree in
            all of them.
        encoding: encoding of the files.
        skip_blank_lines: whether a blank line is skipped; GLUE's files have none.
    """
    count = 0
    for path in files:
        lines = read_lines(path, encoding=encoding)
        if columns_without_header and split != "test":
            columns, header_location = columns_without_header, f"{path}"
        else:
            header_location, header = next(lines, (f"{path} line 1", ""))
            if byte_order_mark:
                header = header.removeprefix(BYTE_ORDER_MARK)
            columns = tuple(header.split("\t"))
        positions = _positions(columns, layouts, split, header_location)
        id_positions = {name: columns.index(name) for name in id_columns if name in columns}
        locations: dict[Hashable, str] = {}
        for location, line in lines:
            if skip_blank_lines and not line.strip(" "):
                continue
            # Not the module csv: quotes in these files are text.
            cells = line.split("\t")
            # Excluded rows count, too: idx is the number of the row in its files.
            count += 1
            if len(cells) < len(columns) and excluded["short_row"] < max_short_rows:
                excluded["short_row"] += 1
                continue
            if len(cells) != len(columns):
                raise invalid_data(
                    location,
                    f"{len(cells)} columns in",
                    line,
                    f"{len(columns)} columns separated by tabs: {', '.join(columns)}",
                )
            if id_positions:
                ids = {name: cells[position] for name, position in id_positions.items()}
                refuse_repeated(ids, location, locations)
            yield {
                **{name: cells[position] for name, position in positions.fields},
                "label": _label(cells, positions.label, parse_label, location),
                "idx": count - 1,
                "location": location,
            }


@dataclass(frozen=True)
class _Positions:
    fields: tuple[tuple[str, int], ...]
    label: int | None


def _positions(
    columns: tuple[str, ...], layouts: tuple[Columns, ...], split: str, location: str
) -> _Positions:
    for layout in layouts:
        if not set(layout.fields.values()) <= set(columns):
            continue
        # Only a public test set may lack the label.
        if layout.label not in columns and split != "test":
            break
        label = columns.index(layout.label) if layout.label in columns else None
        fields = tuple((name, columns.index(column)) for name, column in layout.fields.items())
        return _Positions(fields, label)
    headers = [[*layout.fields.values(), layout.label] for layout in layouts]
    allowed = " or ".join(f"a header with the columns {header}" for header in headers)
    raise invalid_data(location, "found the header", list(columns), allowed)


def _label(
    cells: list[str], position: int | None, parse_label: Callable[[str], Any], location: str
) -> Any:
    if position is None:
        return None
    try:
        return parse_label(cells[position])
    except ValueError as error:
        raise invalid_data(location, "found the label", cells[position], str(error)) from error


def parse_label_word(text: str, *, labels: Mapping[str, int]) -> int:
    """Return the label that a file writes as `text`.

    Raises:
        ValueError: it is not in `labels`; the message lists them.
    """
    if text not in labels:
        raise ValueError(" or ".join(map(repr, labels)))
    return labels[text]


def parse_score(text: str, *, low: float, high: float) -> float:
    """Return the number `text`.

    Raises:
        ValueError: it is not a number from `low` to `high`; the message says so.
    """
    value = number_of(text)
    if value is None or not low <= value <= high:
        raise ValueError(f"a number from {low:g} to {high:g}")
    return value


# Comma-separated


def read_csv(
    files: Sequence[Path], split: str, excluded: Counter[str], *, columns: tuple[str, ...]
) -> Iterator[Row]:
    """Yield the rows of comma-separated files with a header; a quoted cell may contain lines.

    Args:
        files: read one after another.
        split: unused.
        excluded: unused.
        columns: columns to keep; the first is the row's identity.
    """
    locations: dict[Hashable, str] = {}
    for path in files:
        for location, cells in csv_rows(path, columns):
            refuse_repeated(cells[columns[0]], location, locations)
            yield {**cells, "idx": cells[columns[0]], "location": location}


def csv_rows(
    path: Path,
    columns: tuple[str, ...],
    *,
    optional: tuple[str, ...] = (),
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield location and cells of each row of one file; blank lines are skipped.

    Args:
        path: the file; its first row is the header.
        columns: columns to keep.
        optional: columns to keep if the file has them.
        delimiter: character between cells.
        encoding: encoding of the file.
    """
    # The limit is global to the process, so it is restored; an article may be longer than the
    # default.
    previous_limit = csv.field_size_limit(MAX_CSV_FIELD_CHARS)
    reader = csv.reader(raw_lines(path, encoding=encoding), strict=True, delimiter=delimiter)
    first_line = 1
    try:
        header = next(reader, [])
        if missing := [name for name in columns if name not in header]:
            raise invalid_data(
                f"{path} line 1",
                "found the header",
                header,
                f"a header with the columns {list(columns)} (missing: {missing})",
            )
        # By name: the order of columns differs between releases of a data set.
        positions = {name: header.index(name) for name in (*columns, *optional) if name in header}
        # `line_num` is the last line of a row, which may have several; a row is located by its
        # first.
        first_line = reader.line_num + 1
        for cells in reader:
            location = f"{path} line {first_line}"
            if not cells or (len(cells) == 1 < len(header) and not cells[0].strip()):
                first_line = reader.line_num + 1
                continue
            if len(cells) != len(header):
                raise invalid_data(
                    location,
                    f"{len(cells)} columns in",
                    delimiter.join(cells),
                    f"{len(header)} columns: {', '.join(header)}",
                )
            yield location, {name: cells[position] for name, position in positions.items()}
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise invalid_data(
            f"{path} line {first_line}", "not comma-separated values:", str(error), "quoted cells"
        ) from error
    finally:
        csv.field_size_limit(previous_limit)
