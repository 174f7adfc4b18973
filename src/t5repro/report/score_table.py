"""The table of scores: tasks and metrics down, experiments across, and the drawing beside it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.report.experiments import Group
from t5repro.report.links import Behind, Files
from t5repro.report.published_scores import NO_PRETRAINING, published_value
from t5repro.report.rows import (
    AVERAGE,
    BENCHMARKS,
    METRIC_TITLES,
    TASK_TITLES,
    ScoreRow,
    first_rows,
    of_experiments,
    shown,
    spread,
)

GROUPS = (
    ("glue_", "GLUE"),
    ("super_glue_", "SuperGLUE"),
    ("squad", "Question answering"),
    ("cnn_dailymail", "Summarisation"),
    ("wmt_", "Translation"),
)
OTHER_GROUP = "Other tasks"
AVERAGES_GROUP = "Benchmark averages"


@dataclass(frozen=True)
class Cell:
    """One experiment's number in the table of scores, and the runs behind it."""

    text: str
    exact: str
    spread: str
    best: bool
    beats: bool
    behind: tuple[Behind, ...]


@dataclass(frozen=True)
class Line:
    """One line of the table of scores.

    Attributes:
        name: the task's name in files.
        title: the task's name for people; empty on its further metrics.
        metric: name of the metric for people.
        baseline: score of the trivial answer, and its kind.
        cells: one number an experiment.
        difference: first experiment minus second.
        sign: ``up``, ``down`` or nothing.
        examples: how many were scored.
        invalid: answers that are none of the allowed, by experiment.
        paper: what the paper's baseline scores.
        paper_without: what the paper scores without pre-training.
        reason: why a number is not defined.
        marks: places on a scale from 0 to 100 for the drawing; only on a task's first metric.
    """

    name: str
    title: str
    metric: str
    baseline: str
    baseline_kind: str
    cells: tuple[Cell, ...]
    difference: str
    sign: str
    examples: str
    invalid: str
    paper: str
    paper_without: str
    reason: str
    marks: tuple["Mark", ...]


@dataclass(frozen=True)
class Mark:
    """A point of the drawing: whose, what it says, and how far to the right in per cent."""

    kind: str
    text: str
    place: str


def score_groups(
    rows: Sequence[ScoreRow],
    scores: Mapping[str, Mapping[str, Any]],
    listed: Sequence[Group],
    files: Files,
) -> list[tuple[str, list[Line]]]:
    """Return the table of scores: groups of tasks and their lines, averages last.

    Args:
        rows: numbers of all arms.
        scores: arm -> content of its ``scores.json``.
        listed: the experiments.
        files: the way to what is behind a number.
    """
    found = {(row.task, row.metric, row.experiment): row for row in of_experiments(rows)}
    groups: dict[str, list[Line]] = {}
    previous = ""
    for first in first_rows(rows):
        entries = [found.get((first.task, first.metric, group.name)) for group in listed]
        behind = [files.behind(group, first.task, first.metric) for group in listed]
        heading = AVERAGES_GROUP if first.metric == AVERAGE else group_of(first.task)
        line = _line(first, entries, behind, is_first=first.task != previous)
        if all(row is None or row.value is None for row in entries):
            line = replace(line, reason=_reason(first, scores))
        groups.setdefault(heading, []).append(line)
        previous = first.task
    return list(groups.items())


def group_of(task: str) -> str:
    """Return the heading that a task stands under."""
    return next((title for prefix, title in GROUPS if task.startswith(prefix)), OTHER_GROUP)


def _line(
    first: ScoreRow,
    entries: Sequence[ScoreRow | None],
    behind: Sequence[tuple[Behind, ...]],
    *,
    is_first: bool,
) -> Line:
    values = [None if row is None else row.value for row in entries]
    known = [value for value in values if value is not None]
    best = max(known) if len(known) > 1 and max(known) > min(known) else None
    difference = (
        values[0] - values[1]
        if len(values) > 1 and values[0] is not None and values[1] is not None
        else None
    )
    return Line(
        name=first.task,
        title=title_of(first.task) if is_first else "",
        metric=METRIC_TITLES.get(first.metric, first.metric),
        baseline=shown(first.baseline) if first.baseline_kind else "",
        baseline_kind=first.baseline_kind,
        cells=tuple(
            Cell(
                text=shown(value),
                exact="" if value is None else repr(value),
                spread="" if row is None else spread(row.sd),
                best=value is not None and value == best,
                beats=value is not None and first.baseline is not None and value > first.baseline,
                behind=runs,
            )
            for value, row, runs in zip(values, entries, behind, strict=True)
        ),
        difference="" if difference is None else signed(difference),
        sign=""
        if difference is None or signed(difference) == signed(0.0)
        else ("up" if difference > 0 else "down"),
        examples="" if first.examples is None else f"{first.examples:,}",
        invalid=_invalid(entries),
        paper="" if first.paper_baseline is None else shown(first.paper_baseline),
        paper_without=_paper_without(first),
        reason="",
        marks=_marks(first, values) if is_first and first.metric != AVERAGE else (),
    )


def signed(value: float) -> str:
    """Return a difference with its sign, two places."""
    text = f"{value:+.2f}".replace("-", "−")
    return "±0.00" if text[1:] == "0.00" else text


def _invalid(entries: Sequence[ScoreRow | None]) -> str:
    counts = ["" if row is None or row.invalid is None else str(row.invalid) for row in entries]
    return counts[0] if len(set(counts)) == 1 else " / ".join(counts)


def _paper_without(row: ScoreRow) -> str:
    value = published_value(row.task, row.metric, row=NO_PRETRAINING)
    return "" if value is None else shown(value)


def _marks(first: ScoreRow, values: Sequence[float | None]) -> tuple[Mark, ...]:
    """Return the points of a task's drawing; what lies below 0 is drawn at 0."""
    points = [("baseline", first.baseline_kind, first.baseline)]
    points += [(f"series-{style}", "", value) for style, value in enumerate(values)]
    return tuple(
        Mark(kind=kind, text=text, place=f"{min(max(value, 0.0), 100.0):.2f}")
        for kind, text, value in points
        if value is not None
    )


def _reason(first: ScoreRow, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why no experiment has this number."""
    title = title_of(first.task)
    if first.metric != AVERAGE:
        return f"{title}: not defined, because no scored example has a known answer."
    missing: dict[str, None] = {}
    for content in scores.values():
        missing |= dict.fromkeys(content["averages"].get(first.task, {}).get("missing", ()))
    names = ", ".join(title_of(task) for task in missing)
    return f"{title}: not defined, because it also needs {names}."


def title_of(task: str) -> str:
    """Return the name of a task or a benchmark for people."""
    return (TASK_TITLES | BENCHMARKS).get(task, task)


@dataclass(frozen=True)
class Tally:
    """How many tasks an experiment answers better than the trivial answer does."""

    name: str
    style: int
    beaten: int
    of: int


def tallies(rows: Sequence[ScoreRow], listed: Sequence[Group]) -> list[Tally]:
    """Return for each experiment how many tasks beat their trivial answer."""
    told = {
        group.name: [
            row.value > row.baseline
            for row in deciding(rows, group.name)
            if row.value is not None and row.baseline is not None
        ]
        for group in listed
    }
    return [
        Tally(
            name=group.name,
            style=group.style,
            beaten=told[group.name].count(True),
            of=len(told[group.name]),
        )
        for group in listed
    ]


def deciding(rows: Sequence[ScoreRow], experiment: str) -> list[ScoreRow]:
    """Return the first number of each task of an experiment."""
    firsts: dict[str, ScoreRow] = {}
    for row in of_experiments(rows):
        if row.experiment == experiment and row.metric != AVERAGE:
            firsts.setdefault(row.task, row)
    return list(firsts.values())


@dataclass(frozen=True)
class Effect:
    """What the first experiment has over the second, over the first metric of each task."""

    better: int
    worse: int
    equal: int
    mean: str


def effect(rows: Sequence[ScoreRow], listed: Sequence[Group]) -> Effect | None:
    """Compare the first two experiments; None where there is nothing to compare."""
    if len(listed) < 2:
        return None
    second = {(row.task, row.metric): row.value for row in deciding(rows, listed[1].name)}
    differences = []
    for row in deciding(rows, listed[0].name):
        other = second.get((row.task, row.metric))
        if row.value is not None and other is not None:
            differences.append(row.value - other)
    if not differences:
        return None
    return Effect(
        better=sum(value > 0 for value in differences),
        worse=sum(value < 0 for value in differences),
        equal=sum(value == 0 for value in differences),
        mean=signed(math.fsum(differences) / len(differences)),
    )
