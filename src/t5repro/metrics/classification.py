"""Scores of labels and numbers (paper section 2.4).

Every function takes answers and predictions of equal length and returns a percentage. A prediction
that is not a label has the index -1, which differs from every answer.

A score that its definition leaves undefined is 0.0: no rows, a correlation with a constant or with
a number that is not finite, F1 of a class that neither answers nor predictions contain. Tables
therefore never contain NaN, and a model that predicts one answer for every row has correlation 0.
"""

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

BINARY_CLASSES = (0, 1)


def accuracy(answers: Sequence[Any], predictions: Sequence[Any]) -> float:
    """Return the share of predictions that equal their answer, in percent."""
    if not answers:
        return 0.0
    pairs = zip(answers, predictions, strict=True)
    correct = sum(1 for answer, prediction in pairs if answer == prediction)
    return 100.0 * correct / len(answers)


def matthews_correlation(answers: Sequence[int], predictions: Sequence[int]) -> float:
    """Return Matthews' correlation in percent; invalid predictions form a class of their own.

    Source: released code, `sklearn.metrics.matthews_corrcoef` without change, so that invalid
    predictions turn it into the multi-class coefficient.
    """
    if len({*answers, *predictions}) < 2:
        return 0.0
    from sklearn.metrics import matthews_corrcoef

    return 100.0 * float(matthews_corrcoef(answers, predictions))


def f1_with_invalid(answers: Sequence[int], predictions: Sequence[int]) -> float:
    """Return the F1 of class 1 in percent; an invalid prediction counts as the wrong class.

    Source: released code, `metrics.f1_score_with_invalid`.
    """
    if not answers:
        return 0.0
    from sklearn.metrics import f1_score

    # scikit-learn's binary F1 refuses a third class. An invalid prediction becomes the class that
    # is wrong for its row: a false positive for class 0, a false negative for class 1.
    binary = [
        prediction if prediction in BINARY_CLASSES else 1 - answer
        for answer, prediction in zip(answers, predictions, strict=True)
    ]
    return 100.0 * float(f1_score(answers, binary, zero_division=0))


def macro_f1(answers: Sequence[int], predictions: Sequence[int], *, classes: int) -> float:
    """Return the mean F1 over the labels 0 to `classes` - 1, in percent.

    A label that neither answers nor predictions contain has F1 0 and counts in the mean.

    Source: released code, `metrics.mean_multiclass_f1`.
    """
    if not answers:
        return 0.0
    from sklearn.metrics import fbeta_score

    labels = list(range(classes))
    return 100.0 * float(
        fbeta_score(answers, predictions, beta=1, labels=labels, average="macro", zero_division=0)
    )


def macro_f1_of_present(
    answers: Sequence[int], predictions: Sequence[int], *, classes: int
) -> float:
    """Return the mean F1 over the labels that answers or predictions contain, in percent.

    A label without rows in a small validation split says nothing of the model; tasks of run files
    use this mean, those of the paper `macro_f1`.
    """
    if not answers:
        return 0.0
    from sklearn.metrics import f1_score

    labels = sorted({*answers, *predictions} & set(range(classes)))
    return 100.0 * float(
        f1_score(answers, predictions, labels=labels, average="macro", zero_division=0)
    )


def pearson_correlation(answers: Sequence[float], predictions: Sequence[float]) -> float:
    """Return Pearson's correlation in percent; 0.0 if it is undefined."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, answers, predictions)


def spearman_correlation(answers: Sequence[float], predictions: Sequence[float]) -> float:
    """Return Spearman's rank correlation in percent; 0.0 if it is undefined."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, answers, predictions)


def _correlation(
    function: Callable[..., Any], answers: Sequence[float], predictions: Sequence[float]
) -> float:
    if len(answers) < 2 or not all(map(math.isfinite, (*answers, *predictions))):
        return 0.0
    # SciPy warns of constant input, for which it returns NaN, and of nearly constant input, for
    # which it returns a usable value.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value = float(
            function(np.asarray(answers, np.float64), np.asarray(predictions, np.float64))[0]
        )
    return 100.0 * value if math.isfinite(value) else 0.0


def grouped_exact_match(
    answers: Sequence[int], predictions: Sequence[int], groups: Sequence[Hashable]
) -> float:
    """Return the share of groups with only correct predictions, in percent (MultiRC's EM).

    Args:
        answers: label of each row.
        predictions: predicted label of each row.
        groups: group of each row; for MultiRC the question.

    Source: released code, `metrics.mean_group_metric` of `metrics.all_match`.
    """
    correct: dict[Hashable, bool] = {}
    for answer, prediction, group in zip(answers, predictions, groups, strict=True):
        correct[group] = correct.get(group, True) and answer == prediction
    return 100.0 * sum(correct.values()) / len(correct) if correct else 0.0
