"""The paper's result tables with our scores next to each row.

A table appears if an experiment sets `row` to one of its rows; rows that repeat the same
configuration under another name (usually the baseline) share that experiment. A difference counts
if it exceeds two standard deviations of the paper's baseline, which was trained ten times.

Source: section 3.1.5 for the rule, tables 1 to 16 for the layout.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.report.experiments import Experiment, counted
from t5repro.report.links import ResultLinks, RunLinks
from t5repro.report.published_scores import (
    BASELINE,
    DECISION_OF_TABLE,
    DEVIATION,
    PREVIOUS_BEST,
    PublishedRow,
    baseline_deviation,
    exceeds_deviation,
    near_best,
    published_rows,
    published_title,
    rows_named,
)
from t5repro.report.rows import BEST, ScoreRow, best_of, experiment_rows
from t5repro.report.titles import (
    AVERAGE,
    BENCHMARKS,
    METRIC_TITLES,
    TASK_TITLES,
    UNDEFINED,
    format_difference,
    format_score,
    format_sd,
    task_group,
    task_title,
)

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
class PaperTable:
    """One table of the paper.

    Attributes:
        number: number of the table.
        title: title of the table.
        is_transposed: whether numbers are shown down and rows across.
        columns: titles of task and metric of each column.
        deviations: the paper's standard deviation of each column, or a dash.
        our_deviations: that of our repetitions of the baseline; empty without repetitions.
        repetitions: number of trainings of the baseline in them, the first included.
        rows: rows of the paper, each followed by the experiments that reproduce it.
        notes: footnotes, in order.
        reasons: why scores of ours are missing.
    """

    number: int
    title: str
    is_transposed: bool
    columns: tuple[tuple[str, str], ...]
    deviations: tuple[str, ...]
    our_deviations: tuple[str, ...]
    repetitions: int
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    reasons: tuple[str, ...]


def paper_tables(
    rows: Sequence[ScoreRow],
    scores: Mapping[str, Mapping[str, Any]],
    experiments: Sequence[Experiment],
    links: ResultLinks,
    *,
    split: str,
    is_comparable: bool,
) -> list[PaperTable]:
    """Return every table of the paper that an experiment reproduces a row of.

    Args:
        rows: scores of all arms.
        scores: arm -> content of its ``scores.json``.
        experiments: the experiments of the page.
        links: links to the files behind a score.
        split: the scored split; tables of another split are omitted.
        is_comparable: whether model, data and steps are the paper's; if not, the tables show our
            scores without differences and none of them bold.
    """
    our_scores = _OurScores(
        {(row.experiment, row.task, row.metric): row for row in experiment_rows(rows)},
        scores,
        links,
        is_comparable,
    )
    # Scores of best checkpoints are shown as an experiment of their own, if there are any.
    scored_names = {row.experiment for row in rows}
    candidates = [
        candidate
        for experiment in experiments
        for candidate in (experiment, best_of(experiment))
        if candidate.name in scored_names
    ]
    numbers = {
        row.table
        for experiment in experiments
        for row in rows_named(experiment.row)
        if row.split == split
    }
    return [_table(number, candidates, our_scores) for number in sorted(numbers)]


@dataclass(frozen=True)
class _OurScores:
    """Our scores, by experiment and column, with the files behind them."""

    rows: Mapping[tuple[str, str, str], ScoreRow]
    scores: Mapping[str, Mapping[str, Any]]
    links: ResultLinks
    is_comparable: bool

    def value(self, experiment: Experiment, key: str) -> float | None:
        row = self._row(experiment, key)
        return None if row is None else row.value

    def deviation(self, trainings: Sequence[Experiment], key: str) -> float | None:
        """Return the standard deviation (n - 1) of a score over trainings; None below two."""
        values = [self.value(experiment, key) for experiment in trainings]
        defined = [value for value in values if value is not None]
        return statistics.stdev(defined) if len(defined) > 1 else None

    def cell(
        self, experiment: Experiment, key: str, paper: float, deviation: float | None
    ) -> TableCell:
        task, metric = key.split(".")
        row = self._row(experiment, key)
        runs = self.links.runs_of(experiment, task, metric)
        if row is None or row.value is None:
            reason = self._missing_reason(experiment, task, metric)
            return TableCell(text=UNDEFINED, reason=reason, runs=runs)
        cell = TableCell(
            text=format_score(row.value), exact=repr(row.value), sd=format_sd(row.sd), runs=runs
        )
        if not self.is_comparable:
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


def _table(number: int, experiments: Sequence[Experiment], our_scores: _OurScores) -> PaperTable:
    published = [row for row in published_rows() if row.table == number and row.name != DEVIATION]
    keys = list(published[0].values)
    deviations = [baseline_deviation(key, split=published[0].split) for key in keys]
    reproductions = {
        row.name: [experiment for experiment in experiments if reproduces(experiment, row)]
        for row in published
    }
    paper_bold = _paper_bold(published, keys, deviations)
    our_bold = _our_bold(reproductions, our_scores, keys, deviations)
    trainings = baseline_trainings(experiments)
    notes: list[str] = []
    rows: list[TableRow] = []
    # Our rows follow the row that they reproduce, so that the two can be read column by column.
    for row in published:
        if row.note:
            notes.append(f"{row.name}: {row.note} ({DECISION_OF_TABLE[number]}).")
        rows.append(
            TableRow(
                name=row.name,
                note=str(len(notes)) if row.note else "",
                is_experiment=False,
                style=0,
                seeds="",
                cells=tuple(
                    TableCell(text=format_score(row.values[key]), is_bold=paper_bold[row.name, key])
                    for key in keys
                ),
            )
        )
        rows += [
            TableRow(
                name=experiment.name,
                note="",
                is_experiment=True,
                style=experiment.style,
                seeds=counted(len(experiment.arms), "seed") if experiment.has_seeds else "",
                cells=tuple(
                    replace(
                        our_scores.cell(experiment, key, row.values[key], deviation),
                        is_bold=our_bold[experiment.name, key],
                    )
                    for key, deviation in zip(keys, deviations, strict=True)
                ),
            )
            for experiment in reproductions[row.name]
        ]
    return PaperTable(
        number=number,
        title=published_title(number),
        is_transposed=len(keys) > MAX_COLUMNS,
        columns=tuple(map(column_title, keys)),
        deviations=tuple(map(_deviation_text, deviations)),
        our_deviations=tuple(
            _deviation_text(our_scores.deviation(trainings, key))
            for key in keys
            if len(trainings) > 1
        ),
        repetitions=len(trainings),
        rows=tuple(rows),
        notes=tuple(notes),
        reasons=_reasons(rows, keys),
    )


def baseline_trainings(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments that train the baseline, from fresh weights each.

    Ours is measured as the paper's deviation: over repetitions of pre-training and fine-tuning.
    Repetitions of fine-tuning alone share a pre-training and are left out. If there are scores of
    best checkpoints, they count, as in the paper.

    Source: section 3.1.5.
    """
    trainings = [
        experiment
        for experiment in experiments
        if experiment.row == BASELINE and experiment.changes.keys() <= {"pretrain.repeat"}
    ]
    best = [experiment for experiment in trainings if experiment.name.endswith(BEST)]
    return best or trainings


def _deviation_text(deviation: float | None) -> str:
    return UNDEFINED if deviation is None else f"{deviation:.3f}"


def reproduces(experiment: Experiment, row: PublishedRow) -> bool:
    """Whether an experiment has a row's configuration, under this name or another table's."""
    return experiment.row == row.name or any(
        row.is_same_as(other) for other in rows_named(experiment.row)
    )


def _paper_bold(
    published: Sequence[PublishedRow], keys: Sequence[str], deviations: Sequence[float | None]
) -> dict[tuple[str, str], bool]:
    """Return (row, column) -> whether the paper's score is bold."""
    bold = {(row.name, key): False for row in published for key in keys}
    # The previous state of the art is printed for comparison and never bold.
    models = [row for row in published if row.name != PREVIOUS_BEST]
    for key, deviation in zip(keys, deviations, strict=True):
        flags = near_best([row.values[key] for row in models], deviation)
        bold |= {(row.name, key): flag for row, flag in zip(models, flags, strict=True)}
    return bold


def _our_bold(
    reproductions: Mapping[str, Sequence[Experiment]],
    our_scores: _OurScores,
    keys: Sequence[str],
    deviations: Sequence[float | None],
) -> dict[tuple[str, str], bool]:
    """Return (experiment, column) -> whether our score is bold.

    The paper's rows and ours are compared among themselves: models of another size would never
    be near the paper's best.
    """
    # One experiment can reproduce several rows of a table.
    experiments = list(
        {entry.name: entry for group in reproductions.values() for entry in group}.values()
    )
    if not our_scores.is_comparable:
        return {(entry.name, key): False for entry in experiments for key in keys}
    bold: dict[tuple[str, str], bool] = {}
    for key, deviation in zip(keys, deviations, strict=True):
        flags = near_best([our_scores.value(entry, key) for entry in experiments], deviation)
        bold |= {(entry.name, key): flag for entry, flag in zip(experiments, flags, strict=True)}
    return bold


def column_title(key: str) -> tuple[str, str]:
    """Return the titles of a column's task and metric."""
    task, metric = key.split(".")
    title = task_title(task)
    if list(TASK_TITLES.values()).count(title) > 1:  # RTE is in GLUE and in SuperGLUE
        title = f"{title} ({task_group(task)})"
    return title, METRIC_TITLES[AVERAGE if task in BENCHMARKS else metric]


def _reasons(rows: Sequence[TableRow], keys: Sequence[str]) -> tuple[str, ...]:
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
