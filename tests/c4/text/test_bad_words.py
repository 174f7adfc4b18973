import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.text import bad_words
from t5repro.errors import RawDataError

WORDS = ("ass", "bad word", "s&m", "a.b", "Grand", "über", "as", "🖕", "c++", "x_y")
WORDS_OF_2019 = ("ass", "bad word", "s&m", "as", "x_y")


def reference(words, language):
    """The released code's regular expression."""
    escaped = "|".join(map(re.escape, words))
    if language in ("ja", "th", "zh"):
        return re.compile(escaped)
    return re.compile(rf"(?:\W|^)({escaped})(?:\W|$)")


PIECES = st.sampled_from(
    [
        *WORDS,
        "ASS",
        "Bad  Word",
        "BAD WORD",
        "class",
        " ",
        ".",
        "_",
        "-",
        "\n",
        "é",
        "ß",
        "İ",
        "Σ",
        "²",
        "٣",
        "'",
        "\u00a0",
        "\u200b",
        "s",
        "a",
        "1",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_page_is_judged_as_the_released_expression_judges_it(text):
    expected = reference(WORDS, "en").search(text.lower()) is not None
    assert bad_words.page_matcher(WORDS, "en")(text) == expected


@given(st.lists(PIECES, max_size=6).map("".join))
def test_where_words_are_not_set_apart_they_match_anywhere(text):
    expected = reference(WORDS, "ja").search(text.lower()) is not None
    assert bad_words.page_matcher(WORDS, "ja")(text) == expected


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_line_is_judged_as_the_code_of_2019_judges_it(line):
    pattern = re.compile("[^a-z]({})[^a-z]".format("|".join(WORDS_OF_2019)))
    expected = pattern.search(line.lower()) is not None
    assert bad_words.line_matcher(WORDS_OF_2019)(line.lower()) == expected


@pytest.mark.parametrize(
    ("text", "page", "line"),
    [
        ("he sat on his ass in peace", True, True),
        ("ass is a kind of horse", True, False),
        ("a kind of horse is an ass", True, False),
        ("a first class assistant", False, False),
        ('the word "ass" is listed.', True, True),
        ("the word _ass_ is in a name", False, True),
        ("the word éass is another", False, True),
        ("4ass1 is no word", False, True),
        ("ASS", True, False),
    ],
)
def test_both_rules_at_the_borders_of_a_word(text, page, line):
    assert bad_words.page_matcher(["ass"], "en")(text) == page
    assert bad_words.line_matcher(["ass"])(text.lower()) == line


def test_a_listed_word_with_a_capital_letter_never_matches():
    matches = bad_words.page_matcher(["MILF"], "de")
    assert not matches("a MILF here")
    assert not matches("a milf here")


def test_the_rule_of_2019_reads_words_as_expressions_where_they_are_some():
    matches = bad_words.line_matcher(["b.d", "plain"])
    assert matches(" bad ")
    assert matches(" plain ")
    assert not matches(" baad ")


def test_words_that_are_no_expression_are_refused_by_the_rule_of_2019():
    with pytest.raises(RawDataError, match=r"not a regular expression .* use 'page'"):
        bad_words.line_matcher(["c++("])


def test_any_line_of_a_page_is_enough():
    matches = bad_words.any_line(bad_words.line_matcher(["bad"]))
    assert matches("Good line.\nA BAD line.")
    assert not matches("Good line.\nBAD line.")  # it begins its line


def test_a_list_has_a_word_a_line_and_blank_lines_are_none(tmp_path):
    path = tmp_path / "en"
    path.write_text("one\n\n two words \r\nMILF\n", encoding="utf-8")
    assert bad_words.read_words(path, "en") == {"one", "two words", "MILF"}


def test_words_that_the_released_code_allows_are_taken_out(tmp_path):
    path = tmp_path / "list"
    path.write_text("sm\n性\n他\n", encoding="utf-8")
    assert bad_words.read_words(path, "ja") == {"性", "他"}
    assert bad_words.read_words(path, "zh") == {"sm", "他"}
    assert bad_words.read_words(path, "en") == {"sm", "性", "他"}


def test_a_list_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "list"
    with pytest.raises(RawDataError, match=r"list: cannot be read .*c4\.bad_word_lists\.de"):
        bad_words.read_words(path, "de")
    path.write_bytes(b"word\n\xe9\n")
    with pytest.raises(RawDataError, match="not UTF-8 at byte 5"):
        bad_words.read_words(path, "de")
    path.write_text("\n\n")
    with pytest.raises(RawDataError, match="contains no word; remove 'de' from"):
        bad_words.read_words(path, "de")


def test_every_real_list_can_be_read_in_both_ways(real_data):
    for path in sorted((real_data / "badwords").iterdir()):
        if path.name in ("LICENSE", "ro.b88273b-parent"):  # the latter is empty
            continue
        words = bad_words.read_words(path, path.name.partition(".")[0])
        some = min(word for word in words if word == word.lower())
        assert bad_words.page_matcher(words, "en")(f"x {some} y")
        assert bad_words.line_matcher(words)(f" {some} ")
