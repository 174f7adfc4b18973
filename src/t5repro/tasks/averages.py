"""The averages of GLUE and SuperGLUE in the paper's tables.

A benchmark's score is the mean over its tasks; a task with several scores enters with their mean.
WNLI, the diagnostic sets and DPR do not enter.
"""

from collections.abc import Mapping

from t5repro.task_groups import ANSWERED_AS
from t5repro.task_table import BENCHMARK_TITLES, TASKS

Column = tuple[str, str]  # task, score


def _groups_of(benchmark: str) -> tuple[tuple[Column, ...], ...]:
    """Return the scores that enter an average together: of a task, or of both parts of MNLI."""
    groups: dict[str, tuple[Column, ...]] = {}
    for task in TASKS:
        if task.benchmark == benchmark and task.scores:
            trained = ANSWERED_AS.get(task.name, (task.name,))[0]
            columns = tuple((task.name, score) for score in task.scores)
            groups[trained] = groups.get(trained, ()) + columns
    return tuple(groups.values())


BENCHMARKS = {benchmark: _groups_of(benchmark) for benchmark in BENCHMARK_TITLES}


def benchmark_averages(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    """Return the average of each benchmark; None if one of its scores is missing.

    Args:
        scores: task -> score -> percentage.

    Source: released code, `compute_avg_glue`.
    """
    return {name: _average(groups, scores) for name, groups in BENCHMARKS.items()}


def _average(
    groups: tuple[tuple[Column, ...], ...], scores: Mapping[str, Mapping[str, float]]
) -> float | None:
    means: list[float] = []
    for group in groups:
        values = [scores.get(task, {}).get(column) for task, column in group]
        present = [value for value in values if value is not None]
        if len(present) < len(group):
            return None
        means.append(sum(present) / len(present))
    return sum(means) / len(means)
