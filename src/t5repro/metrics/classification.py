"""Scores of tasks whose answer is one of a few labels, or a number (spec: paper section 2.4).

Every function takes answers and predictions of equal length and returns a percentage. A
prediction that is no label at all arrives as `INVALID` and is never right.

A score that the definition leaves open is 0.0: no rows, a correlation with a constant or with a
number that is not finite, F1 where neither answers nor predictions hold the class. So a table
never holds NaN, and a model that says the same for every row shows no correlation.
"""

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

INVALID = -1  # no label has this index
CLASSES_OF_F1 = (0, 1)


def accuracy(answers: Sequence[Any], predictions: Sequence[Any]) -> float:
    """Return how many predictions equal their answer, in percent."""
    _check_lengths(answers, predictions)
    if not answers:
        return 0.0
    pairs = zip(answers, predictions, strict=True)
    right = sum(1 for answer, prediction in pairs if answer == prediction)
    return 100.0 * right / len(answers)


def matthews_correlation(answers: Sequence[int], predictions: Sequence[int]) -> float:
    """Return Matthews' correlation in percent; an invalid prediction is a class of its own.

    Source: released code, `sklearn.metrics.matthews_corrcoef` without change, so that invalid
    predictions make it the multi-class coefficient.
    """
    _check_lengths(answers, predictions)
    if len({*answers, *predictions}) < 2:
        return 0.0
    from sklearn.metrics import matthews_corrcoef

    return 100.0 * float(matthews_corrcoef(answers, predictions))


def f1_with_invalid(answers: Sequence[int], predictions: Sequence[int]) -> float:
    """Return the F1 of class 1 in percent; an invalid prediction counts as the wrong class.

    Source: released code, `metrics.f1_score_with_invalid`.
    """
    _check_lengths(answers, predictions)
    if not answers:
        return 0.0
    from sklearn.metrics import f1_score

    settled = [
        prediction if prediction in CLASSES_OF_F1 else 1 - answer
        for answer, prediction in zip(answers, predictions, strict=True)
    ]
    return 100.0 * float(f1_score(answers, settled, zero_division=0))


def macro_f1(answers: Sequence[int], predictions: Sequence[int], *, classes: int) -> float:
    """Return the mean F1 over labels 0 to `classes` - 1, in percent.

    A label that occurs nowhere has F1 0 and counts in the mean.

    Source: released code, `metrics.mean_multiclass_f1`.
    """
    _check_lengths(answers, predictions)
    if not answers:
        return 0.0
    from sklearn.metrics import fbeta_score

    labels = list(range(classes))
    return 100.0 * float(
        fbeta_score(answers, predictions, beta=1, labels=labels, average="macro", zero_division=0)
    )


def pearson_correlation(answers: Sequence[float], predictions: Sequence[float]) -> float:
    """Return Pearson's correlation in percent; 0.0 where it is not defined."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, answers, predictions)


def spearman_correlation(answers: Sequence[float], predictions: Sequence[float]) -> float:
    """Return Spearman's rank correlation in percent; 0.0 where it is not defined."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, answers, predictions)


def _correlation(
    function: Callable[..., Any], answers: Sequence[float], predictions: Sequence[float]
) -> float:
    _check_lengths(answers, predictions)
    if len(answers) < 2 or not all(map(math.isfinite, (*answers, *predictions))):
        return 0.0
    # SciPy warns of constant and nearly constant input; the first is what NaN stands for here,
    # the second is still its best value.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value = float(
            function(np.asarray(answers, np.float64), np.asarray(predictions, np.float64))[0]
        )
    return 100.0 * value if math.isfinite(value) else 0.0


def grouped_exact_match(
    answers: Sequence[int], predictions: Sequence[int], groups: Sequence[Hashable]
) -> float:
    """Return how many groups have every prediction right, in percent (MultiRC's EM).

    Args:
        answers: label of each row.
        predictions: predicted label of each row.
        groups: what each row belongs to; for MultiRC the question.

    Source: released code, `metrics.mean_group_metric` of `metrics.all_match`.
    """
    _check_lengths(answers, predictions)
    _check_lengths(answers, groups)
    right: dict[Hashable, bool] = {}
    for answer, prediction, group in zip(answers, predictions, groups, strict=True):
        right[group] = right.get(group, True) and answer == prediction
    return 100.0 * sum(right.values()) / len(right) if right else 0.0


def _check_lengths(answers: Sequence[Any], others: Sequence[Any]) -> None:
    if len(answers) != len(others):
        raise ValueError(
            f"{len(answers)} answers and {len(others)} predictions or groups; "
            "a metric needs one of each for every row"
        )
