import json
import re

import pytest
from c4_texts import LINE_PIECES
from checkout import CASES
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.reasons import LINE_REASONS
from t5repro.c4.text import rules as page_rules
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.config.sections.c4 import CleanSettings

CASES = json.loads((CASES / "c4_clean.json").read_text())
SPLITTER = SentenceSplitter()
GOOD = "One is here. Two is here. Three is here."


def rules(has_bad_word=None, **settings):
    return page_rules.CleanRules(CleanSettings(**settings), SPLITTER, has_bad_word)


def counts(cleaned):
    by_reason = zip(LINE_REASONS, cleaned.dropped_lines, strict=True)
    return {reason: count for reason, count in by_reason if count}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case):
    cleaned = page_rules.clean_page(case["text"], rules(**case.get("settings", {})))
    assert cleaned.reason == case.get("reason")
    if cleaned.reason is None:
        assert cleaned.text == case["kept"]
        assert counts(cleaned) == case.get("dropped", {})


@pytest.mark.parametrize(("length", "kept"), [(1000, True), (1001, False)])
def test_a_word_may_have_1000_characters(length, kept):
    line = f"Here is a word {'w' * (length - 1)}."
    cleaned = page_rules.clean_page(f"{line}\n{GOOD}", rules())
    assert cleaned.text == (f"{line}\n{GOOD}" if kept else GOOD)
    assert counts(cleaned) == ({} if kept else {"long_word": 1})


def test_the_long_word_comes_before_the_punctuation_and_the_citation_marks():
    text = f"no end mark {'w' * 1001}\n{'[1]' * 334} here are five words.\n{GOOD}"
    cleaned = page_rules.clean_page(text, rules())
    assert (cleaned.text, counts(cleaned)) == (GOOD, {"long_word": 2})


def test_a_long_line_of_short_words_stays():
    line = "word " * 400 + "end."
    assert page_rules.clean_page(f"{line}\n{GOOD}", rules()).text == f"{line}\n{GOOD}"


def test_no_limit_of_word_length_is_the_code_of_2019():
    text = f"Here is a word {'w' * 5000}.\n{GOOD}"
    assert page_rules.clean_page(text, rules(max_word_chars=0)).text == text


def test_lines_after_the_one_that_drops_the_page_are_not_counted():
    text = f"menu\n{GOOD}\nNow here comes a {'{'} bracket.\nmenu\nmenu"
    cleaned = page_rules.clean_page(text, rules())
    assert cleaned.reason == "curly_bracket"
    assert (counts(cleaned), cleaned.kept_lines) == ({"no_terminal_punctuation": 1}, 1)


def test_a_page_of_too_few_sentences_counts_its_lines():
    cleaned = page_rules.clean_page("menu\nHere is only one sentence now.", rules())
    assert cleaned.reason == "few_sentences"
    assert (counts(cleaned), cleaned.kept_lines) == ({"no_terminal_punctuation": 1}, 1)


def test_a_bad_word_in_a_line_that_stays_drops_the_page():
    bad_word_rules = rules(lambda line: "bad" in line)
    assert page_rules.clean_page(f"This is a BAD line here.\n{GOOD}", bad_word_rules).reason == (
        "bad_word_in_line"
    )
    assert page_rules.clean_page(f"a bad menu\n{GOOD}", bad_word_rules).text == GOOD


def test_the_first_line_of_each_reason_is_the_example():
    text = f"menu one\nmenu two\nFour words are here.\nUse javascript in here, please.\n{GOOD}"
    assert page_rules.first_dropped_lines(text, rules()) == {
        "no_terminal_punctuation": "menu one",
        "few_words": "Four words are here.",
        "javascript": "Use javascript in here, please.",
    }


def test_examples_end_with_the_line_that_drops_the_page():
    text = "Lorem ipsum dolor sit amet there.\nmenu"
    assert page_rules.first_dropped_lines(text, rules()) == {
        "lorem_ipsum": "Lorem ipsum dolor sit amet there."
    }
    assert page_rules.first_dropped_lines(text, rules(enabled=False)) == {}


def by_definition(text, settings):
    """Apply the rules in the order of the definition, without any shortcut."""
    kept, dropped = [], dict.fromkeys(LINE_REASONS, 0)
    for line in text.splitlines():
        line = line.strip()
        if any(len(word) > settings.max_word_chars for word in line.split()):
            dropped["long_word"] += 1
            continue
        line = re.sub(r"\[\d*\]|\[edit\]|\[citation needed\]", "", line)
        if not line.endswith((".", "?", "!", '"')) or line.endswith("..."):
            dropped["no_terminal_punctuation"] += 1
            continue
        if len(line.split()) < settings.min_words_per_line:
            dropped["few_words"] += 1
            continue
        low = line.lower()
        if "lorem ipsum" in low:
            return "lorem_ipsum", "", dropped
        if "javascript" in low:
            dropped["javascript"] += 1
        elif "{" in line:
            return "curly_bracket", "", dropped
        elif any(policy in low for policy in page_rules.POLICY_TEXTS):
            dropped["policy"] += 1
        else:
            kept.append(line)
    if sum(len(SPLITTER.split(line)) for line in kept) < settings.min_sentences:
        return "few_sentences", "", dropped
    return None, "\n".join(kept).strip(), dropped


@given(st.lists(LINE_PIECES, max_size=60).map("".join))
def test_a_page_is_cleaned_by_the_definition(text):
    settings = CleanSettings(max_word_chars=25, min_words_per_line=3, min_sentences=2)
    cleaned = page_rules.clean_page(text, page_rules.CleanRules(settings, SPLITTER))
    dropped = dict(zip(LINE_REASONS, cleaned.dropped_lines, strict=True))
    assert (cleaned.reason, cleaned.text, dropped) == by_definition(text, settings)
