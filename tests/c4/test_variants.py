"""What the settings of the variants do, on small crawls made here."""

import pytest

from t5repro.c4 import clean
from t5repro.c4.sentences import SentenceSplitter
from t5repro.config.schema import CleanSettings

LONG = "x" * 200


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ([LONG] * 3, True),
        ([LONG, LONG, LONG[:199]], False),
        ([LONG, LONG], False),
        ([LONG, "short", LONG, "short", LONG + "x"], True),
    ],
)
def test_the_third_longest_line_must_have_200_characters(lines, kept):
    rules = clean.CleanRules(CleanSettings(enabled=False, min_paragraphs=3), SentenceSplitter())
    cleaned = clean.clean_page("\n".join(lines), rules)
    assert cleaned.reason == (None if kept else "few_paragraphs")
