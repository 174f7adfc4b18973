"""Loss and scores over the compute of pre-training, of experiments that differ in it alone.

- The law of the loss on held-out text, with its intervals (`loss_law`).
- For each task the compute from which on pre-training is worth something: there and at all larger
  ones the difference to no pre-training exceeds Welch's interval (`order_statistics`).
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from t5repro.config.experiments import pretraining_flops, settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.report.charts import Series, legend, line_chart
from t5repro.report.differences import primary_metric
from t5repro.report.experiments import Experiment
from t5repro.report.loss_curves import OPERATIONS, PETA, read_history
from t5repro.report.loss_law import FEWEST_FOR_FLOOR, Law, fit, intervals
from t5repro.report.order_statistics import welch
from t5repro.report.rows import ScoreRow
from t5repro.report.titles import UNDEFINED, format_mean, metric_title, task_title

FEWEST = 3  # computes of a series
LAW_POINTS = 60  # of the line of the law
COMPUTE_LABEL = f"{OPERATIONS}, logarithmic"
# What may differ between the experiments of a series: the compute and what goes with it.
OF_COMPUTE: Mapping[str, Any] = {
    "seed": True,
    "experiments": True,
    "pretrain": {
        "from_experiment",
        "steps",
        "flops",
        "learning_rate",
        "checkpoint_every_steps",
        "keep_checkpoints",
        "log_every_steps",
        "validation_every_steps",
    },
    "finetune": {"start_from"},
}


@dataclass(frozen=True)
class TaskGain:
    """A task's scores over compute.

    Attributes:
        title: title of the task.
        metric: title of its first metric.
        scores: without pre-training, then at each compute; a mean with its standard deviation.
        worth_from: least compute from which on pre-training exceeds the spread, or a dash.
        chart: all trainings, their means and the mean without pre-training.
        legend: of the chart.
    """

    title: str
    metric: str
    scores: tuple[str, ...]
    worth_from: str
    chart: Markup
    legend: Markup


@dataclass(frozen=True)
class Scaling:
    """A series of experiments.

    Attributes:
        experiments: their names, by compute.
        operations: compute of each, in multiples of 10^15, as text.
        losses: held-out loss of each; a mean with its standard deviation.
        chart: losses and law; None without losses.
        legend: of the chart.
        law: the law in words; empty without one.
        gains: the tasks; empty without an experiment that is not pre-trained.
    """

    experiments: tuple[str, ...]
    operations: tuple[str, ...]
    losses: tuple[str, ...]
    chart: Markup | None
    legend: Markup | None
    law: str
    gains: tuple[TaskGain, ...]


def scalings(
    settings: Settings,
    experiments: Sequence[Experiment],
    rows: Sequence[ScoreRow],
    histories: Mapping[str, Path],
) -> list[Scaling]:
    """Return each series of experiments that differ in the compute of pre-training alone.

    Args:
        settings: settings of the run.
        experiments: the experiments of the page.
        rows: scores of all arms.
        histories: arm -> ``history.csv`` of its pre-training.

    Raises:
        ArtifactError: a history is missing or malformed.
    """
    series: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        series.setdefault(_key(settings, experiment), []).append(experiment)
    found: list[Scaling] = []
    for members in series.values():
        by_compute = sorted(
            (pretraining_flops(settings, entry.arms[0]) / PETA, entry.name, entry)
            for entry in members
        )
        trained = {compute: entry for compute, _, entry in by_compute if compute}
        untrained = next((entry for compute, _, entry in by_compute if not compute), None)
        if len(trained) >= FEWEST:
            name = f"scaling-{len(found) + 1}"
            found.append(_scaling(name, trained, untrained, rows, histories, settings.seed))
    return found


def _key(settings: Settings, experiment: Experiment) -> str:
    """Return what the experiments of a series have in common."""
    resolved = settings_of_experiment(settings, experiment.arms[0])
    values = resolved.model_dump(mode="json", exclude=dict(OF_COMPUTE))
    return json.dumps(values, sort_keys=True)


def _scaling(
    name: str,
    trained: Mapping[float, Experiment],
    untrained: Experiment | None,
    rows: Sequence[ScoreRow],
    histories: Mapping[str, Path],
    seed: int,
) -> Scaling:
    losses = {
        compute: [
            points[-1][1]
            for points in (read_history(histories[arm], "validation_loss") for arm in entry.arms)
            if points
        ]
        for compute, entry in trained.items()
    }
    measured = {compute: values for compute, values in losses.items() if values}
    law = fit(measured) if len(measured) >= FEWEST else None
    chart = _chart(name, measured, law) if measured else (None, None)
    return Scaling(
        experiments=tuple(entry.name for entry in trained.values()),
        operations=tuple(map(_compute, trained)),
        losses=tuple(_loss(values) if values else UNDEFINED for values in losses.values()),
        chart=chart[0],
        legend=chart[1],
        law=_words(law, measured, seed) if law else "",
        gains=tuple(_gains(name, trained, untrained, rows)) if untrained else (),
    )


def _words(law: Law, losses: Mapping[float, Sequence[float]], seed: int) -> str:
    """Return the law, its intervals and its largest error in words."""
    floor, exponent = intervals(losses, seed=seed)
    has_floor = len(losses) >= FEWEST_FOR_FLOOR
    parts = f"{law.floor:.3g} + " if has_floor else ""
    text = f"L = {parts}{law.scale:.3g} / C^{law.exponent:.3f}"
    if exponent:
        text += f"; 95 % intervals: exponent {exponent[0]:.3f} to {exponent[1]:.3f}"
        text += f", E {floor[0]:.3g} to {floor[1]:.3g}" if has_floor and floor else ""
    means = np.array([statistics.fmean(values) for values in losses.values()])
    error = np.abs(law.loss(np.array(list(losses))) / means - 1).max()
    return f"{text}; the means are within {100 * float(error):.1f} % of it"


def _chart(
    name: str, losses: Mapping[float, Sequence[float]], law: Law | None
) -> tuple[Markup, Markup]:
    """Return the chart of all trainings and the law, and its legend."""
    number = max(map(len, losses.values()))
    trainings = [
        Series(
            "trainings",
            tuple((compute, values[n]) for compute, values in losses.items() if n < len(values)),
            0,
        )
        for n in range(number)
    ]
    lines = list(trainings)
    if law:
        ends = np.log(min(losses)), np.log(max(losses))
        computes = np.exp(np.linspace(*ends, LAW_POINTS))
        points = zip(computes.tolist(), law.loss(computes).tolist(), strict=True)
        lines.append(Series("law", tuple(points), 1))
    chart = line_chart(
        name,
        lines,
        title="Loss on held-out text over compute",
        description="; ".join(
            f"{_compute(compute)}: {_loss(values)}" for compute, values in losses.items()
        ),
        x_label=COMPUTE_LABEL,
        y_label="cross-entropy of a target token (nats)",
        logarithmic=True,
    )
    return chart, legend([trainings[0], *lines[number:]])


def _gains(
    name: str, trained: Mapping[float, Experiment], untrained: Experiment, rows: Sequence[ScoreRow]
) -> list[TaskGain]:
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row.seed is not None and row.value is not None:
            values.setdefault((row.experiment, row.task, row.metric), []).append(row.value)
    gains = []
    for task, metric in primary_metric(rows, untrained.name).items():
        names = [untrained.name, *(entry.name for entry in trained.values())]
        scores = [values.get((experiment, task, metric), []) for experiment in names]
        if not all(scores):
            continue
        shown = tuple(format_mean(values, digits=2) for values in scores)
        title = f"{task_title(task)}, {metric_title(metric)}"
        chart, chart_legend = _gain_chart(f"{name}-{task}", title, list(trained), scores, shown)
        gains.append(
            TaskGain(
                title=task_title(task),
                metric=metric_title(metric),
                scores=shown,
                worth_from=_worth_from(list(trained), scores),
                chart=chart,
                legend=chart_legend,
            )
        )
    return gains


def _gain_chart(
    name: str,
    title: str,
    computes: Sequence[float],
    scores: Sequence[Sequence[float]],
    shown: Sequence[str],
) -> tuple[Markup, Markup]:
    """Return the chart of a task's scores over compute, and its legend.

    Args:
        name: prefix of ids, unique within the page.
        title: of task and metric.
        computes: operations, in multiples of 10^15, ascending.
        scores: of each training without pre-training, then at each compute.
        shown: the same as means.
    """
    untrained, *trained = scores
    trainings = [
        Series("a training", ((compute, value),), 0)
        for compute, values in zip(computes, trained, strict=True)
        for value in values
    ]
    means = [(x, statistics.fmean(values)) for x, values in zip(computes, trained, strict=True)]
    level = statistics.fmean(untrained)
    lines = [
        Series("mean of the seeds", tuple(means), 0),
        Series("no pre-training", ((computes[0], level), (computes[-1], level)), 1),
    ]
    places = ("no pre-training", *map(_compute, computes))
    chart = line_chart(
        name,
        [*trainings, *lines],
        title=f"{title} over compute",
        description="; ".join(map(": ".join, zip(places, shown, strict=True))),
        x_label=COMPUTE_LABEL,
        y_label=title,
        logarithmic=True,
    )
    return chart, legend(lines)


def _worth_from(computes: Sequence[float], scores: Sequence[Sequence[float]]) -> str:
    """Return the least compute from which on all scores exceed the first ones, or a dash."""
    first, *others = scores
    worth = UNDEFINED
    for compute, trained in reversed(list(zip(computes, others, strict=True))):
        difference = welch(trained, first)
        if difference.margin is None or difference.value <= difference.margin:
            break
        worth = _compute(compute)
    return worth


def _compute(value: float) -> str:
    return f"{value:,.3g}"


def _loss(values: Sequence[float]) -> str:
    return format_mean(values, digits=3)
