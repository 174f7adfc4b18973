"""The numbers that the paper prints, as typed values (its tables 1 to 16).

The figures stand in `paper_tables.json`, keyed ``task.metric``; a benchmark's mean is keyed
``glue.average`` and ``super_glue.average``. To add a table, add it to that file.
"""

import difflib
import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t5repro.errors import SettingsError

TASK_BY_TASK = 16  # the table that prints every metric of every task
BASELINE = "Baseline average"
NO_PRETRAINING = "No pre-training"
DEVIATION = "Baseline standard deviation"
PREVIOUS_BEST = "Previous best"  # not a model of the paper
DEVIATIONS_THAT_COUNT = 2  # section 3.1.5 of the paper: what is closer is called equal
COLUMNS_OF_A_ROW = 7
ROUNDING = 1e-9  # of differences between printed figures
NOTED_IN = {10: "D-014", 13: "D-015"}


@dataclass(frozen=True)
class PublishedRow:
    """One row of one table of the paper.

    Attributes:
        table: number of the table.
        name: what the row is called there.
        split: which split was scored: ``validation`` or ``test``.
        values: ``task.metric`` -> figure, on the scale of 100.
        note: where the paper contradicts itself, which figure this is.
    """

    table: int
    name: str
    split: str
    values: Mapping[str, float]
    note: str = ""

    def is_same_as(self, other: "PublishedRow") -> bool:
        """Whether two tables print one configuration: all the figures they share are equal."""
        common = self.values.keys() & other.values.keys()
        return (
            self.split == other.split
            and len(common) >= COLUMNS_OF_A_ROW
            and all(self.values[key] == other.values[key] for key in common)
        )


@functools.cache
def _facts() -> dict[str, Any]:
    text = importlib.resources.files("t5repro.report").joinpath("paper_tables.json")
    facts: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    return facts


def paper_source() -> str:
    """Return the reference to the paper."""
    return str(_facts()["source"])


@functools.cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Return all rows, in the order of the tables."""
    return tuple(
        PublishedRow(
            table=int(number),
            name=row["name"],
            split=table["split"],
            values=row["values"],
            note=row.get("note", ""),
        )
        for number, table in _facts()["tables"].items()
        for row in table["rows"]
    )


def published_row(table: int, name: str) -> PublishedRow:
    """Return one row of one table.

    Raises:
        SettingsError: there is no such row; the nearest name is given.
    """
    rows = {row.name: row for row in published_rows() if row.table == table}
    if not rows:
        known = sorted({row.table for row in published_rows()})
        raise SettingsError(
            f"the paper's table {table} holds no scores; tables with scores: {known}"
        )
    if name not in rows:
        close = difflib.get_close_matches(name, rows, n=1, cutoff=0.0)
        raise SettingsError(f"table {table} has no row {name!r}; nearest: {close[0]!r}")
    return rows[name]


def rows_called(name: str) -> tuple[PublishedRow, ...]:
    """Return every row of this name; an experiment's `row` names what it stands for."""
    return tuple(row for row in published_rows() if row.name == name)


def published_value(task: str, metric: str, *, row: str = BASELINE) -> float | None:
    """Return what the paper reports for a task on its validation split, if it does.

    Args:
        task: name of our task, or of a benchmark for its mean.
        metric: name of our metric, or ``average``.
        row: a row of the task-by-task table.
    """
    return published_row(TASK_BY_TASK, row).values.get(f"{task}.{metric}")


def published_title(table: int) -> str:
    """Return what the paper's table of this number is about."""
    return str(_facts()["tables"][str(table)]["title"])


def figure(name: str, key: str, *, split: str) -> float | None:
    """Return what the paper prints for a row, in whichever of its tables has the column.

    Args:
        name: what an experiment's `row` says.
        key: ``task.metric``.
        split: which split was scored.
    """
    named = [row for row in rows_called(name) if row.split == split]
    same = [row for row in published_rows() if any(row.is_same_as(other) for other in named)]
    return next((row.values[key] for row in [*named, *same] if key in row.values), None)


def deviation(key: str, *, split: str) -> float | None:
    """Return the standard deviation of the paper's baseline over ten trainings.

    It was measured on the validation sets, so it says nothing of another split.
    """
    row = published_row(TASK_BY_TASK, DEVIATION)
    return row.values.get(key) if row.split == split else None


def counts_as_difference(difference: float | None, spread: float | None) -> bool | None:
    """Return whether a difference is one by the paper's rule: over two standard deviations.

    None where a part is unknown.

    Source: section 3.1.5.
    """
    if difference is None or spread is None:
        return None
    return abs(difference) > DEVIATIONS_THAT_COUNT * spread + ROUNDING


def near_best(values: Sequence[float | None], spread: float | None) -> list[bool]:
    """Return which values are bold: within two standard deviations of the best of the column."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return [False] * len(values)
    floor = max(known) - DEVIATIONS_THAT_COUNT * (spread or 0.0)
    return [value is not None and value >= floor - ROUNDING for value in values]
