"""The rules on columns of lines give the results of their definition."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
from c4_texts import LINE_PIECES
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.text.fast_rules import DECIDED_ALONE, RULE_TEXTS, WHITE_SPACE, clean_bodies
from t5repro.c4.text.rules import CleanRules, clean_page
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet.pages import Page
from t5repro.c4.wet.warc_records import contains_other_newlines
from t5repro.config.sections.c4 import CleanSettings

TEXTS = st.lists(LINE_PIECES, max_size=60).map("".join)
CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def page_of(text, number=0):
    other_newlines = contains_other_newlines(text)
    return Page("", "", text.encode(), number, None, has_other_newlines=other_newlines)


@given(
    st.lists(TEXTS, max_size=6), st.sampled_from([0, 25]), st.sampled_from([1, 3]), st.booleans()
)
def test_pages_cleaned_together_give_the_results_of_each(texts, max_chars, words, long_lines):
    settings = CleanSettings(
        max_word_chars=max_chars,
        min_words_per_line=words,
        min_sentences=2,
        min_paragraphs=1 if long_lines else 0,
        paragraph_chars=40,
    )
    rules = CleanRules(settings, SentenceSplitter())
    pages = [page_of(text, number) for number, text in enumerate(texts)]
    assert clean_bodies(pages, rules) == [clean_page(page.text, rules) for page in pages]


def test_pages_cleaned_together_keep_their_order_and_reasons():
    good = "This is a good line of text.\n" * 3
    texts = [good, "Home\n{ code }", f"{good}Some lorem ipsum is in this line.", good + "\nMenu"]
    rules = CleanRules(CleanSettings(), SentenceSplitter())
    cleaned = clean_bodies([page_of(text) for text in texts], rules)
    assert [page.reason for page in cleaned] == [None, "few_sentences", "lorem_ipsum", None]
    assert [page.kept_lines for page in cleaned] == [3, 0, 3, 3]
    assert [page.dropped_lines[1] for page in cleaned] == [0, 2, 0, 1]


def test_every_white_space_is_known():
    assert set(WHITE_SPACE) == {char for char in CHARACTERS if char.isspace()}
    assert all(not char.strip() for char in WHITE_SPACE)


def test_columns_are_stripped_and_split_at_the_white_space_of_python():
    stripped = pc.utf8_trim_whitespace(pa.array(CHARACTERS)).to_pylist()
    assert stripped == [char.strip() for char in CHARACTERS]
    words = [f"a{char}b" for char in CHARACTERS]
    assert pc.utf8_split_whitespace(pa.array(words)).to_pylist() == [word.split() for word in words]


def test_a_letter_with_an_ascii_lower_case_does_not_hide_a_text_of_a_rule():
    letters = {char.lower(): [] for char in CHARACTERS if char.lower().isascii()}
    for char in CHARACTERS:
        if char.lower() in letters:
            letters[char.lower()].append(char)
    assert letters["k"] == ["K", "k", "\u212a"]
    spellings = [
        text[:place] + char + text[place + 1 :]
        for text in RULE_TEXTS
        for place in range(len(text))
        for char in letters[text[place]]
    ]
    found = pc.match_substring_regex(pa.array(spellings), DECIDED_ALONE, ignore_case=True)
    assert all(found.to_pylist())
