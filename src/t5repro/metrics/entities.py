"""Scores of entities in tagged sentences (Tjong Kim Sang and De Meulder, 2003)."""

from collections.abc import Mapping, Sequence
from typing import Any

Entity = Sequence[Any]  # type, number of the first word, number of the one after the last


def entity_f1(
    answers: Sequence[Mapping[str, Any]], predictions: Sequence[Sequence[Entity]]
) -> dict[str, float]:
    """Return F1, precision and recall of all entities together, in percent.

    A predicted entity is right if one of the sentence has its type and the same words. A score over
    no entities is 0.

    Args:
        answers: under ``entities`` the entities of each sentence.
        predictions: the predicted ones.

    Source: the official ``conlleval``; its rounding to two decimals is left to the reader.
    """
    right = gold_count = predicted = 0
    for answer, prediction in zip(answers, predictions, strict=True):
        gold = set(map(tuple, answer["entities"]))
        right += sum(tuple(entity) in gold for entity in prediction)
        gold_count += len(gold)
        predicted += len(prediction)
    return {
        "f1": _percentage(2 * right, gold_count + predicted),
        "precision": _percentage(right, predicted),
        "recall": _percentage(right, gold_count),
    }


def _percentage(count: int, total: int) -> float:
    return 100 * count / total if total else 0.0
