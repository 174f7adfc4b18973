"""Keys and positions of the units of a text."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.dedup.spans import line_keys, span_keys
from t5repro.c4.tables import POSITION
from t5repro.c4.text.sentences import SentenceSplitter

SPLITTER = SentenceSplitter()
A, B, C, D, E = ("A is one.", "B is two.", "C is three.", "D is four.", "E is five.")


def hex_md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def test_keys_are_the_md5_of_the_lower_cased_stripped_lines():
    keys = line_keys(" One Line. \nΟΔΟΣ\n")
    assert keys.hex() == hex_md5("one line.") + hex_md5("οδος") + hex_md5("")


@given(st.text("AaΣσİıǰẞ'.·\u0301\u00ad \t\n\r\x1c\x85\u2028\ud7ff", max_size=40))
def test_the_key_of_a_line_does_not_depend_on_its_page(text):
    keys = "".join(hex_md5(line.lower().strip()) for line in text.split("\n"))
    assert line_keys(text).hex() == keys


def units_of(text):
    keys, data = span_keys(text, SPLITTER)
    hex_keys = [keys[start : start + 16].hex() for start in range(0, len(keys), 16)]
    positions = [tuple(row) for row in np.frombuffer(data, POSITION).tolist()]
    return list(zip(hex_keys, positions, strict=True))


def test_a_line_of_four_sentences_has_two_spans_and_a_shorter_one_is_one():
    assert units_of(f" {A} {B}  {C} {D}\n{E} {A}\n{B}") == [
        (hex_md5("a is one.\nb is two.\nc is three."), (0, 0, 3)),
        (hex_md5("b is two.\nc is three.\nd is four."), (0, 1, 3)),
        (hex_md5("e is five.\na is one."), (1, 0, 2)),
        (hex_md5("b is two."), (2, 0, 1)),
    ]


def test_spans_of_punctuation_alone_are_not_compared():
    assert [position for _, position in units_of(f"{A} . . . ? !")] == [(0, 0, 3)]
    assert units_of("! ? !\n.") == []
    assert units_of("") == []
