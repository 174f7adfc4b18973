"""The first experiment minus the second: by task and on average, with the spread over seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t5repro.report.rows import ScoreRow, experiment_rows
from t5repro.report.titles import AVERAGE, format_difference, format_sd

Key = tuple[str, str]  # task and metric


@dataclass(frozen=True)
class Difference:
    """First experiment minus second.

    Attributes:
        value: difference of the means over seeds.
        sd: standard deviation (n - 1) of the differences of equal seeds; None if the experiments do
            not have the same seeds, or only one.
    """

    value: float
    sd: float | None

    def __str__(self) -> str:
        return format_difference(self.value) + format_sd(self.sd)


@dataclass(frozen=True)
class MeanDifference:
    """First experiment minus second, over the first metric of each task that both have.

    Attributes:
        mean: mean over the tasks; its spread is over the means of equal seeds.
        better: number of tasks on which the first experiment is better.
        worse: number of tasks on which it is worse.
        equal: number of tasks with equal scores.
    """

    mean: Difference
    better: int
    worse: int
    equal: int


def differences(rows: Sequence[ScoreRow], first: str, second: str) -> dict[Key, Difference]:
    """Return (task, metric) -> difference of two experiments, of every number that both have.

    Args:
        rows: scores of all arms, and means over seeds.
        first: name of an experiment.
        second: name of the experiment to subtract.
    """
    means = {
        name: {
            (row.task, row.metric): row.value
            for row in experiment_rows(rows)
            if row.experiment == name and row.value is not None
        }
        for name in (first, second)
    }
    by_seed = _by_seed(rows, first), _by_seed(rows, second)
    return {
        key: Difference(value - means[second][key], _spread(_seed_differences(*by_seed, [key])))
        for key, value in means[first].items()
        if key in means[second]
    }


def mean_difference(rows: Sequence[ScoreRow], first: str, second: str) -> MeanDifference | None:
    """Return the mean difference over tasks; None if the experiments have no common score."""
    primary = dict.fromkeys(primary_metric(rows, first).items())
    by_task = {
        key: difference
        for key, difference in differences(rows, first, second).items()
        if key in primary
    }
    if not by_task:
        return None
    values = [difference.value for difference in by_task.values()]
    seeds = _seed_differences(_by_seed(rows, first), _by_seed(rows, second), list(by_task))
    return MeanDifference(
        mean=Difference(statistics.fmean(values), _spread(seeds)),
        better=sum(value > 0 for value in values),
        worse=sum(value < 0 for value in values),
        equal=sum(value == 0 for value in values),
    )


def primary_metric(rows: Sequence[ScoreRow], experiment: str) -> dict[str, str]:
    """Return task -> its first metric."""
    metrics: dict[str, str] = {}
    for row in rows:
        if row.experiment == experiment and row.metric != AVERAGE:
            metrics.setdefault(row.task, row.metric)
    return metrics


def _by_seed(rows: Sequence[ScoreRow], experiment: str) -> dict[int, dict[Key, float]]:
    """Return seed -> the scores of the arm with this seed."""
    arms: dict[int, dict[Key, float]] = {}
    for row in rows:
        if row.experiment == experiment and row.seed is not None and row.value is not None:
            arms.setdefault(row.seed, {})[row.task, row.metric] = row.value
    return arms


def _seed_differences(
    first: Mapping[int, Mapping[Key, float]],
    second: Mapping[int, Mapping[Key, float]],
    keys: Sequence[Key],
) -> list[float]:
    """Return the mean difference over `keys` for each seed; nothing if the seeds differ."""
    # Equal seeds draw equal initial weights and orders of rows, so they are compared as pairs.
    if first.keys() != second.keys():
        return []
    return [
        statistics.fmean(first[seed][key] - second[seed][key] for key in keys) for seed in first
    ]


def _spread(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
