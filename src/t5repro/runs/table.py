"""The rows that match some terms, sorted, with columns: as text, as CSV and as JSON."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from t5repro.errors import LineageError, nearest
from t5repro.progress import aligned, printable
from t5repro.runs.row import COUNTER, FACTS, RECORDED, SCORE, Row
from t5repro.runs.terms import Term, Value, predicate
from t5repro.runs.used_by import Users

ALWAYS = ("run", "experiment", "seed", "state", "flops")
MAX_HEADLINES = 4  # in text, which has little room
MAX_FAULTS_SHOWN = 20
UNKNOWN = "–"
TEXTS = frozenset(("run", "experiment", "state", "places", "date", "commit", "machine"))


@dataclass(frozen=True)
class Query:
    """The contents of a table.

    Attributes:
        terms: a row must match all.
        sort: key of the order, ``KEY:desc`` for the largest first; empty for run and experiment.
        columns: keys of the columns; none for those that the rows suggest.
    """

    terms: tuple[Term, ...] = ()
    sort: str = ""
    columns: tuple[str, ...] = ()

    @property
    def sort_key(self) -> tuple[str, bool]:
        """Key of the order, and whether the largest value is first."""
        key, _, direction = self.sort.rpartition(":")
        if direction in ("asc", "desc"):
            return key, direction == "desc"
        return self.sort, False

    @property
    def needs_records(self) -> bool:
        """Whether a key is known from records only."""
        keys = {*self.columns, self.sort_key[0], *(term.key for term in self.terms)}
        return not keys.isdisjoint(RECORDED)


@dataclass(frozen=True)
class RunTable:
    """Rows in order, with columns.

    Attributes:
        rows: the rows that match.
        total: rows before the terms.
        columns: keys of the columns.
        chosen: whether the user has chosen the columns.
        terms: conditions that the rows match.
        faults: place and message of each file that cannot be read.
    """

    rows: tuple[Row, ...]
    total: int
    columns: tuple[str, ...]
    chosen: bool
    terms: tuple[Term, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything was read."""
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values: the chosen columns, else all that is known."""
        return {
            "columns": list(self.columns),
            "rows": [
                {key: row.get(key) for key in self.columns}
                if self.chosen
                else {**row.values, "places": list(row.places)}
                for row in self.rows
            ],
            "total": self.total,
            "unread": [f"{location}: {message}" for location, message in self.faults],
        }

    def to_csv(self) -> str:
        """Return the columns in full precision; a missing value is an empty cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = self.columns if self.chosen else (*self.columns, *self._further_headlines())
        writer.writerow(columns)
        writer.writerows([_exact(row.get(key)) for key in columns] for row in self.rows)
        return text.getvalue()

    def to_text(self) -> str:
        """Return the table for a terminal, and what could not be read."""
        head = [column.removeprefix(SCORE) for column in self.columns]
        cells = [[shown(key, row.get(key)) for key in self.columns] for row in self.rows]
        text_columns = [number for number, key in enumerate(self.columns) if key in TEXTS]
        text = aligned([list(map(_in_line, line)) for line in (head, *cells)], left=text_columns)
        text += f"{len(self.rows):,} of {self.total:,} rows\n"
        further = [key.removeprefix(SCORE) for key in self._further_headlines()]
        if further and not self.chosen:
            text += _in_line(f"{len(further)} more scores (--csv has all): {', '.join(further)}")
            text += "\n"
        faults = self._faults_by_message()
        text += "".join(_in_line(line) + "\n" for line in faults[:MAX_FAULTS_SHOWN])
        hidden = len(faults) - MAX_FAULTS_SHOWN
        return text + (f"and {hidden} more not read (--json lists all)\n" if hidden > 0 else "")

    def _faults_by_message(self) -> list[str]:
        """Return a line for each fault: many revisions may lack the same object in DVC's cache."""
        locations: dict[str, list[str]] = {}
        for location, message in self.faults:
            locations.setdefault(message, []).append(location)
        return [
            f"not read: {first}{f' and {len(more)} more' if more else ''}: {message}"
            for message, (first, *more) in locations.items()
        ]

    def _further_headlines(self) -> list[str]:
        return [key for key in headlines(self.rows) if key not in self.columns]


def make_table(
    rows: Sequence[Row],
    query: Query,
    *,
    uses: Sequence[Users] = (),
    faults: Sequence[tuple[str, str]] = (),
) -> RunTable:
    """Return the rows that match a query.

    Args:
        rows: all rows.
        query: terms, order and columns.
        uses: (place, job) of what used a file; a row must be in each.
        faults: place and message of each file that cannot be read.

    Raises:
        LineageError: there is no row and no fault, a key that no row has, or a value of the wrong
            type.
    """
    if not rows and not faults:
        raise LineageError(
            "there is no run: results/ and studies/ have no manifest; run snakemake, or dvc pull, "
            "first"
        )
    keys = Keys(rows)
    decided: list[Callable[[Row], bool]] = [_is_user(users) for users in uses]
    for term in query.terms:
        key = keys.resolve(term.key)
        decided.append(_decision(key, predicate(term, (row.get(key) for row in rows))))
    matching = [row for row in rows if all(decide(row) for decide in decided)]
    name, is_descending = query.sort_key
    sort = keys.resolve(name) if name else ""
    columns = tuple(keys.resolve(column) for column in query.columns)
    suggested = _suggested(matching, [keys.resolve(term.key) for term in query.terms], sort)
    return RunTable(
        rows=tuple(in_order(matching, sort, is_descending=is_descending)),
        total=len(rows),
        columns=columns or suggested,
        chosen=bool(columns),
        terms=query.terms,
        faults=tuple(faults),
    )


def _decision(key: str, decide: Callable[[Value], bool]) -> Callable[[Row], bool]:
    return lambda row: decide(row.get(key))


def _is_user(users: Users) -> Callable[[Row], bool]:
    return lambda row: any((state_name, row.job) in users for state_name in row.places)


class Keys:
    """All keys that some rows have; without rows, every key.

    Args:
        rows: the rows.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._known = set(FACTS).union(*(row.values for row in rows))
        self._is_open = not rows

    def resolve(self, key: str) -> str:
        """Return a key in full: a score may be named without its prefix.

        Raises:
            LineageError: no row has it.
        """
        for name in (key, f"{SCORE}{key}"):
            if name in self._known or self._is_open:
                return name
        names = {name.removeprefix(SCORE) for name in self._known}
        if not key.startswith(COUNTER):
            names = {name for name in names if not name.startswith(COUNTER)}
        raise LineageError(
            f"no run has {key!r}{nearest(key, sorted(names))}; allowed: {', '.join(FACTS)}, "
            "TASK.METRIC, a setting such as pretrain.objective, counter.RULE.NAME"
        )


def headlines(rows: Iterable[Row]) -> list[str]:
    """Return the headlines of some rows, headlines of the most rows first."""
    counts: dict[str, int] = {}
    for row in rows:
        for key in row.headlines:
            counts[key] = counts.get(key, 0) + 1
    return sorted(counts, key=lambda key: (-counts[key], key))


def _suggested(rows: Sequence[Row], requested_keys: Collection[str], sort: str) -> tuple[str, ...]:
    """Return the columns without the user's choice: the requested ones, else some headlines."""
    keys = list(dict.fromkeys((*ALWAYS, *requested_keys, *filter(None, [sort]))))
    if not any(key.startswith(SCORE) for key in keys):
        keys += headlines(rows)[:MAX_HEADLINES]
    if any(len(row.places) > 1 for row in rows) or len({row.places for row in rows}) > 1:
        keys.append("places")
    return tuple(dict.fromkeys(keys))


def in_order(rows: Iterable[Row], key: str, *, is_descending: bool) -> list[Row]:
    """Return the rows by a value, then by run and experiment; missing values are always last."""
    ordered = sorted(rows, key=_identity)
    if not key:
        return ordered
    rows_with_value = [row for row in ordered if row.get(key) is not None]
    missing = [row for row in ordered if row.get(key) is None]
    return (
        sorted(rows_with_value, key=lambda row: _rank(row.get(key)), reverse=is_descending)
        + missing
    )


def _identity(row: Row) -> tuple[str, ...]:
    return str(row.get("run")), str(row.get("experiment")), row.job, *row.places


def _rank(value: Value) -> tuple[bool, float, str]:
    """Numbers are before texts."""
    is_text = isinstance(value, str)
    return (is_text, 0, str(value)) if is_text else (is_text, value or 0, "")  # type: ignore[return-value]


def shown(key: str, value: Value) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if key.startswith(SCORE):
        return f"{value:.2f}"
    if key in ("flops", "tokens"):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _exact(value: Value) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value


def _in_line(text: str) -> str:
    """Return a text in one line: a name with a line break must not look like a further row."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
