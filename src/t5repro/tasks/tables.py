"""Tables: GLUE's tab-separated files, and comma-separated ones (CNN/DailyMail)."""

import csv
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.tasks.lines import BYTE_ORDER_MARK, fault, raw_lines, read_lines, refuse_repeated
from t5repro.tasks.task import Row

MAX_CSV_FIELD_CHARS = 1 << 24

# Tab-separated


@dataclass(frozen=True)
class Columns:
    """Where a TSV file keeps what a task needs.

    Attributes:
        fields: name of a field -> its column.
        label: column of the label.
    """

    fields: Mapping[str, str]
    label: str


def read_tsv(
    files: Sequence[Path],
    split: str,
    left_out: Counter[str],
    *,
    layouts: tuple[Columns, ...],
    parse_label: Callable[[str], Any],
    columns_without_header: tuple[str, ...] = (),
    byte_order_mark: bool = False,
    max_short_rows: int = 0,
    id_columns: tuple[str, ...] = (),
) -> Iterator[Row]:
    """Yield the rows of GLUE's tab-separated files; quotes are text.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may have no label column.
        left_out: counts ``short_row``.
        layouts: the columns to look for; the first whose fields the header has is used.
        parse_label: text of a label -> label; ValueError says what is allowed.
        columns_without_header: columns of files that have no header; ``test`` files always do.
        byte_order_mark: whether a file may begin with one.
        max_short_rows: how many rows with too few columns are left out before it is an error.
        id_columns: those that a file has name its rows; no two rows of a file have one name.
    """
    count = 0
    for path in files:
        lines = read_lines(path)
        if columns_without_header and split != "test":
            columns, where = columns_without_header, f"{path}"
        else:
            where, header = next(lines, (f"{path} line 1", ""))
            if byte_order_mark:
                header = header.removeprefix(BYTE_ORDER_MARK)
            columns = tuple(header.split("\t"))
        positions = _positions(columns, layouts, split, where)
        ids = [(name, columns.index(name)) for name in id_columns if name in columns]
        seen: dict[Hashable, str] = {}
        for row_where, line in lines:
            cells = line.split("\t")
            count += 1
            if len(cells) < len(columns) and left_out["short_row"] < max_short_rows:
                left_out["short_row"] += 1
                continue
            if len(cells) != len(columns):
                raise fault(
                    row_where,
                    f"{len(cells)} columns in",
                    line,
                    f"{len(columns)} columns separated by tabs: {', '.join(columns)}",
                )
            if ids:
                refuse_repeated({name: cells[at] for name, at in ids}, row_where, seen)
            yield {
                **{name: cells[position] for name, position in positions.fields},
                "label": _label_of(cells, positions.label, parse_label, row_where),
                "idx": count - 1,
                "where": row_where,
            }


@dataclass(frozen=True)
class _Positions:
    fields: tuple[tuple[str, int], ...]
    label: int | None


def _positions(
    columns: tuple[str, ...], layouts: tuple[Columns, ...], split: str, where: str
) -> _Positions:
    for layout in layouts:
        if not set(layout.fields.values()) <= set(columns):
            continue
        if layout.label not in columns and split != "test":
            break
        label = columns.index(layout.label) if layout.label in columns else None
        fields = tuple((name, columns.index(column)) for name, column in layout.fields.items())
        return _Positions(fields, label)
    wanted = [[*item.fields.values(), item.label] for item in layouts]
    expected = " or ".join(f"a header with the columns {names}" for names in wanted)
    raise fault(where, "found the header", list(columns), expected)


def _label_of(
    cells: list[str], position: int | None, parse_label: Callable[[str], Any], where: str
) -> Any:
    if position is None:
        return None
    try:
        return parse_label(cells[position])
    except ValueError as error:
        raise fault(where, "found the label", cells[position], str(error)) from error


def parse_word(text: str, *, words: Mapping[str, int]) -> int:
    """Return the label that a file writes as `text`.

    Raises:
        ValueError: it is none of `words`; the message lists them.
    """
    if text not in words:
        raise ValueError(" or ".join(map(repr, words)))
    return words[text]


def parse_score(text: str, *, low: float, high: float) -> float:
    """Return the number `text`.

    Raises:
        ValueError: it is not a number from `low` to `high`; the message says so.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise ValueError(f"a number from {low:g} to {high:g}")
    return value


# Comma-separated


def read_csv(
    files: Sequence[Path], split: str, left_out: Counter[str], *, columns: tuple[str, ...]
) -> Iterator[Row]:
    """Yield the rows of comma-separated files with a header, a quoted cell may hold lines.

    Args:
        files: read one after another.
        split: not looked at.
        left_out: nothing is left out.
        columns: the columns to keep; the first is the row's identity.
    """
    seen: dict[Hashable, str] = {}
    for path in files:
        for where, cells in csv_rows(path, columns):
            refuse_repeated(cells[columns[0]], where, seen)
            yield {**cells, "idx": cells[columns[0]], "where": where}


def csv_rows(
    path: Path, columns: tuple[str, ...], *, optional: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and cells of each row of one file.

    Args:
        path: the file; its first row is the header.
        columns: the columns to keep.
        optional: columns to keep if the file has them.
    """
    # The limit is the process's: an article may be longer than the module's default.
    previous = csv.field_size_limit(MAX_CSV_FIELD_CHARS)
    reader = csv.reader(raw_lines(path), strict=True)
    first = 1
    try:
        header = next(reader, [])
        if absent := [name for name in columns if name not in header]:
            raise fault(
                f"{path} line 1",
                "found the header",
                header,
                f"a header with the columns {list(columns)} (absent: {absent})",
            )
        positions = {name: header.index(name) for name in (*columns, *optional) if name in header}
        first = reader.line_num + 1
        for cells in reader:
            where = f"{path} line {first}"
            if len(cells) != len(header):
                raise fault(
                    where,
                    f"{len(cells)} columns in",
                    ",".join(cells),
                    f"{len(header)} columns: {', '.join(header)}",
                )
            yield where, {name: cells[position] for name, position in positions.items()}
            first = reader.line_num + 1
    except csv.Error as error:
        raise fault(
            f"{path} line {first}", "not comma-separated values:", str(error), "quoted cells"
        ) from error
    finally:
        csv.field_size_limit(previous)
