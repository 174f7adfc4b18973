"""Every metric by name; tasks and run files (`tasks.own.<task>.metrics`) use these names.

To add a metric, write its function in this package and add an entry to `METRICS`. To offer it to
the tasks of run files, add its name to `OwnMetric` in `config.sections.tasks` and to the list there
of the answers that it fits.

Tasks hold names and not functions: only `evaluate.score` imports this package, so an edited metric
reruns the rules `evaluate_score` and `report` and no other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from t5repro.errors import SettingsError, nearest
from t5repro.metrics.bleu import bleu, bleu_signature
from t5repro.metrics.classification import (
    accuracy,
    f1_with_invalid,
    macro_f1,
    macro_f1_of_present,
    matthews_correlation,
    pearson_correlation,
    spearman_correlation,
)
from t5repro.metrics.entities import entity_f1
from t5repro.metrics.question_answering import multirc, record, squad
from t5repro.metrics.rouge import BOOTSTRAP_KEYS, ROUGE_KEYS, rouge, rouge_caution, rouge_signature
from t5repro.metrics.squad_v2 import squad_v2

SQUAD_V2_SCORES = (
    *("em", "f1", "best_em", "best_f1", "best_em_threshold", "best_f1_threshold"),
    *("has_answer_em", "has_answer_f1", "no_answer_em", "no_answer_f1"),
)


@dataclass(frozen=True)
class Metric:
    """A metric and the scores that it reports.

    Attributes:
        compute: answers and predictions of all rows to a percentage, or to one percentage for each
            name of `scores`.
        scores: names of the scores in the order of a report's columns, which `compute` may leave
            out; if empty, the only score has the metric's name.
        per_class: whether `compute` takes the number of classes as ``classes``.
        signature: returns library, version and options, if they decide the value.
        caution: returns the end of the signature for answers that the metric does not suit.
    """

    compute: Callable[..., float | dict[str, float]]
    scores: tuple[str, ...] = ()
    per_class: bool = False
    signature: Callable[[], str] | None = None
    caution: Callable[[Sequence[Any]], str] | None = None


METRICS: dict[str, Metric] = {
    "accuracy": Metric(accuracy),
    "f1": Metric(f1_with_invalid),
    "macro_f1": Metric(macro_f1_of_present, per_class=True),
    "mean_3class_f1": Metric(partial(macro_f1, classes=3)),
    "matthews_corrcoef": Metric(matthews_correlation),
    "pearson_corrcoef": Metric(pearson_correlation),
    "spearman_corrcoef": Metric(spearman_correlation),
    "multirc": Metric(multirc, ("f1", "exact_match")),
    "entity_f1": Metric(entity_f1, ("f1", "precision", "recall")),
    "squad": Metric(squad, ("em", "f1")),
    "squad_v2": Metric(squad_v2, SQUAD_V2_SCORES),
    "record": Metric(record, ("em", "f1")),
    "bleu": Metric(bleu, signature=bleu_signature),
    "rouge": Metric(
        rouge, (*ROUGE_KEYS, *BOOTSTRAP_KEYS), signature=rouge_signature, caution=rouge_caution
    ),
}


def metric_named(name: str) -> Metric:
    """Return a metric.

    Raises:
        SettingsError: no metric has this name; the message suggests the nearest one.
    """
    if name not in METRICS:
        raise SettingsError(
            f"unknown metric {name!r}{nearest(name, METRICS)}; metrics are {sorted(METRICS)}"
        )
    return METRICS[name]


def score_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all scores of some metrics, in the order of a report's columns."""
    return tuple(score for name in names for score in metric_named(name).scores or (name,))


def compute_scores(
    names: Sequence[str], answers: list[Any], predictions: list[Any], *, classes: int
) -> dict[str, float]:
    """Return the scores of some metrics, in percent; empty without rows.

    Args:
        names: names of metrics.
        answers: one answer per row, as the task's examples hold it.
        predictions: one prediction per row, as the task's `read_prediction` returns it.
        classes: number of labels of the task; 0 if it has none.

    Raises:
        SettingsError: a metric is unknown.
        ValueError: the numbers of answers and predictions differ.
    """
    if len(answers) != len(predictions):
        raise ValueError(
            f"{len(answers)} answers and {len(predictions)} predictions; "
            "a metric needs one of each per row"
        )
    if not answers:
        return {}
    scores: dict[str, float] = {}
    for name in names:
        metric = metric_named(name)
        options = {"classes": classes} if metric.per_class else {}
        value = metric.compute(answers, predictions, **options)
        scores |= value if isinstance(value, dict) else {name: value}
    return scores


def signature_of(names: Sequence[str], answers: Sequence[Any] = ()) -> str | None:
    """Return the signatures of some metrics in the order of `METRICS`; None without any.

    Args:
        names: names of metrics.
        answers: the answers that were compared, for the cautions.
    """
    signatures = [
        metric.signature() + (metric.caution(answers) if metric.caution else "")
        for name, metric in METRICS.items()
        if name in names and metric.signature
    ]
    return "; ".join(signatures) or None
