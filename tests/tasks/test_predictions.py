"""Predictions read back: labels, numbers, and the rule of the Winograd schemas."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_texts import RANDOM_CASES

from t5repro.tasks.predictions import (
    is_blank,
    is_invalid_label,
    is_unreadable_number,
    label_index,
    names_referent,
    read_number,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3.2", 3.2), (" 3.2 ", 3.2), ("7", 7.0), ("1e1", 10.0), ("-1.0", -1.0), ("", -1.0)]
    + [(text, -1.0) for text in ("3,2", "three", "nan", "inf", "-Infinity", "3.2 points")],
)
def test_a_similarity_is_any_finite_number_else_minus_one(text, value):
    assert read_number(text, {}) == value
    assert is_unreadable_number(value) == (value == -1.0)


def test_a_near_miss_of_a_label_is_invalid():
    texts = ("positive", "Positive", " positive", "positive.", "", "negative")
    labels = [label_index(text, {}, labels=("negative", "positive")) for text in texts]
    assert labels == [1, -1, -1, -1, -1, 0]
    assert [is_invalid_label(label) for label in labels] == [False, *[True] * 4, False]


def test_a_text_is_blank_without_a_visible_character():
    assert [is_blank(text) for text in ("", " \n", "x")] == [True, True, False]


@pytest.mark.parametrize(
    ("prediction", "referent", "expected"),
    [
        ("Tom", "Tom", 1),
        ("tom ", "Tom", 1),
        ("the bunny", "a bunny", 1),
        ("fuzzy bunny", "the bunny", 1),
        ("bunny", "The fuzzy bunny", 1),
        ("Bob", "Bob's hat", 0),
        ("Bob's hat", "Bob", 0),
        ("Bob's hat", "his Bob's hat", 1),
        ("Bob’s", "Bob", 0),
        ("fuzzy dog", "fuzzy bunny", 0),
        ("", "Tom", -1),
        ("   ", "Tom", -1),
        ("the", "the", -1),
        ("Tom", "", 0),
        ("Tom.", "Tom", 0),
    ],
)
def test_the_winograd_rule(prediction, referent, expected):
    assert names_referent(prediction, referent) == expected


@given(st.text(), st.text())
def test_the_winograd_rule_is_symmetric_unless_one_phrase_is_empty(first, second):
    forth, back = names_referent(first, second), names_referent(second, first)
    assert forth == back or -1 in (forth, back)


DETERMINERS = re.compile(
    r"a|an|few|her|his|each|every|many|much|my|our|some|that|the|their|these|this|those|which|"
    r"whose|your"
)


def bare(phrase):
    """Return a phrase in lower case without determiners; single spaces separate its words."""
    words = phrase.lower().strip().split(" ")
    return " ".join(word for word in words if not DETERMINERS.fullmatch(word))


def test_the_winograd_rule_equals_its_definition():
    """Source: released code, `postprocessors.wsc_simple`, from its description."""
    names = ("The", "cat", "Bob's", "hat", "a", "big", "dog", "her", "Ann", "’s", "")
    for seed in range(RANDOM_CASES):
        generator = random.Random(seed)
        prediction, referent = (
            " ".join(generator.choice(names) for _ in range(generator.randint(0, 4)))
            for _ in range(2)
        )
        phrases = bare(prediction), bare(referent)
        if not phrases[0]:
            expected = -1
        elif ("'" in phrases[0]) != ("'" in phrases[1]):
            expected = 0
        else:
            first, second = (set(phrase.split(" ")) for phrase in phrases)
            expected = int(first <= second or second <= first)
        assert names_referent(prediction, referent) == expected, (prediction, referent)
