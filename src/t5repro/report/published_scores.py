"""The scores that the paper prints, as typed values (its tables 1 to 16).

`published/paper_tables.json` contains them, keyed ``task.metric``; a benchmark's average is keyed
``glue.average`` or ``super_glue.average``. To add a table, add it to that file.

Source: Raffel et al., arXiv 1910.10683, tables 1 to 16; two misprints as D-014 and D-015 say.
"""

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t5repro.errors import SettingsError
from t5repro.published.tables import t5_tables

TASK_BY_TASK = 16  # the table with every metric of every task
BASELINE = "Baseline average"
NO_PRETRAINING = "No pre-training"
DEVIATION = "Baseline standard deviation"
PREVIOUS_BEST = "Previous best"  # not a model of the paper
SIGNIFICANT_DEVIATIONS = 2  # section 3.1.5 of the paper: closer scores are treated as equal
SHARED_COLUMNS = 7  # of most tables; equality of fewer scores could be a coincidence
ROUNDING = 1e-9  # of differences between printed figures
DECISION_OF_TABLE = {10: "D-014", 13: "D-015"}


@dataclass(frozen=True)
class PublishedRow:
    """One row of one table of the paper.

    Attributes:
        table: number of the table.
        name: name of the row in that table.
        split: ``validation`` or ``test``.
        values: ``task.metric`` -> score, on the scale of 100.
        note: explanation where the paper contradicts itself.
    """

    table: int
    name: str
    split: str
    values: Mapping[str, float]
    note: str = ""

    def is_same_as(self, other: "PublishedRow") -> bool:
        """Whether two tables print one configuration: their shared columns are equal.

        The tables repeat configurations under other names, such as the baseline in most of them.
        """
        common = self.values.keys() & other.values.keys()
        return (
            self.split == other.split
            and len(common) >= SHARED_COLUMNS
            and all(self.values[key] == other.values[key] for key in common)
        )

    def is_reproduced_by(self, name: str) -> bool:
        """Whether an experiment's `row` is this configuration, here or in another table."""
        return name == self.name or any(self.is_same_as(other) for other in rows_named(name))


def paper_source() -> str:
    """Return the reference to the paper."""
    return str(t5_tables()["source"])


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
        for number, table in t5_tables()["tables"].items()
        for row in table["rows"]
    )


def published_row(table: int, name: str) -> PublishedRow:
    """Return one row of one table.

    Raises:
        SettingsError: the table or row does not exist; the error names the nearest row.
    """
    rows = {row.name: row for row in published_rows() if row.table == table}
    if not rows:
        tables = sorted({row.table for row in published_rows()})
        raise SettingsError(
            f"the paper's table {table} contains no scores; tables with scores: {tables}"
        )
    if name not in rows:
        nearest = difflib.get_close_matches(name, rows, n=1, cutoff=0.0)
        raise SettingsError(f"table {table} has no row {name!r}; nearest: {nearest[0]!r}")
    return rows[name]


def rows_named(name: str) -> tuple[PublishedRow, ...]:
    """Return every row with a name, such as the `row` of an experiment, over all tables."""
    return tuple(row for row in published_rows() if row.name == name)


def published_value(task: str, metric: str, *, row: str = BASELINE) -> float | None:
    """Return a score of the task-by-task table; None if the paper does not report it.

    Args:
        task: name of our task, or of a benchmark for its average.
        metric: name of our metric, or ``average``.
        row: name of the row.
    """
    return published_row(TASK_BY_TASK, row).values.get(f"{task}.{metric}")


def published_title(table: int) -> str:
    """Return the title of a table."""
    return str(t5_tables()["tables"][str(table)]["title"])


def published_score(name: str, key: str, *, split: str) -> float | None:
    """Return the score of a configuration, from whichever table has the column.

    Args:
        name: `row` of an experiment.
        key: ``task.metric``.
        split: the scored split.
    """
    rows = [row for row in rows_named(name) if row.split == split]
    # Most tables print averages only; the task-by-task table has the same row with all columns.
    repeated = [row for row in published_rows() if any(row.is_same_as(other) for other in rows)]
    return next((row.values[key] for row in [*rows, *repeated] if key in row.values), None)


def baseline_deviation(key: str, *, split: str) -> float | None:
    """Return the standard deviation of the paper's baseline over ten trainings.

    It was measured on validation sets; for other splits there is None.

    Source: section 3.1.5, table 1 and table 16.
    """
    row = published_row(TASK_BY_TASK, DEVIATION)
    return row.values.get(key) if row.split == split else None


def exceeds_deviation(difference: float | None, deviation: float | None) -> bool | None:
    """Return whether a difference exceeds two standard deviations; None if either is unknown.

    Source: section 3.1.5.
    """
    if difference is None or deviation is None:
        return None
    return abs(difference) > SIGNIFICANT_DEVIATIONS * deviation + ROUNDING


def near_best(values: Sequence[float | None], deviation: float | None) -> list[bool]:
    """Return which values are within two standard deviations of the best of their column.

    Source: section 3.1.5; the paper prints them in bold.
    """
    defined = [value for value in values if value is not None]
    if len(defined) < 2:
        return [False] * len(values)
    threshold = max(defined) - SIGNIFICANT_DEVIATIONS * (deviation or 0.0) - ROUNDING
    return [value is not None and value >= threshold for value in values]
