"""Scores of SQuAD, ReCoRD and MultiRC (paper section 2.4).

Every score is a percentage. Without rows it is 0.0.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from t5repro.metrics.classification import f1_with_invalid, grouped_exact_match

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Return `text` without case, ASCII punctuation, articles and extra whitespace.

    Source: released code, `qa_utils.normalize_squad`; the SQuAD v1.1 evaluation agrees.
    """
    # Punctuation goes first and leaves no space, so "a.an" becomes one word and keeps its articles.
    without_punctuation = text.lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", without_punctuation).split())


def squad(answers: Sequence[str | Sequence[str]], predictions: Sequence[str]) -> dict[str, float]:
    """Return exact match and F1 over bags of words, each the best over a row's gold answers.

    Two texts without a common word have F1 0, even if both are empty after normalisation (their
    exact match is then 100).

    Args:
        answers: gold answer of each row, or several; the prediction needs to match one.
        predictions: one text per row.

    Source: released code, `metrics.squad`.
    """
    exact = overlap = 0.0
    for answer, prediction in zip(answers, predictions, strict=True):
        # Tasks of run files have one gold answer per row, SQuAD and ReCoRD a list.
        golds = [normalize_answer(gold) for gold in _as_list(answer)]
        normalized = normalize_answer(prediction)
        exact += max(normalized == gold for gold in golds)
        # Exact match and F1 each take their own best gold answer.
        overlap += max(bag_f1(gold.split(), normalized.split()) for gold in golds)
    rows = max(len(predictions), 1)
    return {"em": 100.0 * exact / rows, "f1": 100.0 * overlap / rows}


def _as_list(answer: str | Sequence[str]) -> Sequence[str]:
    return [answer] if isinstance(answer, str) else answer


def bag_f1(gold: list[str], prediction: list[str]) -> float:
    """Return F1 over bags of words, from 0 to 1; 0 without a common word."""
    common = sum((Counter(gold) & Counter(prediction)).values())
    if not common:
        return 0.0
    precision, recall = common / len(prediction), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def record(answers: Sequence[Mapping[str, Any]], predictions: Sequence[str]) -> dict[str, float]:
    """Return SQuAD's scores over the first row of each query.

    Args:
        answers: ``answers``, all gold answers of the row's query, and ``group``, its passage and
            query.
        predictions: one text per row.

    Source: released code, `metrics.deduplicate_metric` of `metrics.squad`.
    """
    # ReCoRD has one row per gold answer; the rows of a query have equal inputs, so equal
    # predictions, and a query with many gold answers would count as often.
    first_rows: dict[tuple[Any, ...], int] = {}
    for row, answer in enumerate(answers):
        first_rows.setdefault(tuple(answer["group"]), row)
    rows = list(first_rows.values())
    return squad([answers[row]["answers"] for row in rows], [predictions[row] for row in rows])


def multirc(answers: Sequence[Mapping[str, Any]], predictions: Sequence[int]) -> dict[str, float]:
    """Return F1 over all answer options, and the share of questions with every option right.

    Args:
        answers: ``label`` of the answer option and ``group``, the id of its question.
        predictions: predicted label of each option.
    """
    labels = [answer["label"] for answer in answers]
    questions = [answer["group"] for answer in answers]
    return {
        "f1": f1_with_invalid(labels, predictions),
        "exact_match": grouped_exact_match(labels, predictions, questions),
    }
