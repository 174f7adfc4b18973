"""Loss and scores over the compute of pre-training, of experiments that differ in it alone.

- The law of the loss on held-out text: L = E + A / C^b nats per target token at C operations. A and
  b are least squares of log(L - E) on log(C) over the means of the trainings, E is the value from 0
  to the lowest mean with the smallest squares of log(L). With less than `FEWEST_FOR_FLOOR` computes
  E is 0. The 95 % intervals draw the trainings of every compute with replacement.
- For each task the compute from which on pre-training is worth something: there and at all larger
  ones the difference to no pre-training exceeds Welch's interval (`order_statistics`).

Source: Kaplan et al. (2020), equation 1.1; Hoffmann et al. (2022), section 3.3, for E.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from t5repro.array_types import Float64
from t5repro.config.experiments import pretraining_flops, settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.randomness import stream
from t5repro.report.bootstrap import RESAMPLES, percentile_interval
from t5repro.report.charts import Series, legend, line_chart
from t5repro.report.differences import primary_metric
from t5repro.report.experiments import NOT_OF_A_GROUP, Experiment
from t5repro.report.loss_curves import OPERATIONS, PETA, read_history
from t5repro.report.order_statistics import welch
from t5repro.report.rows import ScoreRow
from t5repro.report.titles import UNDEFINED, format_mean, metric_title, task_title

FEWEST = 3  # computes of a series
FEWEST_FOR_FLOOR = 5  # computes from which on E is fitted
FLOORS = 40  # values of E that are tried in a round
ROUNDS = 4  # each between the neighbours of the best value of the one before it
LAW_POINTS = 60  # of the line of the law
# What may differ between the experiments of a series: the compute and what goes with it.
OF_COMPUTE = frozenset(
    {
        "steps",
        "flops",
        "learning_rate",
        "checkpoint_every_steps",
        "keep_checkpoints",
        "log_every_steps",
        "validation_every_steps",
    }
)


@dataclass(frozen=True)
class Law:
    """L = floor + scale / C^exponent; C in 10^15 operations, L in nats per target token."""

    floor: float
    scale: float
    exponent: float

    def loss(self, operations: Float64) -> Float64:
        """Return the loss at a number of operations, in multiples of 10^15."""
        return np.asarray(self.floor + self.scale * operations**-self.exponent)


@dataclass(frozen=True)
class TaskGain:
    """A task's scores over compute.

    Attributes:
        title: title of the task.
        metric: title of its first metric.
        scores: without pre-training, then at each compute; a mean with its standard deviation.
        worth_from: least compute from which on pre-training exceeds the spread, or a dash.
    """

    title: str
    metric: str
    scores: tuple[str, ...]
    worth_from: str


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
    found = []
    for members in series.values():
        by_compute = sorted(
            (pretraining_flops(settings, entry.arms[0]) / PETA, entry.name, entry)
            for entry in members
        )
        trained = {compute: entry for compute, _, entry in by_compute if compute}
        untrained = next((entry for compute, _, entry in by_compute if not compute), None)
        if len(trained) >= FEWEST:
            found.append(_scaling(trained, untrained, rows, histories, settings.seed))
    return found


def _key(settings: Settings, experiment: Experiment) -> str:
    """Return what the experiments of a series have in common."""
    resolved = settings_of_experiment(settings, experiment.arms[0])
    values = resolved.model_dump(mode="json", exclude=dict(NOT_OF_A_GROUP))
    values["pretrain"] = {
        name: value for name, value in values["pretrain"].items() if name not in OF_COMPUTE
    }
    return json.dumps(values, sort_keys=True)


def _scaling(
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
    chart = _chart(measured, law) if measured else (None, None)
    return Scaling(
        experiments=tuple(entry.name for entry in trained.values()),
        operations=tuple(map(_compute, trained)),
        losses=tuple(_loss(values) if values else UNDEFINED for values in losses.values()),
        chart=chart[0],
        legend=chart[1],
        law=_words(law, measured, seed) if law else "",
        gains=tuple(_gains(trained, untrained, rows)) if untrained else (),
    )


def fit(losses: Mapping[float, Sequence[float]]) -> Law:
    """Return the law of the means at each compute, see the module.

    Args:
        losses: operations, in multiples of 10^15 -> loss of each training; at least two computes.
    """
    means = np.array([[statistics.fmean(values) for values in losses.values()]])
    floor, scale, exponent = (float(values[0]) for values in _fits(np.array(list(losses)), means))
    return Law(floor, scale, exponent)


def _fits(computes: Float64, means: Float64) -> tuple[Float64, Float64, Float64]:
    """Return floor, scale and exponent of each row of means, (rows, computes)."""
    low, high = np.zeros(len(means)), means.min(axis=1)
    if len(computes) < FEWEST_FOR_FLOOR:
        _, scale, exponent = _fits_above(low, computes, means)
        return low, scale, exponent
    row = np.arange(len(means))
    for _ in range(ROUNDS):
        # The highest one is left out: there a loss less the floor may be 0.
        floors = low + (high - low) * np.arange(FLOORS)[:, np.newaxis] / FLOORS
        errors = np.stack([_fits_above(floor, computes, means)[0] for floor in floors])
        best, width = floors[errors.argmin(axis=0), row], (high - low) / FLOORS
        low, high = np.maximum(best - width, low), np.minimum(best + width, high)
    _, scale, exponent = _fits_above(best, computes, means)
    return best, scale, exponent


def _fits_above(
    floors: Float64, computes: Float64, means: Float64
) -> tuple[Float64, Float64, Float64]:
    """Return squared error of log(L), scale and exponent of each row of means above its floor."""
    floors = floors[:, np.newaxis]
    x = np.log(computes) - np.log(computes).mean()
    y = np.log(means - floors)
    slopes = (y * x).sum(axis=1) / (x * x).sum()
    fitted = y.mean(axis=1, keepdims=True) + slopes[:, np.newaxis] * x
    # Judged by the loss itself: its logarithm less E would reward an E near the lowest mean.
    errors = ((np.log(np.exp(fitted) + floors) - np.log(means)) ** 2).sum(axis=1)
    return errors, np.exp(y.mean(axis=1) - slopes * np.log(computes).mean()), -slopes


def intervals(
    losses: Mapping[float, Sequence[float]], *, seed: int
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Return the 95 % intervals of floor and exponent; None if a compute has one training.

    Args:
        losses: see `fit`.
        seed: the run's seed.
    """
    if any(len(values) < 2 for values in losses.values()):
        return None, None
    draws = stream(seed, "report", "scaling")
    means = np.stack(
        [
            draws.choice(np.array(values), (RESAMPLES, len(values))).mean(axis=1)
            for values in losses.values()
        ],
        axis=1,
    )
    floors, _, exponents = _fits(np.array(list(losses)), means)
    return percentile_interval(floors), percentile_interval(exponents)


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


def _chart(losses: Mapping[float, Sequence[float]], law: Law | None) -> tuple[Markup, Markup]:
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
        "scaling",
        lines,
        title="Loss on held-out text over compute",
        description="; ".join(
            f"{_compute(compute)}: {_loss(values)}" for compute, values in losses.items()
        ),
        x_label=f"{OPERATIONS}, logarithmic",
        y_label="cross-entropy of a target token (nats)",
        logarithmic=True,
    )
    return chart, legend([trainings[0], *lines[number:]])


def _gains(
    trained: Mapping[float, Experiment], untrained: Experiment, rows: Sequence[ScoreRow]
) -> list[TaskGain]:
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row.seed is not None and row.value is not None:
            values.setdefault((row.experiment, row.task, row.metric), []).append(row.value)
    gains = []
    for task, metric in primary_metric(rows, untrained.name).items():
        names = [untrained.name, *(entry.name for entry in trained.values())]
        scores = [values.get((name, task, metric), []) for name in names]
        if not all(scores):
            continue
        gains.append(
            TaskGain(
                title=task_title(task),
                metric=metric_title(metric),
                scores=tuple(format_mean(values, digits=2) for values in scores),
                worth_from=_worth_from(list(trained), scores),
            )
        )
    return gains


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
