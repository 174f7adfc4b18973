"""Decisions from hashes are those of the definition in docs/three_sentence_spans.md."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.dedup.duplicates import UNIT_ROW, URL_ROW, duplicate_spans, duplicate_urls
from t5repro.c4.dedup.shorten import remove_lines, remove_spans
from t5repro.c4.dedup.spans import line_keys, span_keys
from t5repro.c4.keys import key_halves, md5
from t5repro.c4.tables import POSITION
from t5repro.c4.text.sentences import SentenceSplitter

SPLITTER = SentenceSplitter()
A, B, C, D, E = ("A is one.", "B is two.", "C is three.", "D is four.", "E is five.")


def hex_md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def url_rows(*rows):
    """Rows of (key, timestamp, file, record); the number of a row says which it was."""
    table = np.zeros(len(rows), dtype=URL_ROW)
    for number, (key, timestamp, file, record) in enumerate(rows):
        table[number] = (key, key, timestamp, file, record, 0, number)
    return table


def older_rows(*rows):
    return sorted(duplicate_urls(url_rows(*rows))["row"].tolist())


def test_the_newest_page_of_a_url_stays():
    assert older_rows((7, b"2019-04-01", 0, 0), (7, b"2019-04-02", 0, 1), (7, b"2018", 0, 2)) == [
        0,
        2,
    ]
    assert older_rows((7, b"2019", 0, 0), (8, b"2018", 0, 1)) == []
    assert older_rows() == []


def test_timestamps_compare_as_text():
    assert older_rows((7, b"9", 0, 0), (7, b"10", 0, 1)) == [1]


def test_of_equal_dates_the_first_file_and_record_stays():
    assert older_rows((7, b"2019", 1, 0), (7, b"2019", 0, 9), (7, b"2019", 0, 3)) == [0, 1]


def test_keys_that_share_one_half_are_different():
    rows = url_rows((7, b"2019", 0, 0), (7, b"2019", 0, 1))
    rows["low"] = [1, 2]
    assert len(duplicate_urls(rows)) == 0
    rows["low"] = [1, 1]
    assert len(duplicate_urls(rows)) == 1


def decide(pages, unit):
    """Remove duplicates from pages {url: text}; return {url: remaining text}."""
    rows, urls = [], list(pages)
    for number, (url, text) in enumerate(pages.items()):
        url_md5 = key_halves(md5(url))[0]
        if unit == "line":
            keys = line_keys(text)
            positions = [(line, 0, 0) for line in range(len(keys) // 16)]
        else:
            keys, data = span_keys(text, SPLITTER)
            positions = np.frombuffer(data, POSITION).tolist()
        for key, position in zip(key_halves(keys), positions, strict=True):
            rows.append((*key, *url_md5, 0, number, *position))
    removals = duplicate_spans(np.array(rows, dtype=UNIT_ROW))
    remaining = {}
    for number, url in enumerate(urls):
        removed = removals[removals["row"] == number]
        if not len(removed):
            remaining[url] = pages[url]
        elif unit == "line":
            remaining[url] = remove_lines(pages[url], removed)
        else:
            positions = removed[list(POSITION.names)]
            remaining[url] = remove_spans(pages[url], positions, SPLITTER)
    return remaining


URLS = sorted((f"http://{number}" for number in range(6)), key=hex_md5)


def test_the_page_with_the_smallest_md5_keeps_a_line_and_its_first_copy():
    pages = {URLS[1]: "x\nY\nz", URLS[0]: "y\nw\nY \nW"}
    assert decide(pages, "line") == {URLS[1]: "x\nz", URLS[0]: "y\nw"}


def test_the_example_of_the_documentation_holds():
    one, two, three, four, five, zero = (
        f"{word} is here." for word in ("One", "Two", "Three", "Four", "Five", "Zero")
    )
    pages = {
        URLS[2]: f"{two} {three}",
        URLS[0]: f"{one} {two} {three} {four}",
        URLS[1]: f"{zero} {one} {two} {three} {five}",
    }
    assert decide(pages, "three_sentence_span") == {
        URLS[2]: f"{two} {three}",
        URLS[0]: f"{one} {two} {three} {four}",
        URLS[1]: f"{zero} {five}",
    }


def test_a_span_twice_in_its_own_page_stays_once():
    span = f"{A} {B} {C}"
    assert decide({URLS[0]: f"{span}\n{D}\n{span} {E}"}, "three_sentence_span") == {
        URLS[0]: f"{span}\n{D}\n{E}"
    }


@pytest.mark.parametrize("copies", [3, 4, 5, 6, 7, 9])
def test_a_sentence_repeated_in_its_line_stays_three_times(copies):
    assert decide({URLS[0]: " ".join([A] * copies)}, "three_sentence_span") == {
        URLS[0]: f"{A} {A} {A}"
    }


def test_a_whole_short_line_equals_only_another_whole_line():
    pages = {URLS[0]: f"{A} {B}", URLS[1]: f"{C} {A} {B} {D}\n{A} {B}\n{A}"}
    assert decide(pages, "three_sentence_span") == {
        URLS[0]: f"{A} {B}",
        URLS[1]: f"{C} {A} {B} {D}\n{A}",
    }


def by_definition(pages, unit):
    """Apply the definition to the text: pages in the order of MD5, units in their order."""
    first_copies, remaining = {}, {}
    for url in sorted(pages, key=hex_md5):
        kept_lines = []
        for number, line in enumerate(pages[url].split("\n")):
            if unit == "line":
                key = line.strip().lower()
                if first_copies.setdefault(key, (url, number)) == (url, number):
                    kept_lines.append(line)
                continue
            sentences = SPLITTER.split(line.strip())
            width = min(3, len(sentences))
            removed = set()
            for start in range(len(sentences) - width + 1):
                key = tuple(text.lower() for text in sentences[start : start + width])
                first = first_copies.setdefault(key, (url, number, start))
                if first != (url, number, start):
                    kept = set()
                    if first[:2] == (url, number):
                        kept = set(range(first[2], first[2] + width))
                    removed |= set(range(start, start + width)) - kept
            if removed:
                line = " ".join(
                    text for index, text in enumerate(sentences) if index not in removed
                )
            if line:
                kept_lines.append(line)
        remaining[url] = "\n".join(kept_lines)
    return remaining


LINES = st.lists(st.sampled_from([A, B, C, D, A.upper()]), min_size=1, max_size=7).map(" ".join)
PAGES = st.dictionaries(
    st.sampled_from(URLS), st.lists(LINES, min_size=1, max_size=4).map("\n".join), min_size=1
)


@given(PAGES, st.sampled_from(["line", "three_sentence_span"]))
def test_decisions_from_hashes_are_those_of_the_definition(pages, unit):
    assert decide(pages, unit) == by_definition(pages, unit)


@given(PAGES, st.sampled_from(["line", "three_sentence_span"]), st.randoms())
def test_decisions_do_not_depend_on_the_order_of_pages(pages, unit, random):
    shuffled = list(pages.items())
    random.shuffle(shuffled)
    assert decide(dict(shuffled), unit) == decide(pages, unit)


@given(PAGES)
def test_no_sentence_is_lost_from_all_pages(pages):
    def sentences(texts):
        return {
            sentence.lower()
            for text in texts
            for line in text.split("\n")
            for sentence in SPLITTER.split(line)
        }

    remaining = decide(pages, "three_sentence_span")
    assert sentences(remaining.values()) == sentences(pages.values())
