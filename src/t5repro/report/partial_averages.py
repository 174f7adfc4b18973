"""Averages of GLUE and SuperGLUE over the tasks that a run has.

A run without all tasks of a benchmark has no average of it (`tasks.averages`), yet the order of its
experiments can agree with the paper's averages. Only `ordering` uses these stand-ins.
"""

import statistics
from collections.abc import Mapping, Sequence

from t5repro.report.titles import AVERAGE
from t5repro.tasks.averages import BENCHMARKS

PARTIAL = "partial_average"  # the metric of these columns

Values = Mapping[tuple[str, str], float]  # (arm, column) -> score; a column is TASK.METRIC


def partial_averages(values: Values, arms: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return (arm, BENCHMARK.partial_average) -> score, for benchmarks without their average.

    A task enters if all arms have all its scores, and at least two tasks must; a task with several
    scores enters with their mean, as in the average.

    Args:
        values: the scores of all arms; undefined scores are absent.
        arms: the arms to compare.
    """
    averages: dict[tuple[str, str], float] = {}
    for benchmark, groups in BENCHMARKS.items():
        if any((arm, f"{benchmark}.{AVERAGE}") in values for arm in arms):
            continue
        tasks = [[f"{task}.{metric}" for task, metric in group] for group in groups]
        present = [
            columns
            for columns in tasks
            if all((arm, column) in values for arm in arms for column in columns)
        ]
        if len(present) < 2:
            continue
        for arm in arms:
            means = (
                statistics.fmean(values[arm, column] for column in columns) for columns in present
            )
            averages[arm, f"{benchmark}.{PARTIAL}"] = statistics.fmean(means)
    return averages
