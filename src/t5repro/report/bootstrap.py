"""Confidence intervals of scores by the bootstrap over rows.

The rows of a task are resampled with replacement `RESAMPLES` times; a sample has the size of the
task. All arms get the same draws, so both sides of a difference are scored on the same rows. An
interval says how far a score would move with other rows of the same kind; the spread over seeds
says how far it moves with another training.

A row is scored once for all resamples: BLEU sums counts of n-grams over rows, ROUGE is a mean over
rows. The metrics of grouped rows have no interval here.

Source: Efron (1979); percentile intervals. Koehn (2004) for BLEU.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from t5repro.array_types import Float64, Int32
from t5repro.metrics.bleu import bleu_of_sums, bleu_rows
from t5repro.metrics.question_answering import squad
from t5repro.metrics.rouge import rouge_rows
from t5repro.metrics.squad_v2 import squad_v2
from t5repro.randomness import stream
from t5repro.tasks.task import ScoredRow, Task

RESAMPLES = 1000
PERCENTILES = (2.5, 97.5)  # of a 95 % interval
CHUNK_ROWS = 1_000_000  # drawn at a time for a correlation; about 50 MB

# Metrics with exact match and F1 of a row.
OF_ANSWERS: Mapping[str, Callable[..., dict[str, float]]] = {"squad": squad, "squad_v2": squad_v2}

Interval = tuple[float, float]


@dataclass(frozen=True)
class Resamples:
    """Scores of resampled rows: (task, metric, arm) -> `RESAMPLES` percentages."""

    scores: dict[tuple[str, str, str], Float64] = field(default_factory=dict)

    def interval(self, task: str, metric: str, arms: Sequence[str]) -> Interval | None:
        """Return the interval of the mean over arms; None if an arm has none or it is infinite."""
        mean = self._mean(task, metric, arms)
        return None if mean is None else percentile_interval(mean)

    def difference(
        self, task: str, metric: str, first: Sequence[str], second: Sequence[str]
    ) -> Interval | None:
        """Return the interval of the mean over some arms minus that over others, or None."""
        minuend, subtrahend = (self._mean(task, metric, arms) for arms in (first, second))
        if minuend is None or subtrahend is None:
            return None
        return percentile_interval(minuend - subtrahend)

    def _mean(self, task: str, metric: str, arms: Sequence[str]) -> Float64 | None:
        scores = [self.scores.get((task, metric, arm)) for arm in arms]
        complete = [values for values in scores if values is not None]
        if not complete or len(complete) < len(scores):
            return None
        return np.asarray(sum(complete[1:], complete[0]) / len(complete))


def percentile_interval(values: Float64) -> Interval | None:
    """Return the 95 % interval of resampled values; None if one of them is not finite."""
    if not np.isfinite(values).all():
        return None
    low, high = np.percentile(values, PERCENTILES)
    return float(low), float(high)


def resample(
    tasks: Mapping[str, Task], rows: Mapping[str, Mapping[str, Sequence[ScoredRow]]], *, seed: int
) -> Resamples:
    """Return the scores of resampled rows of every task and arm.

    Args:
        tasks: name -> task.
        rows: task -> arm -> rows with predictions.
        seed: seed of the run.
    """
    resamples = Resamples()
    for name, rows_of_arms in rows.items():
        for arm, arm_rows in rows_of_arms.items():
            labelled = [row for row in arm_rows if row["answer"] is not None]
            # A generator of its own, so that arms with equally many rows have equal draws.
            generator = stream(seed, "report", "bootstrap", name)
            if labelled:
                draws = generator.integers(
                    len(labelled), size=(RESAMPLES, len(labelled)), dtype=np.int32
                )
                for metric, scores in _resampled(tasks[name], labelled, draws).items():
                    resamples.scores[name, metric, arm] = scores
    return resamples


def _resampled(task: Task, rows: Sequence[ScoredRow], draws: Int32) -> dict[str, Float64]:
    """Return metric -> its score in every resample, in percent."""
    answers = [row["answer"] for row in rows]
    predictions = [task.read_prediction(row["prediction"], row) for row in rows]
    scores: dict[str, Float64] = {}
    if "accuracy" in task.metrics:
        scores["accuracy"] = _means(
            [100.0 * (a == p) for a, p in zip(answers, predictions, strict=True)], draws
        )
    for metric, compute in OF_ANSWERS.items():
        if metric in task.metrics:
            row_scores = [compute([a], [p]) for a, p in zip(answers, predictions, strict=True)]
            for name in ("em", "f1"):
                scores[name] = _means([entry[name] for entry in row_scores], draws)
    if "rouge" in task.metrics:
        for name, values in rouge_rows(answers, predictions).items():
            scores[name] = _means(values, draws)
    if "bleu" in task.metrics:
        # BLEU is a function of sums over rows, so resamples need no text: only their rows' counts.
        counts_by_row = bleu_rows(answers, predictions)
        sums = [counts_by_row[draw].sum(axis=0) for draw in draws]
        scores["bleu"] = np.asarray([bleu_of_sums(counts) for counts in sums])
    if "pearson_corrcoef" in task.metrics:
        scores["pearson_corrcoef"] = _correlations(answers, predictions, draws)
    if "spearman_corrcoef" in task.metrics:
        scores["spearman_corrcoef"] = _correlations(answers, predictions, draws, uses_ranks=True)
    if task.labels:
        counts = _confusions(answers, predictions, len(task.labels), draws)
        for name, statistic in OF_CONFUSION.items():
            if name in task.metrics:
                scores[name] = 100 * statistic(counts)
    return scores


def _means(percentages: Sequence[float] | Float64, draws: Int32) -> Float64:
    # One draw at a time: all at once would take gigabytes for the largest tasks.
    numbers = np.asarray(percentages, np.float64)
    return np.asarray([numbers[draw].mean() for draw in draws])


def _confusions(
    answers: Sequence[int], predictions: Sequence[int], labels: int, draws: Int32
) -> Float64:
    """Return counts (resample, answer, prediction); the last class holds invalid predictions."""
    classes = labels + 1
    cells = np.asarray(answers) * classes + np.asarray(predictions) % classes  # -1 is the last
    # A confusion matrix is enough for every metric of labels, and is small.
    counts = [np.bincount(cells[draw], minlength=classes * classes) for draw in draws]
    return np.asarray(counts, np.float64).reshape(-1, classes, classes)


def _ratio(numerator: Float64, denominator: Float64) -> Float64:
    """Return the quotient, 0 where it is undefined."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _f1_of_label(counts: Float64, label: int) -> Float64:
    right = counts[:, label, label]
    return _ratio(2 * right, counts[:, label, :].sum(axis=1) + counts[:, :, label].sum(axis=1))


def _f1(counts: Float64) -> Float64:
    # An invalid prediction is the wrong class of its row, so for label 0 it is a label 1.
    binary = counts.copy()
    binary[:, 0, 1] += counts[:, 0, 2]
    return _f1_of_label(binary, 1)


def _macro_f1(counts: Float64) -> Float64:
    labels = range(counts.shape[1] - 1)
    return np.asarray(sum(_f1_of_label(counts, label) for label in labels) / len(labels))


def _macro_f1_of_present(counts: Float64) -> Float64:
    labels = range(counts.shape[1] - 1)
    occurs = counts.sum(axis=1) + counts.sum(axis=2) > 0
    present = occurs[:, : len(labels)].sum(axis=1)  # the last class is that of invalid predictions
    return _ratio(np.asarray(sum(_f1_of_label(counts, label) for label in labels)), present)


def _matthews(counts: Float64) -> Float64:
    rows = counts.sum(axis=(1, 2))
    right = np.trace(counts, axis1=1, axis2=2)
    answered, predicted = counts.sum(axis=2), counts.sum(axis=1)
    covariance = right * rows - (answered * predicted).sum(axis=1)
    # Gorodkin's correlation of a confusion matrix, which scikit-learn computes; 0 if one side is
    # constant.
    variances = (rows**2 - (answered**2).sum(axis=1)) * (rows**2 - (predicted**2).sum(axis=1))
    return _ratio(covariance, np.sqrt(variances))


OF_CONFUSION = {
    "f1": _f1,
    "macro_f1": _macro_f1_of_present,
    "mean_3class_f1": _macro_f1,
    "matthews_corrcoef": _matthews,
}


def _correlations(
    answers: Sequence[float],
    predictions: Sequence[float],
    draws: Int32,
    *,
    uses_ranks: bool = False,
) -> Float64:
    """Return the correlation in every resample; NaN where numbers are too large for a variance."""
    sides = [np.asarray(values, np.float64) for values in (answers, predictions)]
    resampled = _ranks if uses_ranks else np.take
    # All resamples at once would take gigabytes for large tasks.
    chunk = max(1, CHUNK_ROWS // len(answers))
    chunks = [
        _correlation([resampled(side, draws[first : first + chunk]) for side in sides])
        for first in range(0, len(draws), chunk)
    ]
    return np.concatenate(chunks)


def _ranks(values: Float64, draws: Int32) -> Float64:
    """Return the ranks of the drawn values of each resample; equal values share their mean rank.

    `scipy.stats.rankdata` gives the same ranks, but its import would take a quarter of the time of
    `t5repro verify`.
    """
    # Counting equal values replaces sorting every resample: ties get the mean of their ranks.
    _, value_numbers = np.unique(values, return_inverse=True)
    ranks = np.empty(draws.shape)
    for number, draw in enumerate(draws):
        counts = np.bincount(value_numbers[draw], minlength=len(values))
        ranks[number] = (np.cumsum(counts) - (counts - 1) / 2)[value_numbers[draw]]
    return ranks


def _correlation(sides: Sequence[Float64]) -> Float64:
    """Return the correlation in percent of each row of two arrays (resample, row)."""
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = (side - side.mean(axis=1, keepdims=True) for side in sides)
        variances = (first * first).sum(axis=1) * (second * second).sum(axis=1)
        correlations = 100 * _ratio((first * second).sum(axis=1), np.sqrt(variances))
    return np.where(np.isfinite(variances), correlations, np.nan)


def score_interval_text(interval: tuple[float | None, float | None] | None) -> str:
    """Return an interval as ``72.1 to 79.4``; empty if there is none."""
    bounds = [bound for bound in interval or () if bound is not None]
    return " to ".join(f"{bound:z.1f}".replace("-", "−") for bound in bounds)
