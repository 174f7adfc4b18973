"""Scores of the rows that are in the corpus, and of those that are not.

The parts also differ in difficulty, so a difference between them has more than one cause.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t5repro.evaluate.score import finite, score_rows
from t5repro.metrics.registry import score_names
from t5repro.report.bootstrap import Interval, resample, score_interval_text
from t5repro.tasks.task import Task

FEWEST_ROWS = 30  # of a score
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class SubsetScore:
    """A score of some rows.

    Attributes:
        rows: their number.
        value: in percent; None if the rows are fewer than `FEWEST_ROWS` or it is undefined.
        interval: of 95 %, over rows; None if the metric has none.
    """

    rows: int
    value: float | None
    interval: Interval | None

    def to_text(self) -> str:
        """Return the score as text."""
        if self.value is None:
            return f"no score of {self.rows} rows"
        interval = score_interval_text(self.interval)
        value = f"{self.value:z.1f}".replace("-", "−")
        return f"{value}{f' ({interval})' if interval else ''} of {self.rows} rows"


def subset_scores(
    task: Task, rows: Rows, dirty: Iterable[int], unchecked: Iterable[int]
) -> dict[str, SubsetScore]:
    """Return the first score of a task for all rows, and for the dirty, clean and unchecked ones.

    It is empty if the task has no metric or no row is dirty.

    Args:
        task: the task.
        rows: all rows with predictions.
        dirty: numbers of dirty rows.
        unchecked: numbers of unchecked rows.
    """
    metric, is_dirty = first_metric(task), set(dirty)
    if not metric or not is_dirty:
        return {}
    is_unchecked = set(unchecked)
    numbered = list(enumerate(rows))
    parts = {
        "all": list(rows),
        "clean": [row for n, row in numbered if n not in is_dirty | is_unchecked],
        "dirty": [row for n, row in numbered if n in is_dirty],
        "unchecked": [row for n, row in numbered if n in is_unchecked],
    }
    resamples = resample({task.name: task}, {task.name: parts}, seed=0)
    scores = {}
    for name, part in parts.items():
        if len(part) < FEWEST_ROWS:
            scores[name] = SubsetScore(len(part), None, None)
            continue
        value = finite(score_rows(task, part)).get(metric)
        interval = resamples.interval(task.name, metric, [name])
        scores[name] = SubsetScore(len(part), value, interval)
    return scores


def first_metric(task: Task) -> str:
    """Return the name of the first score of a task; empty if it has none."""
    return next(iter(score_names(task.metrics)), "")
