"""The best kept checkpoint for each group of tasks (paper section 2.4).

A group is the columns of a benchmark that enter its average together, such as both numbers of MRPC
or both parts of MNLI, or a task with all its metrics. Its best step has the highest mean of the
group's metrics; of equal ones the first. All numbers of the group are those of that step, and the
benchmarks' averages are means over the groups' own best steps.

Source: released code, ``metric_group_max``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from t5repro.tasks.averages import BENCHMARKS, Column

UNDEFINED = -1e9  # what counts for a step whose mean is not defined
RULE = "highest mean of the group's metrics; the first of equal steps; undefined is the lowest"
BOOTSTRAP = "_bootstrap"  # ROUGE as a median over resampled rows: the plain one decides

Metrics = Mapping[str, Mapping[str, float | None]]  # task -> metric -> value


def groups_of(metrics: Metrics) -> dict[str, tuple[Column, ...]]:
    """Return the groups of the tasks of a run: name -> task and metric of each column."""
    found: dict[str, tuple[Column, ...]] = {}
    grouped: set[str] = set()
    for groups in BENCHMARKS.values():
        for columns in groups:
            own = tuple(column for column in columns if column[0] in metrics)
            if own:
                tasks = list(dict.fromkeys(task for task, _ in own))
                found["+".join(tasks)] = own
                grouped.update(tasks)
    for task, values in metrics.items():
        columns = tuple((task, name) for name in values if not name.endswith(BOOTSTRAP))
        if task not in grouped and columns:
            found[task] = columns
    return found


def mean_of(columns: Sequence[Column], metrics: Metrics) -> float | None:
    """Return the mean of a group's columns; None if one is not defined."""
    values = [metrics.get(task, {}).get(name) for task, name in columns]
    known = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(known) / len(known) if len(known) == len(values) else None


def best_checkpoints(by_step: Mapping[int, Metrics]) -> dict[str, dict[str, Any]]:
    """Return for each group its best step and what the choice was made from.

    Args:
        by_step: step -> task -> metric -> value.

    Returns:
        Group -> ``step``, ``metrics`` (task -> metric -> value at that step), ``columns`` and
        ``means`` (step -> mean of the columns).
    """
    steps = sorted(by_step)
    chosen = {}
    for group, columns in groups_of(by_step[steps[-1]]).items():
        means = {step: mean_of(columns, by_step[step]) for step in steps}
        best = max(steps, key=lambda step: _rank(means[step]))  # the first of equal ones
        tasks = dict.fromkeys(task for task, _ in columns)
        chosen[group] = {
            "step": best,
            "metrics": {task: dict(by_step[best][task]) for task in tasks},
            "columns": [f"{task}/{name}" for task, name in columns],
            "means": {str(step): mean for step, mean in means.items()},
        }
    return chosen


def _rank(mean: float | None) -> float:
    return UNDEFINED if mean is None else mean


def best_metrics(chosen: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Return the metrics of every task at its group's best step."""
    return {
        task: dict(metrics) for item in chosen.values() for task, metrics in item["metrics"].items()
    }
