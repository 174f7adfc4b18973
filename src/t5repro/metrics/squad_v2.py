"""Scores of SQuAD 2.0, whose questions may have no answer (Rajpurkar et al., 2018).

Source: the official ``evaluate-v2.0.py``, whose keys are ``exact``, ``f1``, ``HasAns_exact``,
``NoAns_exact``, ``best_exact``, ``best_exact_thresh`` and so on.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from t5repro.metrics.question_answering import bag_f1, normalize_answer

Prediction = Mapping[str, Any]


class AnswerScores(NamedTuple):
    """Exact match and F1 of one answer, from 0 to 1."""

    em: float
    f1: float


def answer_scores(golds: Sequence[str], text: str) -> AnswerScores:
    """Return the scores of an answer, each by its own best gold answer.

    Args:
        golds: gold answers; none if the question has no answer.
        text: the answer; empty for none.
    """
    prediction = normalize_answer(text)
    # A gold answer such as "the" is empty without its article: it is none.
    normalized = [gold for gold in map(normalize_answer, golds) if gold] or [""]
    return AnswerScores(
        float(max(gold == prediction for gold in normalized)),
        max(_f1(gold.split(), prediction.split()) for gold in normalized),
    )


def _f1(gold: list[str], prediction: list[str]) -> float:
    """Return F1 over bags of words; no answer agrees with no answer only."""
    return bag_f1(gold, prediction) if gold and prediction else float(gold == prediction)


def squad_v2(
    answers: Sequence[Sequence[str]], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """Return exact match and F1 over all rows, over those with and without an answer, and the best.

    A score over no rows is left out. The best scores need odds in every prediction. They are scores
    of the likeliest spans, where every span with odds above a threshold is replaced by no answer.

    Args:
        answers: gold answers of each row; none if the question has no answer.
        predictions: ``text`` of each row, empty for no answer; of a network of spans also ``span``,
            the likeliest span, and ``null_odds``, how much likelier no answer is.

    Returns:
        Percentages, and under ``best_em_threshold`` and ``best_f1_threshold`` odds.
    """
    scored = [
        answer_scores(golds, prediction["text"])
        for golds, prediction in zip(answers, predictions, strict=True)
    ]
    pairs = list(zip(answers, scored, strict=True))
    scores = {
        **_means("", scored),
        **_means("has_answer_", (row for golds, row in pairs if golds)),
        **_means("no_answer_", (row for golds, row in pairs if not golds)),
    }
    if predictions and all("null_odds" in prediction for prediction in predictions):
        scores |= _best_scores(answers, predictions)
    return scores


def _means(prefix: str, scored: Iterable[AnswerScores]) -> dict[str, float]:
    rows = list(scored)
    return {
        prefix + name: 100 * math.fsum(getattr(row, name) for row in rows) / len(rows)
        for name in AnswerScores._fields
        if rows
    }


def _best_scores(
    answers: Sequence[Sequence[str]], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """Return the highest exact match and F1 that a threshold gives, with the thresholds."""
    scored = [
        answer_scores(golds, prediction["span"])
        for golds, prediction in zip(answers, predictions, strict=True)
    ]
    # By odds; rows with equal odds keep the order of the file.
    order = sorted(range(len(scored)), key=lambda row: predictions[row]["null_odds"])
    scores: dict[str, float] = {}
    for name in AnswerScores._fields:
        # Begin with no answer for all rows, then answer one row after another. As in the official
        # script a best score may lie between rows with equal odds, which no threshold separates.
        current = best = float(sum(not golds for golds in answers))
        threshold = 0.0
        for row in order:
            if answers[row]:
                current += getattr(scored[row], name)
            elif predictions[row]["span"]:
                current -= 1
            if current > best:
                best, threshold = current, predictions[row]["null_odds"]
        scores |= {f"best_{name}": 100 * best / len(scored), f"best_{name}_threshold": threshold}
    return scores
