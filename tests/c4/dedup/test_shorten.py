"""Removed units leave the other text of a page unchanged."""

import numpy as np
import pytest

from t5repro.c4.dedup.shorten import has_enough_sentences, remove_lines, remove_spans, text_at
from t5repro.c4.tables import POSITION
from t5repro.c4.text.sentences import SentenceSplitter

SPLITTER = SentenceSplitter()
A, B, C, D, E = ("A is one.", "B is two.", "C is three.", "D is four.", "E is five.")


def positions(*rows):
    return np.array(list(rows), dtype=POSITION)


def test_line_removal_does_not_change_other_lines():
    assert remove_lines("a \n b\nc", positions((1, 0, 0))) == "a \nc"
    assert remove_lines("a", positions((0, 0, 0))) == ""


def test_remaining_sentences_are_joined_by_one_space():
    text = f"{A}   {B} {C} {D}\n {E}  {A} \n{B}"
    assert remove_spans(text, positions((0, 1, 2)), SPLITTER) == f"{A} {D}\n {E}  {A} \n{B}"
    assert remove_spans(text, positions((0, 0, 3), (0, 1, 3)), SPLITTER) == f" {E}  {A} \n{B}"
    assert remove_spans(A, positions((0, 0, 1)), SPLITTER) == ""


def test_the_text_at_a_position_is_its_unit():
    text = f"{A} {B} {C}\n {D}"
    assert text_at(text, positions((0, 1, 2))[0], SPLITTER) == f"{B} {C}"
    assert text_at(text, positions((1, 0, 0))[0], SPLITTER) == f" {D}"


@pytest.mark.parametrize(("count", "lines", "whole"), [(2, True, True), (3, True, False)])
def test_the_whole_text_can_have_fewer_sentences_than_its_lines(count, lines, whole):
    text = "He is J.\nsmith by name.\nAnd one more."
    for whole_text, expected in ((False, lines), (True, whole)):
        assert expected == has_enough_sentences(
            text, count=count, whole_text=whole_text, splitter=SPLITTER
        )


def test_a_minimum_of_zero_accepts_an_empty_text():
    for whole_text in (True, False):
        assert has_enough_sentences("", count=0, whole_text=whole_text, splitter=SPLITTER)
