import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4 import keys as c4_keys
from t5repro.c4.dedup.duplicates import UNIT_ROW, URL_ROW, duplicate_spans, duplicate_urls
from t5repro.c4.dedup.shorten import has_enough_sentences, remove_lines, remove_spans, text_at
from t5repro.c4.dedup.spans import line_keys, span_keys
from t5repro.c4.tables import POSITION
from t5repro.c4.text.sentences import SentenceSplitter

SPLITTER = SentenceSplitter()
A, B, C, D, E = ("A is one.", "B is two.", "C is three.", "D is four.", "E is five.")


def md5(text):
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def places(*items):
    return np.array(list(items), dtype=POSITION)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("http://a.b/c", "a.b/c"),
        ("https://www.a.b/c/", "a.b/c"),
        ("http://www.www.a", "www.a"),
        ("HTTP://a.b", "HTTP://a.b"),
        ("www.a.b", "www.a.b"),
        ("http://a/?utm_source=x", "a"),
        ("http://a?ref=1#top", "a"),
        ("http://a?referrer", "a"),
        ("http://a?feed", "a"),
        ("http://a?x=1&utm_source=y", "a?x=1&utm_source=y"),
        ("http://A.b/C#top/", "A.b/C#top"),
        ("http://a/redirect?to=https://www.b/", "a/redirect?to=b"),
        ("http://a///", "a"),
        ("https://", ""),
    ],
)
def test_urls_are_normalised_as_in_the_released_code(url, normal):
    assert c4_keys.normalize_url(url) == normal


def test_keys_are_the_md5_of_the_lower_cased_stripped_lines():
    keys = line_keys(" One Line. \nΟΔΟΣ\n")
    assert keys.hex() == md5("one line.") + md5("οδος") + md5("")


@given(st.text("AaΣσİıǰẞ'.·\u0301\u00ad \t\n\r\x1c\x85\u2028\ud7ff", max_size=40))
def test_the_key_of_a_line_does_not_depend_on_its_page(text):
    keys = "".join(md5(line.lower().strip()) for line in text.split("\n"))
    assert line_keys(text).hex() == keys


def test_halves_of_keys_order_as_the_hexadecimal_text_does():
    keys = [c4_keys.md5(str(number)) for number in range(200)]
    halves = c4_keys.key_halves(b"".join(keys))
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    assert [keys[at] for at in order] == sorted(keys)


@pytest.mark.parametrize("modulus", [2, 3, 40, 257, 1000])
def test_the_split_takes_the_whole_key(modulus):
    urls = [f"a.b/{number}" for number in range(300)]
    held_out = [c4_keys.is_validation(c4_keys.md5(url), modulus) for url in urls]
    assert held_out == [int(md5(url), 16) % modulus == 0 for url in urls]


def url_rows(*rows):
    """Rows of (key, timestamp, file, record); the number of a row says which it was."""
    table = np.zeros(len(rows), dtype=URL_ROW)
    for number, (key, timestamp, file, record) in enumerate(rows):
        table[number] = (key, key, timestamp, file, record, 0, number)
    return table


def losers(*rows):
    return sorted(duplicate_urls(url_rows(*rows))["row"].tolist())


def test_the_newest_page_of_a_url_stays():
    assert losers((7, b"2019-04-01", 0, 0), (7, b"2019-04-02", 0, 1), (7, b"2018", 0, 2)) == [0, 2]
    assert losers((7, b"2019", 0, 0), (8, b"2018", 0, 1)) == []
    assert losers() == []


def test_timestamps_compare_as_text():
    assert losers((7, b"9", 0, 0), (7, b"10", 0, 1)) == [1]


def test_of_equal_dates_the_first_file_and_record_stays():
    assert losers((7, b"2019", 1, 0), (7, b"2019", 0, 9), (7, b"2019", 0, 3)) == [0, 1]


def test_keys_that_share_one_half_are_different():
    rows = url_rows((7, b"2019", 0, 0), (7, b"2019", 0, 1))
    rows["low"] = [1, 2]
    assert len(duplicate_urls(rows)) == 0
    rows["low"] = [1, 1]
    assert len(duplicate_urls(rows)) == 1


def test_line_removal_keeps_the_rest_as_it_is():
    assert remove_lines("a \n b\nc", places((1, 0, 0))) == "a \nc"
    assert remove_lines("a", places((0, 0, 0))) == ""


def units_of(text):
    keys, found = span_keys(text, SPLITTER)
    tuples = [tuple(item) for item in np.frombuffer(found, POSITION).tolist()]
    return list(
        zip([keys[at : at + 16].hex() for at in range(0, len(keys), 16)], tuples, strict=True)
    )


def test_a_line_of_four_sentences_has_two_spans_and_a_shorter_one_is_one():
    assert units_of(f" {A} {B}  {C} {D}\n{E} {A}\n{B}") == [
        (md5("a is one.\nb is two.\nc is three."), (0, 0, 3)),
        (md5("b is two.\nc is three.\nd is four."), (0, 1, 3)),
        (md5("e is five.\na is one."), (1, 0, 2)),
        (md5("b is two."), (2, 0, 1)),
    ]


def test_spans_of_nothing_but_end_marks_are_not_compared():
    assert [place for _, place in units_of(f"{A} . . . ? !")] == [(0, 0, 3), (0, 1, 3)][:1]
    assert units_of("! ? !\n.") == []
    assert units_of("") == []


def test_removed_sentences_leave_the_others_joined_by_one_blank():
    text = f"{A}   {B} {C} {D}\n {E}  {A} \n{B}"
    assert remove_spans(text, places((0, 1, 2)), SPLITTER) == f"{A} {D}\n {E}  {A} \n{B}"
    assert remove_spans(text, places((0, 0, 3), (0, 1, 3)), SPLITTER) == f" {E}  {A} \n{B}"
    assert remove_spans(A, places((0, 0, 1)), SPLITTER) == ""


def test_the_text_at_a_place_is_its_unit():
    text = f"{A} {B} {C}\n {D}"
    assert text_at(text, places((0, 1, 2))[0], SPLITTER) == f"{B} {C}"
    assert text_at(text, places((1, 0, 0))[0], SPLITTER) == f" {D}"


def decide(pages, unit):
    """Decide on pages {url: text}; return {url: what is left}."""
    rows, urls = [], list(pages)
    for number, (url, text) in enumerate(pages.items()):
        owner = c4_keys.key_halves(c4_keys.md5(url))[0]
        if unit == "line":
            keys = line_keys(text)
            found = [(line, 0, 0) for line in range(len(keys) // 16)]
        else:
            keys, data = span_keys(text, SPLITTER)
            found = np.frombuffer(data, POSITION).tolist()
        for key, place in zip(c4_keys.key_halves(keys), found, strict=True):
            rows.append((*key, *owner, 0, number, *place))
    lost = duplicate_spans(np.array(rows, dtype=UNIT_ROW))
    left = {}
    for number, url in enumerate(urls):
        gone = lost[lost["row"] == number][list(POSITION.names)]
        if not len(gone):
            left[url] = pages[url]
        elif unit == "line":
            left[url] = remove_lines(pages[url], gone)
        else:
            left[url] = remove_spans(pages[url], gone, SPLITTER)
    return left


URLS = sorted((f"http://{number}" for number in range(6)), key=md5)


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


def straight(pages, unit):
    """The definition, straight from the text: pages in the order of MD5, units in their order."""
    seen, left = {}, {}
    for url in sorted(pages, key=md5):
        kept_lines = []
        for number, line in enumerate(pages[url].split("\n")):
            if unit == "line":
                key = line.strip().lower()
                if seen.setdefault(key, (url, number)) == (url, number):
                    kept_lines.append(line)
                continue
            sentences = SPLITTER.split(line.strip())
            width = min(3, len(sentences))
            gone = set()
            for start in range(len(sentences) - width + 1):
                key = tuple(item.lower() for item in sentences[start : start + width])
                first = seen.setdefault(key, (url, number, start))
                if first != (url, number, start):
                    keep = set()
                    if first[:2] == (url, number):
                        keep = set(range(first[2], first[2] + width))
                    gone |= set(range(start, start + width)) - keep
            if gone:
                line = " ".join(item for at, item in enumerate(sentences) if at not in gone)
            if line:
                kept_lines.append(line)
        left[url] = "\n".join(kept_lines)
    return left


LINES = st.lists(st.sampled_from([A, B, C, D, A.upper()]), min_size=1, max_size=7).map(" ".join)
PAGES = st.dictionaries(
    st.sampled_from(URLS), st.lists(LINES, min_size=1, max_size=4).map("\n".join), min_size=1
)


@given(PAGES, st.sampled_from(["line", "three_sentence_span"]))
def test_decisions_from_hashes_are_those_of_the_definition(pages, unit):
    assert decide(pages, unit) == straight(pages, unit)


@given(PAGES, st.sampled_from(["line", "three_sentence_span"]), st.randoms())
def test_decisions_do_not_depend_on_the_order_of_pages(pages, unit, random):
    shuffled = list(pages.items())
    random.shuffle(shuffled)
    assert decide(dict(shuffled), unit) == decide(pages, unit)


@given(PAGES)
def test_no_sentence_is_lost_from_all_pages(pages):
    def sentences(texts):
        return {
            item.lower()
            for text in texts
            for line in text.split("\n")
            for item in SPLITTER.split(line)
        }

    left = decide(pages, "three_sentence_span")
    assert sentences(left.values()) == sentences(pages.values())


@pytest.mark.parametrize(("count", "lines", "whole"), [(2, True, True), (3, True, False)])
def test_the_whole_text_can_have_fewer_sentences_than_its_lines(count, lines, whole):
    text = "He is J.\nsmith by name.\nAnd one more."
    for whole_text, expected in ((False, lines), (True, whole)):
        assert expected == has_enough_sentences(
            text, count=count, whole_text=whole_text, splitter=SPLITTER
        )


def test_no_sentence_asked_for_is_always_there():
    for whole_text in (True, False):
        assert has_enough_sentences("", count=0, whole_text=whole_text, splitter=SPLITTER)
