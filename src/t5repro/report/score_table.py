"""The table of scores: tasks and metrics down, experiments across, and the plot below it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.report.bootstrap import Resamples, score_interval_text
from t5repro.report.charts import style_class
from t5repro.report.differences import Difference, differences
from t5repro.report.experiments import Experiment
from t5repro.report.links import ResultLinks, RunLinks
from t5repro.report.published_scores import NO_PRETRAINING, published_value
from t5repro.report.rows import ScoreRow, experiment_rows, table_rows
from t5repro.report.titles import (
    AVERAGE,
    AVERAGES_GROUP,
    format_difference,
    format_score,
    format_sd,
    metric_title,
    task_group,
    task_title,
)


@dataclass(frozen=True)
class Cell:
    """The score of one experiment.

    Attributes:
        text: the score with two decimals.
        exact: the score in full precision; empty if undefined.
        sd: standard deviation over the seeds, as a suffix.
        interval: 95 % interval over rows; empty if there is none.
        is_best: whether it is the highest of the line.
        beats_trivial: whether it is higher than the trivial baseline.
        runs: the runs behind it.
    """

    text: str
    exact: str
    sd: str
    interval: str
    is_best: bool
    beats_trivial: bool
    runs: tuple[RunLinks, ...]


@dataclass(frozen=True)
class Marker:
    """A point of the plot.

    Attributes:
        style: class of the style sheet.
        left: position from the left in per cent.
        is_below: whether the score is below 0, where the plot starts.
    """

    style: str
    left: str
    is_below: bool = False


@dataclass(frozen=True)
class Line:
    """One line of the table of scores: a metric of a task.

    Attributes:
        name: name of the task in files.
        answers: link to the answers page of the task; empty if there is none.
        title: title of the task; empty on its secondary metrics.
        metric: title of the metric.
        baseline: score of the trivial baseline.
        baseline_kind: ``majority`` or ``copy``.
        cells: one score per experiment.
        difference: first experiment minus second, with its spread over seeds.
        difference_interval: 95 % interval of the difference over rows.
        sign: ``up``, ``down`` or empty.
        examples: number of scored examples.
        invalid: answers outside the allowed ones, by experiment.
        paper: score of the paper's baseline.
        paper_without: score of the paper without pre-training.
        reason: why the score is undefined; empty if it is defined.
        markers: points of the plot, only on a task's first metric.
    """

    name: str
    answers: str
    title: str
    metric: str
    baseline: str
    baseline_kind: str
    cells: tuple[Cell, ...]
    difference: str
    difference_interval: str
    sign: str
    examples: str
    invalid: str
    paper: str
    paper_without: str
    reason: str
    markers: tuple[Marker, ...]


def score_groups(
    rows: Sequence[ScoreRow],
    scores: Mapping[str, Mapping[str, Any]],
    experiments: Sequence[Experiment],
    links: ResultLinks,
    resamples: Resamples,
) -> list[tuple[str, list[Line]]]:
    """Return heading -> lines of the table, benchmark averages last.

    Args:
        rows: scores of all arms.
        scores: arm -> content of its ``scores.json``.
        experiments: the experiments of the page.
        links: links to the files behind a score.
        resamples: scores of resampled rows.
    """
    by_experiment = {(row.task, row.metric, row.experiment): row for row in experiment_rows(rows)}
    first_two = [experiment.name for experiment in experiments[:2]]
    difference_of = differences(rows, *first_two) if len(first_two) > 1 else {}
    groups: dict[str, list[Line]] = {}
    previous_task = ""
    # A line per task and metric; experiments without the task have empty cells.
    for shared in table_rows(rows):
        task, metric = shared.task, shared.metric
        entries = [by_experiment.get((task, metric, experiment.name)) for experiment in experiments]
        runs = [links.runs_of(experiment, task, metric) for experiment in experiments]
        line = _line(
            shared,
            entries,
            runs,
            difference=difference_of.get((task, metric)),
            is_first=task != previous_task,
        )
        line = replace(line, answers=links.answers_to(task))
        if len(experiments) > 1:
            interval = resamples.difference(task, metric, experiments[0].arms, experiments[1].arms)
            line = replace(line, difference_interval=score_interval_text(interval))
        if all(entry is None or entry.value is None for entry in entries):
            line = replace(line, reason=_undefined_reason(shared, scores))
        heading = AVERAGES_GROUP if metric == AVERAGE else task_group(task)
        groups.setdefault(heading, []).append(line)
        previous_task = task
    return list(groups.items())


def _line(
    shared: ScoreRow,
    entries: Sequence[ScoreRow | None],
    runs: Sequence[tuple[RunLinks, ...]],
    *,
    difference: Difference | None,
    is_first: bool,
) -> Line:
    """Return a line.

    Args:
        shared: a row with the columns that all experiments share.
        entries: the row of each experiment.
        runs: the runs of each experiment.
        difference: first experiment minus second.
        is_first: whether it is the first metric of its task.
    """
    values = [None if entry is None else entry.value for entry in entries]
    defined = [value for value in values if value is not None]
    # Equal scores have no winner.
    best = max(defined) if len(defined) > 1 and max(defined) > min(defined) else None
    # From the paper's table 1: how much pre-training is worth.
    paper_without = published_value(shared.task, shared.metric, row=NO_PRETRAINING)
    return Line(
        name=shared.task,
        answers="",
        title=task_title(shared.task) if is_first else "",
        metric=metric_title(shared.metric),
        baseline=format_score(shared.baseline) if shared.baseline_kind else "",
        baseline_kind=shared.baseline_kind,
        cells=tuple(
            Cell(
                text=format_score(value),
                exact="" if value is None else repr(value),
                sd="" if entry is None else format_sd(entry.sd),
                interval="" if entry is None else score_interval_text((entry.low, entry.high)),
                is_best=value is not None and value == best,
                beats_trivial=(
                    value is not None and shared.baseline is not None and value > shared.baseline
                ),
                runs=links,
            )
            for value, entry, links in zip(values, entries, runs, strict=True)
        ),
        difference="" if difference is None else str(difference),
        difference_interval="",
        sign="" if difference is None else _sign(difference.value),
        examples="" if shared.examples is None else f"{shared.examples:,}",
        invalid=_invalid(entries),
        paper="" if shared.paper_baseline is None else format_score(shared.paper_baseline),
        paper_without="" if paper_without is None else format_score(paper_without),
        reason="",
        markers=_markers(shared, values) if is_first and shared.metric != AVERAGE else (),
    )


def _sign(difference: float) -> str:
    # A difference that is printed as 0.0 gets no colour.
    if format_difference(difference) == format_difference(0.0):
        return ""
    return "up" if difference > 0 else "down"


def _invalid(entries: Sequence[ScoreRow | None]) -> str:
    counts = ["" if row is None or row.invalid is None else str(row.invalid) for row in entries]
    # Equal counts, nearly always 0, are shown once.
    return counts[0] if len(set(counts)) == 1 else " / ".join(counts)


def _markers(shared: ScoreRow, values: Sequence[float | None]) -> tuple[Marker, ...]:
    points = [("baseline", shared.baseline)]
    # The trivial baseline first, so that experiments are drawn over it.
    points += [(style_class(number), value) for number, value in enumerate(values)]
    return tuple(
        # Correlations can be negative; the plot starts at 0, and a note names them.
        Marker(style=style, left=f"{min(max(value, 0.0), 100.0):.2f}", is_below=value < 0)
        for style, value in points
        if value is not None
    )


def _undefined_reason(row: ScoreRow, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why no experiment has a score."""
    title = task_title(row.task)
    if row.metric != AVERAGE:
        return f"{title}: undefined, because no scored example has a known answer."
    # A dictionary for its order: the page names tasks in the order of the scores.
    missing: dict[str, None] = {}
    for content in scores.values():
        missing |= dict.fromkeys(content["averages"].get(row.task, {}).get("missing", ()))
    names = ", ".join(task_title(task) for task in missing)
    return f"{title}: undefined, because it also needs {names}."


@dataclass(frozen=True)
class Tally:
    """Number of tasks on which an experiment beats the trivial baseline."""

    name: str
    style: int
    beaten: int
    tasks: int


def tallies(rows: Sequence[ScoreRow], experiments: Sequence[Experiment]) -> list[Tally]:
    """Return the number of beaten trivial baselines of each experiment."""
    outcomes = {
        experiment.name: [
            row.value > row.baseline
            for row in primary_rows(rows, experiment.name)
            if row.value is not None and row.baseline is not None
        ]
        for experiment in experiments
    }
    return [
        Tally(
            name=experiment.name,
            style=experiment.style,
            beaten=sum(outcomes[experiment.name]),
            tasks=len(outcomes[experiment.name]),
        )
        for experiment in experiments
    ]


def primary_rows(rows: Sequence[ScoreRow], experiment: str) -> list[ScoreRow]:
    """Return the first metric of each task of an experiment."""
    by_task: dict[str, ScoreRow] = {}
    for row in experiment_rows(rows):
        if row.experiment == experiment and row.metric != AVERAGE:
            # Rows of a task begin with its primary metric (`rows.metric_order`).
            by_task.setdefault(row.task, row)
    return list(by_task.values())
