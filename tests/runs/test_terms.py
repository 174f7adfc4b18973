"""Terms: their grammar, and which values they match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import LineageError
from t5repro.runs.terms import ORDERS, WORDS, Term, Value, parse_term, predicate

KEYS = st.text(st.characters(exclude_characters=":=!<>~", exclude_categories=["Cs"]), min_size=1)
VALUES = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.builds(Term, KEYS, st.sampled_from(sorted(WORDS.values())), VALUES))
def test_a_printed_term_is_parsed_as_itself(term: Term) -> None:
    assert parse_term(str(term)) == term


@given(KEYS, st.sampled_from(sorted(WORDS)), VALUES.filter(lambda text: text[:1] != "="))
def test_a_sign_and_its_word_are_one_term(key: str, sign: str, value: str) -> None:
    assert parse_term(f"{key}{sign}{value}") == Term(key, WORDS[sign], value)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("glue_rte.accuracy:gt:50", Term("glue_rte.accuracy", "gt", "50")),
        ("flops>=1e21", Term("flops", "ge", "1e21")),
        ("run!=a:gt:b", Term("run", "ne", "a:gt:b")),
        ("run:eq:a=b>c", Term("run", "eq", "a=b>c")),
        ("model.published=", Term("model.published", "eq", "")),
    ],
)
def test_the_first_operator_ends_the_key(text: str, term: Term) -> None:
    assert parse_term(text) == term


@pytest.mark.parametrize("text", ["", "glue_rte.accuracy", "=5", ":gt:5", "a:over:5", ">"])
def test_a_text_without_key_or_operator_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(LineageError, match="is no term; write KEY:OP:VALUE"):
        parse_term(text)


def matches(text: str, values: list[Value]) -> list[Value]:
    decide = predicate(parse_term(text), values)
    return [value for value in values if decide(value)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k=50", [50, 50.0]),
        ("k!=50", [49.5]),
        ("k<50", [49.5]),
        ("k<=5e1", [50, 50.0, 49.5]),
        ("k>-1", [50, 50.0, 49.5]),
    ],
)
def test_numbers_are_compared_as_numbers_and_missing_values_never_match(
    text: str, expected: list[Value]
) -> None:
    assert matches(text, [50, 50.0, 49.5, None]) == expected


@given(st.integers(0, 10**40), st.integers(0, 10**40), st.sampled_from(sorted(ORDERS)))
def test_long_integers_are_compared_exactly(value: int, limit: int, word: str) -> None:
    decide = predicate(Term("flops", word, str(limit)), [value])
    assert decide(value) == ORDERS[word](value, limit)


def test_texts_are_equal_or_contain_another() -> None:
    values: list[Value] = ["replace_spans", "lm", None, "prefix_lm"]
    assert matches("k~lm", values) == ["lm", "prefix_lm"]
    assert matches("k=lm", values) == ["lm"]
    assert matches("k!=lm", values) == ["replace_spans", "prefix_lm"]


def test_booleans_are_no_numbers() -> None:
    assert matches("k=true", [True, False, None]) == [True]
    assert matches("k=1", [True, 1, 2]) == [1]
    assert matches("k>0", [True, 1, 2]) == [1, 2]


def test_dates_are_compared_as_far_as_they_are_written() -> None:
    values: list[Value] = ["2026-11-24T05:59:31+00:00", "2026-11-25T22:13:14+00:00", None]
    assert matches("date=2026-11-24", values) == values[:1]
    assert matches("date>2026-11-24", values) == values[1:2]
    assert matches("date>=2026-11", values) == values[:2]
    assert matches("date<2026", values) == []


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("k>high", [1, 2.5], "k is a number, and 'high' is none"),
        ("k>nan", [1], "'nan' is none"),
        ("k=1e999", [1], "'1e999' is none"),
        ("k=fast", [1, None], "k is a number, and 'fast' is none"),
        ("k~5", [1], "k is a number; ~ and has are for text"),
        ("k>5", ["a"], "k is a text, which has no order"),
        ("k=yes", [True], "k is a boolean, and 'yes' is none; allowed: true, false"),
        ("date>monday", ["2026-11-24"], "'monday' is no date"),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, values: list[Value], message: str) -> None:
    with pytest.raises(LineageError) as refusal:
        predicate(parse_term(text), values)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(parse_term(text)))


def test_a_key_without_any_value_matches_nothing() -> None:
    assert matches("k=5", [None, None]) == []
    assert matches("k!=5", [None]) == []
