"""F1 of entities against the rules of conlleval, written again, on random tags of both schemes."""

import random

import pytest
from random_texts import RANDOM_CASES

from t5repro.metrics.entities import entity_f1
from t5repro.tasks.tagging import entities_of, iob2


def chunks_by_conlleval(tags):
    """Return the chunks of a sentence from the start and the end of each, as conlleval does."""
    found, first = set(), None
    before, type_before = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        is_end = before != "O" and (prefix in "BO" or kind != type_before)
        if is_end and first is not None:
            found.add((type_before, first, place))
            first = None
        if prefix == "B" or (prefix == "I" and (before == "O" or kind != type_before)):
            first = place
        before, type_before = prefix, kind
    return found


def random_tags(generator, length):
    return [generator.choice(["O", "O", "B-A", "I-A", "B-B", "I-B"]) for _ in range(length)]


def scores_by_conlleval(golds, guesses):
    pairs = [tuple(map(chunks_by_conlleval, pair)) for pair in zip(golds, guesses, strict=True)]
    correct = sum(len(gold & guess) for gold, guess in pairs)
    known, guessed = (sum(len(pair[side]) for pair in pairs) for side in range(2))
    precision = 100 * correct / guessed if guessed else 0.0
    recall = 100 * correct / known if known else 0.0
    total = precision + recall
    return {
        "f1": 2 * precision * recall / total if total else 0.0,
        "precision": precision,
        "recall": recall,
    }


def test_the_scores_are_those_of_conlleval_in_any_scheme():
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        lengths = [generator.randint(1, 9) for _ in range(generator.randint(1, 5))]
        golds, guesses = ([random_tags(generator, n) for n in lengths] for _ in range(2))
        answers = [{"entities": [list(entity) for entity in entities_of(tags)]} for tags in golds]
        scores = entity_f1(answers, [entities_of(tags) for tags in guesses])
        assert scores == pytest.approx(scores_by_conlleval(golds, guesses))


def test_the_entities_of_a_sentence_are_those_of_its_tags_in_iob2():
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        tags = random_tags(generator, generator.randint(1, 12))
        assert set(entities_of(tags)) == chunks_by_conlleval(tags)
        changed = iob2(tags)
        assert entities_of(changed) == entities_of(tags)
        assert iob2(changed) == changed
        starts = {first for _, first, _ in entities_of(tags)}
        assert {place for place, tag in enumerate(changed) if tag[0] == "B"} == starts


def test_sentences_without_entities_have_scores_of_zero():
    assert entity_f1([{"entities": []}], [[]]) == {"f1": 0.0, "precision": 0.0, "recall": 0.0}
