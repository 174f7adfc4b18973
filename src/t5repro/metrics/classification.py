"""Scores of labels and numbers (paper section 2.4).

Every function takes answers and predictions of equal length and returns a percentage. A prediction
that is not a label has the index -1, which differs from every answer.

A score that its definition leaves undefined is 0.0: no rows, a correlation with a constant or with
a number that is not finite, F1 of a class that neither answers nor predictions contain. Tables
therefore never contain NaN, and a model that predicts one answer for every row has correlation 0.

F1 and Matthews' correlation are quotients of counts. They have the bits of scikit-learn, with which
tests compare them; a run does not need that package.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

BINARY_CLASSES = (0, 1)


def accuracy(answers: Sequence[Any], predictions: Sequence[Any]) -> float:
    """Return the share of predictions that equal their answer, in percent."""
    if not answers:
        return 0.0
    return 100.0 * _correct(answers, predictions) / len(answers)


def _correct(answers: Sequence[Any], predictions: Sequence[Any]) -> int:
    pairs = zip(answers, predictions, strict=True)
    return sum(1 for answer, prediction in pairs if answer == prediction)


def matthews_correlation(answers: Sequence[int], predictions: Sequence[int]) -> float:
    """Return Matthews' correlation in percent; invalid predictions form a class of their own.

    Source: released code, `sklearn.metrics.matthews_corrcoef` without change, so that invalid
    predictions turn it into the multi-class coefficient.
    """
    answered, predicted = Counter(answers), Counter(predictions)
    rows = len(answers)
    # Integers in floats, as in scikit-learn: a product of two spreads can exceed 2**53.
    spread_of_answers = float(rows**2 - sum(n * n for n in answered.values()))
    spread_of_predictions = float(rows**2 - sum(n * n for n in predicted.values()))
    spread = spread_of_answers * spread_of_predictions
    if spread == 0:
        return 0.0
    by_chance = sum(n * predicted[label] for label, n in answered.items())
    return 100.0 * ((_correct(answers, predictions) * rows - by_chance) / math.sqrt(spread))


def f1_with_invalid(answers: Sequence[int], predictions: Sequence[int]) -> float:
    """Return the F1 of class 1 in percent; an invalid prediction counts as the wrong class.

    Source: released code, `metrics.f1_score_with_invalid`.
    """
    # An invalid prediction becomes the class that is wrong for its row: a false positive for
    # class 0, a false negative for class 1.
    binary = [
        prediction if prediction in BINARY_CLASSES else 1 - answer
        for answer, prediction in zip(answers, predictions, strict=True)
    ]
    return _mean_f1(answers, binary, labels=[1])


def macro_f1(answers: Sequence[int], predictions: Sequence[int], *, classes: int) -> float:
    """Return the mean F1 over the labels 0 to `classes` - 1, in percent.

    A label that neither answers nor predictions contain has F1 0 and counts in the mean.

    Source: released code, `metrics.mean_multiclass_f1`.
    """
    return _mean_f1(answers, predictions, labels=range(classes))


def macro_f1_of_present(
    answers: Sequence[int], predictions: Sequence[int], *, classes: int
) -> float:
    """Return the mean F1 over the labels that answers or predictions contain, in percent.

    A label without rows in a small validation split says nothing of the model; tasks of run files
    use this mean, those of the paper `macro_f1`.
    """
    labels = sorted({*answers, *predictions} & set(range(classes)))
    return _mean_f1(answers, predictions, labels=labels)


def _mean_f1(answers: Sequence[int], predictions: Sequence[int], *, labels: Sequence[int]) -> float:
    if not answers:
        return 0.0
    answered, predicted = Counter(answers), Counter(predictions)
    pairs = zip(answers, predictions, strict=True)
    hits = Counter(answer for answer, prediction in pairs if answer == prediction)
    scores = [2 * hits[k] / ((answered[k] + predicted[k]) or 1) for k in labels]
    return 100.0 * float(np.mean(scores))  # scikit-learn's order of the sum


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
