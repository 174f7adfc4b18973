"""Published tables with our scores next to each row: their parts, whichever paper prints them."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.report.experiments import Experiment, counted
from t5repro.report.links import ResultLinks, RunLinks
from t5repro.report.published_scores import exceeds_deviation
from t5repro.report.rows import BEST, ScoreRow, experiment_rows
from t5repro.report.titles import (
    AVERAGE,
    UNDEFINED,
    format_difference,
    format_score,
    format_sd,
    metric_title,
    task_group,
    task_title,
)
from t5repro.task_table import BENCHMARK_TITLES, TASKS

MAX_COLUMNS = 10  # a wider table is transposed: numbers down, rows across


@dataclass(frozen=True)
class TableCell:
    """One number of a table.

    Attributes:
        text: the number, or a dash.
        exact: our score in full precision; empty if undefined or the paper's.
        is_bold: whether it is within two deviations of the best of its column.
        sd: standard deviation over our seeds, as a suffix.
        difference: our score minus the paper's.
        counts: whether the difference exceeds two deviations; None without a deviation.
        reason: why our score is missing.
        runs: the runs behind our score.
    """

    text: str
    exact: str = ""
    is_bold: bool = False
    sd: str = ""
    difference: str = ""
    counts: bool | None = None
    reason: str = ""
    runs: tuple[RunLinks, ...] = ()


@dataclass(frozen=True)
class TableRow:
    """A row of the paper, or an experiment that reproduces it.

    Attributes:
        name: name of the row or of the experiment.
        note: number of its footnote; empty for none.
        is_experiment: whether it is an experiment.
        style: number of the experiment's colour.
        seeds: number of seeds in words; empty for one.
        cells: one per column.
    """

    name: str
    note: str
    is_experiment: bool
    style: int
    seeds: str
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class PublishedTable:
    """One published table with our scores.

    Attributes:
        anchor: id of the table on the page.
        label: its name, such as ``Table 5``.
        title: title of the table.
        split: the scored split.
        is_transposed: whether numbers are shown down and rows across.
        columns: titles of task and metric of each column.
        deviations: the paper's standard deviation of each column, or a dash; empty if the
            table has none.
        our_deviations: the same over our repetitions of the baseline; empty without repetitions.
        repetitions: number of trainings of the baseline in them, the first included.
        rows: rows of the paper, each followed by the experiments that reproduce it.
        notes: footnotes, in order.
        remarks: sentences below the table, such as why scores of ours are missing.
    """

    anchor: str
    label: str
    title: str
    split: str
    is_transposed: bool
    columns: tuple[tuple[str, str], ...]
    deviations: tuple[str, ...]
    our_deviations: tuple[str, ...]
    repetitions: int
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def has_ours(self) -> bool:
        """Whether an experiment has a row in it."""
        return any(row.is_experiment for row in self.rows)


@dataclass(frozen=True)
class OurScores:
    """Our scores, by experiment and column, with the files behind them."""

    rows: Mapping[tuple[str, str, str], ScoreRow]
    scores: Mapping[str, Mapping[str, Any]]
    links: ResultLinks
    is_comparable: bool

    @classmethod
    def of(
        cls,
        rows: Sequence[ScoreRow],
        scores: Mapping[str, Mapping[str, Any]],
        links: ResultLinks,
        *,
        is_comparable: bool,
    ) -> "OurScores":
        """Return the scores of a run.

        Args:
            rows: scores of all arms.
            scores: arm -> content of its ``scores.json``.
            links: links to the files behind a score.
            is_comparable: whether differences from the published scores are shown.
        """
        by_column = {(row.experiment, row.task, row.metric): row for row in experiment_rows(rows)}
        return cls(by_column, scores, links, is_comparable)

    def value(self, experiment: Experiment, key: str) -> float | None:
        """Return the score of a column, ``task.metric``."""
        row = self._row(experiment, key)
        return None if row is None else row.value

    def deviation(self, trainings: Sequence[Experiment], key: str) -> float | None:
        """Return the standard deviation (n - 1) of a score over trainings; None below two."""
        values = [self.value(experiment, key) for experiment in trainings]
        defined = [value for value in values if value is not None]
        return statistics.stdev(defined) if len(defined) > 1 else None

    def cell(
        self, experiment: Experiment, key: str, paper: float | None, deviation: float | None
    ) -> TableCell:
        """Return the cell of our score.

        Args:
            experiment: one of ours.
            key: the column, ``task.metric``.
            paper: the published score.
            deviation: the standard deviation that decides which differences count.
        """
        task, metric = key.split(".")
        row = self._row(experiment, key)
        runs = self.links.runs_of(experiment, task, metric)
        if row is None or row.value is None:
            reason = self._missing_reason(experiment, task, metric)
            return TableCell(text=UNDEFINED, reason=reason, runs=runs)
        cell = TableCell(
            text=format_score(row.value), exact=repr(row.value), sd=format_sd(row.sd), runs=runs
        )
        if not self.is_comparable or paper is None:
            return cell
        difference = row.value - paper
        return replace(
            cell,
            difference=format_difference(difference),
            counts=exceeds_deviation(difference, deviation),
        )

    def _row(self, experiment: Experiment, key: str) -> ScoreRow | None:
        task, metric = key.split(".")
        return self.rows.get((experiment.name, task, metric))

    def _missing_reason(self, experiment: Experiment, task: str, metric: str) -> str:
        if metric != AVERAGE:
            return "not in this run"
        missing: dict[str, None] = {}
        for arm in experiment.arms:
            average = self.scores[arm.removesuffix(BEST)]["averages"].get(task)
            missing |= dict.fromkeys(average["missing"] if average else ())
        if not missing:
            return "none of its tasks is in this run"
        return f"undefined, lacks {', '.join(map(task_title, missing))}"


def our_row(experiment: Experiment, cells: Sequence[TableCell], *, note: str = "") -> TableRow:
    """Return the row of an experiment; `note` is the number of its footnote."""
    return TableRow(
        name=experiment.name,
        note=note,
        is_experiment=True,
        style=experiment.style,
        seeds=counted(len(experiment.arms), "seed") if experiment.has_seeds else "",
        cells=tuple(cells),
    )


def printed_row(name: str, cells: Sequence[TableCell], *, note: str = "") -> TableRow:
    """Return a published row; `note` is the number of its footnote."""
    return TableRow(
        name=name, note=note, is_experiment=False, style=0, seeds="", cells=tuple(cells)
    )


def column_title(key: str) -> tuple[str, str]:
    """Return the titles of a column's task and metric."""
    task, metric = key.split(".")
    title = task_title(task)
    if [row.title for row in TASKS].count(title) > 1:  # RTE is in GLUE and in SuperGLUE
        title = f"{title} ({task_group(task)})"
    return title, metric_title(AVERAGE if task in BENCHMARK_TITLES else metric)


def missing_reasons(rows: Sequence[TableRow], keys: Sequence[str]) -> tuple[str, ...]:
    """Return why experiments lack scores, one sentence per reason and set of columns."""
    columns_of: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for key, cell in zip(keys, row.cells, strict=True):
            if cell.reason:
                title, metric = column_title(key)
                column = title if key.endswith(f".{AVERAGE}") else f"{title} {metric}"
                columns_of.setdefault((row.name, cell.reason), []).append(column)
    names_of: dict[tuple[str, str], list[str]] = {}
    for (name, reason), columns in columns_of.items():
        names_of.setdefault((", ".join(dict.fromkeys(columns)), reason), []).append(name)
    return tuple(
        f"{columns}: {reason} ({', '.join(dict.fromkeys(names))})."
        for (columns, reason), names in names_of.items()
    )
