"""Whether the order of the paper's rows holds in our run.

For each table of the paper that at least three experiments have a row of, column by column:

- Spearman's correlation of the paper's scores with ours (means over trainings). Its 95 % interval
  draws the trainings of every experiment with replacement; it says how far the correlation would
  move with other trainings, and is narrow if there are few.
- For each two experiments, our difference of means with the standard error of Welch. It exceeds
  the spread if its 95 % interval, of Student's distribution with Welch's degrees of freedom,
  excludes zero.

Trainings of an experiment are its seeds and repetitions (`pretrain.repeat`); repetitions of only
the fine-tuning share a pre-training and are left out. Scores are of the best checkpoints if every
experiment of the table has them, as in the paper. Model and data need not be the paper's: only our
scores are subtracted from each other.

Source: section 3.1.5 of the paper for differences that count; `order_statistics` for ours.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from t5repro.array_types import Float64
from t5repro.randomness import stream
from t5repro.report.bootstrap import RESAMPLES, percentile_interval
from t5repro.report.charts import Series, legend, line_chart
from t5repro.report.differences import primary_metric
from t5repro.report.experiments import Experiment, counted
from t5repro.report.order_statistics import (
    AGREES,
    CONTRADICTS,
    DECIMALS,
    WITHIN,
    rank_correlation,
    verdict,
    welch,
)
from t5repro.report.partial_averages import PARTIAL, partial_averages
from t5repro.report.published_scores import (
    DEVIATION,
    PublishedRow,
    baseline_deviation,
    exceeds_deviation,
    published_rows,
    published_title,
)
from t5repro.report.published_table import column_title
from t5repro.report.rows import BEST, ScoreRow
from t5repro.report.titles import AVERAGE, UNDEFINED, format_difference, format_score, task_title

FEWEST = 3  # experiments whose order is a question
MEAN = "mean"  # key of the column of the mean over columns
REPETITIONS = {"seed", "pretrain.repeat"}  # settings that repeat an experiment
SHARED_PRETRAINING = "finetune.repeat"  # not a training from fresh weights


@dataclass(frozen=True)
class RankedExperiment:
    """An experiment with a row in a table, and all its trainings.

    Attributes:
        name: name of the experiment.
        style: number of its colour.
        paper: column -> score of the row.
        ours: column -> score of each training; only columns that all trainings have.
    """

    name: str
    style: int
    paper: Mapping[str, float]
    ours: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Pair:
    """Two experiments in a column, the first minus the second.

    Attributes:
        first: name of an experiment.
        second: name of the experiment to subtract.
        ours: our difference of means.
        error: its standard error; a dash if either has one training.
        paper: the paper's difference.
        counts: whether it exceeds two of the paper's deviations; None without a deviation.
        verdict: `AGREES`, `CONTRADICTS`, `WITHIN`, or a dash if either has one training.
    """

    first: str
    second: str
    ours: str
    error: str
    paper: str
    counts: bool | None
    verdict: str


@dataclass(frozen=True)
class ColumnOrdering:
    """The order in one column.

    Attributes:
        title: title of the task, or of the mean.
        metric: title of the metric.
        experiments: number of experiments that have the column.
        correlation: Spearman's correlation, or a dash.
        interval: its 95 % interval, or a dash.
        reason: why either is a dash, else empty.
        summary: number of pairs by verdict.
        pairs: pairs of experiments with different scores in the paper.
    """

    title: str
    metric: str
    experiments: int
    correlation: str
    interval: str
    reason: str
    summary: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class TableOrdering:
    """The order in one table of the paper.

    Attributes:
        number: number of the table.
        title: title of the table.
        experiments: number of experiments with a row.
        summary: number of pairs of all columns but the mean by verdict.
        columns: the columns, and the mean over those that all the experiments have.
        chart_title: column of the chart.
        chart: our scores by the paper's; empty if no column is complete.
        legend: its legend.
    """

    number: int
    title: str
    experiments: int
    summary: str
    columns: tuple[ColumnOrdering, ...]
    chart_title: str = ""
    chart: Markup = field(default_factory=Markup)
    legend: Markup = field(default_factory=Markup)


def orderings(
    rows: Sequence[ScoreRow], experiments: Sequence[Experiment], *, split: str, seed: int
) -> list[TableOrdering]:
    """Return the order in every table that at least `FEWEST` experiments have a row of.

    Args:
        rows: scores of all arms; means over seeds are computed here from those.
        experiments: the experiments of the page.
        split: the scored split; tables of another split are omitted.
        seed: seed of the run.
    """
    tables: dict[int, list[PublishedRow]] = {}
    for row in published_rows():
        if row.split == split and row.name != DEVIATION:
            tables.setdefault(row.table, []).append(row)
    return [
        _table(number, ranked, split=split, seed=seed)
        for number, published in tables.items()
        if len(ranked := ranked_experiments(rows, experiments, published)) >= FEWEST
    ]


def ranked_experiments(
    rows: Sequence[ScoreRow], experiments: Sequence[Experiment], published: Sequence[PublishedRow]
) -> list[RankedExperiment]:
    """Return the experiments with one of some rows; repetitions of an experiment are one.

    Args:
        rows: scores of all arms.
        experiments: the experiments of the page.
        published: the rows of a table.
    """
    printed: dict[str, PublishedRow] = {}  # an experiment can have several rows of equal scores
    groups: dict[tuple[str, frozenset[tuple[str, str]]], list[Experiment]] = {}
    for experiment in experiments:
        row = next((row for row in published if row.is_reproduced_by(experiment.row)), None)
        if row and SHARED_PRETRAINING not in experiment.changes:
            printed[experiment.name] = row
            changes = experiment.changes.items()
            # Without seed and repetition, so that repetitions of an experiment fall into one group.
            variant = frozenset((name, value) for name, value in changes if name not in REPETITIONS)
            groups.setdefault((experiment.row, variant), []).append(experiment)
    scored = {row.experiment for row in rows}
    # Best and last scores must not be mixed within a table, so all experiments decide.
    suffix = BEST if all(f"{name}{BEST}" in scored for name in printed) else ""
    arms_of = [
        [f"{arm}{suffix}" for experiment in group for arm in experiment.arms]
        for group in groups.values()
    ]
    by_arm = {
        (row.arm, f"{row.task}.{row.metric}"): row.value
        for row in rows
        if row.arm and row.value is not None
    }
    partial = partial_averages(by_arm, [arm for arms in arms_of for arm in arms])
    scores = by_arm | partial
    stand_ins = {key.replace(PARTIAL, AVERAGE): key for _, key in partial}
    keys = {
        stand_ins.get(key, key): key for key in _columns(rows, published[0], list(printed))
    }  # our column -> the paper's
    return [
        RankedExperiment(
            name=group[0].name,
            style=group[0].style,
            paper={key: printed[group[0].name].values[paper] for key, paper in keys.items()},
            ours={
                key: [scores[arm, key] for arm in arms]
                for key in keys
                if all((arm, key) in scores for arm in arms)
            },
        )
        for group, arms in zip(groups.values(), arms_of, strict=True)
    ]


def _columns(rows: Sequence[ScoreRow], row: PublishedRow, names: Sequence[str]) -> list[str]:
    """Return one column per task of a row: our first metric, or the first that is printed."""
    primary: dict[str, str] = {}
    for name in names:
        primary = primary_metric(rows, name) | primary
    columns: dict[str, str] = {}
    for key in row.values:
        task, metric = key.split(".")
        if task not in columns or primary.get(task) == metric:
            columns[task] = key
    return list(columns.values())


def with_mean(ranked: Sequence[RankedExperiment]) -> list[RankedExperiment]:
    """Return the experiments with the mean over the columns that all have, if these are several."""
    keys = [key for key in ranked[0].paper if all(key in entry.ours for entry in ranked)]
    if len(keys) < 2:
        return list(ranked)
    means = []
    for entry in ranked:
        paper = statistics.fmean(entry.paper[key] for key in keys)
        trainings = zip(*(entry.ours[key] for key in keys), strict=True)
        our_means = [statistics.fmean(scores) for scores in trainings]
        means.append(
            replace(entry, paper={**entry.paper, MEAN: paper}, ours={**entry.ours, MEAN: our_means})
        )
    return means


def _table(
    number: int, experiments: Sequence[RankedExperiment], *, split: str, seed: int
) -> TableOrdering:
    ranked = with_mean(experiments)
    columns = {
        key: _column(
            key,
            ranked,
            deviation=baseline_deviation(key.replace(PARTIAL, AVERAGE), split=split),
            seed=seed,
        )
        for key in ranked[0].paper
    }
    table = TableOrdering(
        number=number,
        title=published_title(number),
        experiments=len(ranked),
        summary=_summary(
            pair for key, column in columns.items() if key != MEAN for pair in column.pairs
        ),
        columns=tuple(columns.values()),
    )
    # The mean, the last column, if it exists; else the last complete one.
    complete = [key for key in columns if all(key in entry.ours for entry in ranked)]
    return _with_chart(table, ranked, complete[-1], seed) if complete else table


def _column(
    key: str, experiments: Sequence[RankedExperiment], *, deviation: float | None, seed: int
) -> ColumnOrdering:
    entries = [entry for entry in experiments if key in entry.ours]
    title, metric = _title(key)
    correlation, interval, reason = _correlation(key, entries, seed)
    pairs = tuple(
        _pair(key, first, second, deviation)
        for first, second in itertools.combinations(entries, 2)
        if first.paper[key] != second.paper[key]  # without an order in the paper
    )
    return ColumnOrdering(
        title, metric, len(entries), correlation, interval, reason, _summary(pairs), pairs
    )


def _title(key: str) -> tuple[str, str]:
    """Return the titles of a column's task and metric."""
    if key == MEAN:
        return "mean of the complete columns", ""
    task, metric = key.split(".")
    if metric == PARTIAL:
        return task_title(task), "average of the tasks here"
    return column_title(key)


def _correlation(key: str, entries: Sequence[RankedExperiment], seed: int) -> tuple[str, str, str]:
    """Return correlation and interval as text, and why one of them is a dash."""
    if len(entries) < FEWEST:
        return UNDEFINED, UNDEFINED, f"fewer than {FEWEST} experiments have this score"
    paper = np.asarray([entry.paper[key] for entry in entries])
    means = np.asarray([statistics.fmean(entry.ours[key]) for entry in entries]).round(DECIMALS)
    correlation = float(rank_correlation(paper, means))
    if math.isnan(correlation):
        return UNDEFINED, UNDEFINED, "all scores of one side are equal"
    text = format_score(correlation)
    single = sum(len(entry.ours[key]) < 2 for entry in entries)
    # Resampling one training would give an interval of width 0.
    if single:
        return text, UNDEFINED, f"one training of {counted(single, 'experiment')}"
    resampled = np.stack([resampled_means(entry, key, seed) for entry in entries], axis=-1)
    interval = percentile_interval(rank_correlation(paper, resampled))
    if interval is None:
        return text, UNDEFINED, "in some resamples all scores are equal"
    return text, " to ".join(map(format_score, interval)), ""


def resampled_means(entry: RankedExperiment, key: str, seed: int) -> Float64:
    """Return the mean over drawn trainings, `RESAMPLES` times.

    The draws are a function of the seed, the name of the experiment and its number of trainings:
    the same in all columns and tables.

    Args:
        entry: an experiment that has the column.
        key: the column.
        seed: seed of the run.
    """
    scores = np.asarray(entry.ours[key])
    generator = stream(seed, "report", "ordering", entry.name)
    draws = generator.integers(len(scores), size=(RESAMPLES, len(scores)))
    return np.asarray(scores[draws].mean(axis=1).round(DECIMALS))


def _pair(
    key: str, first: RankedExperiment, second: RankedExperiment, deviation: float | None
) -> Pair:
    difference = welch(first.ours[key], second.ours[key])
    paper = first.paper[key] - second.paper[key]
    return Pair(
        first=first.name,
        second=second.name,
        ours=format_difference(difference.value),
        error=format_score(difference.error),
        paper=format_difference(paper),
        counts=exceeds_deviation(paper, deviation),
        verdict=verdict(difference, paper),
    )


def _summary(pairs: Iterable[Pair]) -> str:
    counts = Counter(pair.verdict for pair in pairs)
    text = (
        f"{counted(counts.total(), 'pair')}: {counts[AGREES]} agree, "
        f"{counts[CONTRADICTS]} contradict, {counts[WITHIN]} within the spread"
    )
    unknown = counts[UNDEFINED]
    return f"{text}, {unknown} without a spread" if unknown else text


def _with_chart(
    table: TableOrdering, experiments: Sequence[RankedExperiment], key: str, seed: int
) -> TableOrdering:
    """Return the table with a chart: a dot per experiment, and a line over its 95 % interval."""
    dots = [
        Series(entry.name, ((entry.paper[key], statistics.fmean(entry.ours[key])),), entry.style)
        for entry in experiments
    ]
    bars = []
    for entry in experiments:
        interval = percentile_interval(resampled_means(entry, key, seed))
        if interval and len(entry.ours[key]) > 1:
            points = tuple((entry.paper[key], bound) for bound in interval)
            bars.append(Series(entry.name, points, entry.style))
    title = " ".join(_title(key)).strip()
    chart = line_chart(
        f"ordering-{table.number}",
        [*dots, *bars],
        title=f"Table {table.number}: {title}",
        description="Our scores over the paper’s, a dot per experiment.",
        x_label="the paper’s score",
        y_label="our score",
    )
    return replace(table, chart_title=title, chart=chart, legend=legend(dots))
