"""Trivial answers: the most frequent label, the mean, a copy of the input."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from t5repro.tasks.task import Baseline, Row, ScoredRow


def most_frequent(
    rows: Sequence[ScoredRow],
    train_rows: Sequence[Row],
    *,
    label: Callable[[Any], Any] = lambda answer: answer,
) -> list[Any]:
    """Give every row the most frequent training answer; of several, the smallest.

    If no training row has an answer (the task is only evaluated), the most frequent answer of the
    scored rows is used: no constant can score higher.

    Args:
        rows: rows to score.
        train_rows: training examples.
        label: answer -> its label.
    """
    labelled = [row for row in train_rows if row["answer"] is not None] or rows
    if not labelled:
        return []
    counts = Counter(label(row["answer"]) for row in labelled)
    majority = min(counts, key=lambda answer: (-counts[answer], answer))
    return [majority] * len(rows)


def most_frequent_scored(rows: Sequence[ScoredRow], train_rows: Sequence[Row]) -> list[Any]:
    """Give every row the most frequent answer of the scored rows.

    For tasks with training rows of only one label.
    """
    return most_frequent(rows, [])


def mean_answer(rows: Sequence[ScoredRow], train_rows: Sequence[Row]) -> list[Any]:
    """Give every row the mean training answer; its correlation with anything is 0.0."""
    answers = [float(row["answer"]) for row in train_rows if row["answer"] is not None]
    return [sum(answers) / len(answers) if answers else 0.0] * len(rows)


def copy_after(rows: Sequence[ScoredRow], train_rows: Sequence[Row], *, marker: str) -> list[Any]:
    """Repeat the text after the first `marker` of each input."""
    return [row["inputs"].partition(marker)[2] for row in rows]


MAJORITY = Baseline("majority", most_frequent)
MAJORITY_OF_SCORED = Baseline("majority", most_frequent_scored)
MEAN = Baseline("majority", mean_answer)


def copy_baseline(marker: str) -> Baseline:
    """Return the baseline that repeats the text after the first `marker` of each input."""
    return Baseline("copy", partial(copy_after, marker=marker))
