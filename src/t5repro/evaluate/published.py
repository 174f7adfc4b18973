"""The numbers that the paper prints, as typed values (its tables 1 to 16).

The figures stand in `paper_tables.json`, keyed ``task.metric``; a benchmark's mean is keyed
``glue.average`` and ``super_glue.average``. To add a table, add it to that file.
"""

import difflib
import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.errors import SettingsError

TASK_BY_TASK = 16  # the table that prints every metric of every task
BASELINE = "Baseline average"
NO_PRETRAINING = "No pre-training"
DEVIATION = "Baseline standard deviation"


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


@functools.cache
def _facts() -> dict[str, Any]:
    text = importlib.resources.files("t5repro.evaluate").joinpath("paper_tables.json")
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
