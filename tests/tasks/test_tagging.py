"""Predictions of tags and of entities as text, read back as places in the sentence."""

import pytest

from t5repro.tasks.registry import task_named

TASK = task_named("conll_2003")
ROW = {"inputs": "tag: New York and York and Ann"}


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("B-LOC I-LOC O B-LOC O B-PER", [("LOC", 0, 2), ("LOC", 3, 4), ("PER", 5, 6)]),
        ("I-LOC I-LOC O I-ORG O O", [("LOC", 0, 2), ("ORG", 3, 4)]),
        ("LOC: New York $$ PER: Ann", [("LOC", 0, 2), ("PER", 5, 6)]),
        # Equal entities stand at different places, as far as the sentence has them.
        ("LOC: York $$ LOC: York", [("LOC", 1, 2), ("LOC", 3, 4)]),
        ("LOC: York $$ ORG: York", [("LOC", 1, 2), ("ORG", 1, 2)]),
        ("LOC: York $$ LOC: York $$ LOC: York", [("LOC", 1, 2), ("LOC", 3, 4), ("LOC", -1, 2)]),
        ("O O O O O O", []),
        ("", []),
        ("  ", []),
        ("LOC: Boston", [("LOC", -1, 0)]),
        ("LOC:", [("LOC:", -1, 0)]),
        ("Ann", [("Ann", -1, 0)]),
        ("B-LOC O", [("B-LOC O", -1, 0)]),  # not as many tags as words
    ],
)
def test_a_prediction_has_the_places_of_its_entities(text, entities):
    assert TASK.read_prediction(text, ROW) == entities
    assert TASK.is_invalid(entities) == any(first < 0 for _, first, _ in entities)


def test_an_entity_that_is_not_in_the_sentence_costs_precision():
    from t5repro.evaluate.score import score_rows

    answer = {"tags": [], "entities": [["LOC", 0, 2], ["PER", 5, 6]]}
    row = ROW | {"answer": answer, "prediction": "LOC: New York $$ LOC: Boston"}
    assert score_rows(TASK, [row]) == {"f1": 50.0, "precision": 50.0, "recall": 50.0}
