"""SQuAD, ReCoRD and MultiRC against their definitions, on random and on adversarial input."""

import random
import re
import string

import pytest
from random_texts import RANDOM_CASES, random_text, similar_text

from t5repro.metrics.question_answering import multirc, normalize_answer, record, squad

# The evaluation of SQuAD v1.1, implemented again from its definition


def official_words(text):
    letters = [c for c in text.lower() if c not in set(string.punctuation)]
    words = "".join(letters)
    for article in ("a", "an", "the"):
        words = re.sub(rf"(?<!\w){article}(?!\w)", " ", words)
    return words.split()


def official_exact(gold, prediction):
    return float(official_words(gold) == official_words(prediction))


def official_f1(gold, prediction):
    gold_words, words = official_words(gold), official_words(prediction)
    unmatched = list(gold_words)
    for word in words:
        if word in unmatched:
            unmatched.remove(word)
    common = len(gold_words) - len(unmatched)
    return 2 * common / (len(gold_words) + len(words)) if common else 0.0


def test_squad_equals_the_official_evaluation():
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        golds = [
            [random_text(generator, 5) for _ in range(generator.randint(1, 3))] for _ in range(4)
        ]
        predictions = [similar_text(generator, generator.choice(options)) for options in golds]
        pairs = list(zip(golds, predictions, strict=True))
        exact = sum(max(official_exact(g, p) for g in gs) for gs, p in pairs)
        overlap = sum(max(official_f1(g, p) for g in gs) for gs, p in pairs)
        assert squad(golds, predictions) == pytest.approx(
            {"em": 100 * exact / 4, "f1": 100 * overlap / 4}
        )


def test_squad_of_the_released_tests():
    """Source: metrics_test.test_qa_big, test_qa_small, test_same_qa, test_different_qa."""
    golds = [["big moose", "hippo"], ["correct1"], ["correct2.1", "correct2.2"], ["a", "b"]]
    predictions = ["a big  Moose!", "wrong", "correct2.2", "c"]
    assert squad(golds, predictions) == {"em": 50.0, "f1": 50.0}
    small = squad([["abc abd", "$$$$"]], ["abd"])
    assert small == pytest.approx({"em": 0.0, "f1": 100 * 2 / 3})
    ref = "this is a string"
    assert squad([["", ref], [ref, ref]], [ref, ref]) == {"em": 100.0, "f1": 100.0}
    assert squad([[ref, ref], [ref, ref]], ["", ""]) == {"em": 0.0, "f1": 0.0}


def test_unicode_quotes_are_not_punctuation_and_articles_are_whole_words():
    assert normalize_answer("The “Anthem”, an  A-side!") == "“anthem” aside"
    assert normalize_answer("a.an.the") == "aanthe"


def test_empty_prediction_and_empty_gold_agree_exactly_but_share_no_word():
    assert squad([["the"]], [""]) == {"em": 100.0, "f1": 0.0}
    assert squad([], []) == {"em": 0.0, "f1": 0.0}


def record_answers(golds, groups):
    return [
        {"answers": options, "group": group} for options, group in zip(golds, groups, strict=True)
    ]


def test_record_scores_the_first_row_of_each_query():
    answers = [["Ann", "Bo"], ["Ann", "Bo"], ["Cy"]]
    groups = [(1, 2), (1, 2), (1, 3)]
    rows = record_answers(answers, groups)
    assert record(rows, ["Bo", "Dee", "Cy"]) == {"em": 100.0, "f1": 100.0}
    assert record(rows, ["Dee", "Bo", "Cy"]) == {"em": 50.0, "f1": 50.0}


def test_record_equals_squad_over_first_rows():
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        rows = generator.randint(1, 10)
        groups = [(0, generator.randint(0, 4)) for _ in range(rows)]
        golds = {group: [random_text(generator, 3)] for group in groups}
        predictions = [similar_text(generator, golds[group][0]) for group in groups]
        kept = [i for i in range(rows) if groups[i] not in groups[:i]]
        expected = squad([golds[groups[i]] for i in kept], [predictions[i] for i in kept])
        answers = record_answers([golds[group] for group in groups], groups)
        assert record(answers, predictions) == expected


def test_one_gold_answer_may_be_a_text_instead_of_a_list():
    assert squad(["big moose"], ["a big Moose!"]) == squad([["big moose"]], ["a big Moose!"])


def test_multirc_is_f1_over_options_and_exact_match_over_questions():
    answers = [{"label": label, "group": group} for label, group in ((1, 5), (0, 5), (1, 6))]
    assert multirc(answers, [1, 0, -1]) == {"f1": pytest.approx(200 / 3), "exact_match": 50.0}
