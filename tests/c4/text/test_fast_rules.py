"""The rules on bytes give the results of their definition."""

import sys

from c4_texts import LINE_PIECES
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.text.fast_rules import WHITE_SPACE, clean_body
from t5repro.c4.text.rules import CleanRules, clean_page
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet.warc_records import contains_other_newlines, text_of
from t5repro.config.sections.c4 import CleanSettings


@given(st.lists(LINE_PIECES, max_size=60).map("".join), st.sampled_from([0, 25]), st.booleans())
def test_the_bytes_of_a_page_give_the_result_of_its_text(text, max_chars, long_lines):
    settings = CleanSettings(
        max_word_chars=max_chars,
        min_words_per_line=3,
        min_sentences=2,
        min_paragraphs=1 if long_lines else 0,
        paragraph_chars=40,
    )
    rules = CleanRules(settings, SentenceSplitter())
    body = text.encode()
    cleaned = clean_body(body, rules, contains_other_newlines(text))
    assert cleaned == clean_page(text_of(body), rules)


def test_every_white_space_is_known():
    characters = map(chr, range(sys.maxunicode + 1))
    assert set(WHITE_SPACE) == {char for char in characters if char.isspace()}
    assert all(not char.strip() for char in WHITE_SPACE)
