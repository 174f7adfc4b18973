"""The best kept checkpoint of each group of tasks (paper section 2.4).

A group is the columns of a benchmark that enter its average together, such as both scores of MRPC
or both parts of MNLI, or one task with all its scores. Its best step has the highest mean of the
group's scores; among equal steps, the first. All scores of the group come from that step, and the
benchmarks' averages are means over the groups' own best steps.

Source: released code, ``metric_group_max``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from t5repro.tasks.averages import BENCHMARKS, Column

UNDEFINED = -1e9  # rank of a step whose mean is undefined
RULE = "highest mean of the group's metrics; the first of equal steps; undefined is the lowest"
# ROUGE as a median over resampled rows, of which the mean selects the checkpoint; SQuAD 2.0's odds.
NOT_COMPARED = ("_bootstrap", "_threshold")

Metrics = Mapping[str, Mapping[str, float | None]]  # task -> score -> value


def groups_of(metrics: Metrics) -> dict[str, tuple[Column, ...]]:
    """Return the groups of the tasks of a run: name -> task and score of each column."""
    groups: dict[str, tuple[Column, ...]] = {}
    benchmark_tasks: set[str] = set()
    for benchmark_groups in BENCHMARKS.values():
        for group in benchmark_groups:
            # A run may lack a part of a group, such as the mismatched part of MNLI.
            columns = tuple(column for column in group if column[0] in metrics)
            if columns:
                tasks = list(dict.fromkeys(task for task, _ in columns))
                groups["+".join(tasks)] = columns
                benchmark_tasks.update(tasks)
    for task, values in metrics.items():
        columns = tuple((task, name) for name in values if not name.endswith(NOT_COMPARED))
        if task not in benchmark_tasks and columns:
            groups[task] = columns
    return groups


def mean_of(columns: Sequence[Column], metrics: Metrics) -> float | None:
    """Return the mean of a group's columns; None if one is undefined."""
    values = [metrics.get(task, {}).get(name) for task, name in columns]
    defined = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(defined) / len(defined) if len(defined) == len(values) else None


def best_checkpoints(metrics_of_step: Mapping[int, Metrics]) -> dict[str, dict[str, Any]]:
    """Return the best step of each group with the values that decided it.

    Args:
        metrics_of_step: step -> task -> score -> value. The last step has all tasks, an earlier
            one the tasks that kept a checkpoint there.

    Returns:
        Group -> ``step``, ``metrics`` (task -> score -> value at that step), ``columns`` and
        ``means`` (step -> mean of the columns).
    """
    steps = sorted(metrics_of_step)
    best: dict[str, dict[str, Any]] = {}
    for group, columns in groups_of(metrics_of_step[steps[-1]]).items():
        tasks = dict.fromkeys(task for task, _ in columns)
        means = {
            step: mean_of(columns, metrics_of_step[step])
            for step in steps
            if tasks.keys() & metrics_of_step[step]
        }
        best_step = max(means, key=lambda step: _rank(means[step]))  # of equal steps, the first
        best[group] = {
            "step": best_step,
            "metrics": {task: dict(metrics_of_step[best_step][task]) for task in tasks},
            "columns": [f"{task}/{name}" for task, name in columns],
            "means": {str(step): mean for step, mean in means.items()},
        }
    return best


def _rank(mean: float | None) -> float:
    return UNDEFINED if mean is None else mean


def best_metrics(best: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Return the scores of every task at its group's best step."""
    return {
        task: dict(metrics) for entry in best.values() for task, metrics in entry["metrics"].items()
    }
