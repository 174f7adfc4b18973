"""Titles of tasks and metrics, and the format of numbers, the same on page and terminal."""

import statistics
from collections.abc import Sequence

from t5repro.task_table import BENCHMARK_TITLES, facts_of

AVERAGE = "average"
UNDEFINED = "–"

METRIC_TITLES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "matthews_corrcoef": "Matthews",
    "f1": "F1",
    "mean_3class_f1": "mean F1",
    "pearson_corrcoef": "Pearson",
    "spearman_corrcoef": "Spearman",
    "em": "exact match",
    "exact_match": "exact match",
    "best_em": "exact match, best threshold",
    "best_f1": "F1, best threshold",
    "best_em_threshold": "threshold of the exact match",
    "best_f1_threshold": "threshold of F1",
    "has_answer_em": "exact match, with an answer",
    "has_answer_f1": "F1, with an answer",
    "no_answer_em": "exact match, without",
    "no_answer_f1": "F1, without",
    "bleu": "BLEU",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeLsum": "ROUGE-L",
    AVERAGE: "average",
}

AVERAGES_GROUP = "Benchmark averages"


def task_title(task: str) -> str:
    """Return the title of a task or a benchmark."""
    return BENCHMARK_TITLES.get(task) or facts_of(task).title


def metric_title(metric: str) -> str:
    """Return the title of a metric."""
    return METRIC_TITLES.get(metric, metric)


def task_group(task: str) -> str:
    """Return the heading of a task."""
    return facts_of(task).heading


def format_score(value: float | None) -> str:
    """Return a score with two decimals, or a dash if it is undefined."""
    return UNDEFINED if value is None else f"{value:.2f}".replace("-", "−")


def format_sd(value: float | None) -> str:
    """Return a standard deviation as the suffix of a mean; empty if there is none."""
    return "" if value is None else f" ±{value:.2f}"


def format_mean(values: Sequence[float], *, digits: int) -> str:
    """Return a mean, of several values with the standard deviation (n - 1)."""
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{deviation}".replace("-", "−")


def format_difference(value: float) -> str:
    """Return a difference with its sign and two decimals."""
    text = f"{value:+.2f}".replace("-", "−")
    return "±0.00" if text[1:] == "0.00" else text  # neither +0.00 nor −0.00
