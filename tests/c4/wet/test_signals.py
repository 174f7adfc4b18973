"""What a page reserves or mentions, read from the headers and elements that WAT files keep."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_wat import envelope, response

from t5repro.c4.reasons import SIGNAL_REASONS, SIGNALS
from t5repro.c4.wet.signals import OF_SOURCE, mentioned, signals_of_response
from t5repro.config.sections.c4 import SignalsSettings

URL = "http://a.example/"
CC = "https://creativecommons.org/licenses/by-sa/4.0/"


def signals(**parts):
    return signals_of_response(envelope(URL, response(**parts)))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"TDM-Reservation": "1"}, {"tdm_reserved"}),
        ({"tdm-reservation": " 1 "}, {"tdm_reserved"}),
        ({"tdm-reservation": "0"}, set()),
        ({"Content-Usage": "train-ai=n"}, {"usage_refused"}),
        ({"Content-Usage": "search=y, TRAIN-AI=N;x=1"}, {"usage_refused"}),
        ({"Content-Usage": "ai=n"}, {"usage_refused"}),
        ({"Content-Usage": "search=n, train-ai=y"}, set()),
        ({"X-Robots-Tag": "noai, noimageai"}, {"noai"}),
        ({"X-Robots-Tag": "NoIndex"}, {"noindex"}),
        ({"X-Robots-Tag": "none"}, {"noindex"}),
        ({"X-Robots-Tag": "noimageai"}, set()),
        ({"X-Robots-Tag": "ccbot: noai, noindex"}, {"noai", "noindex"}),
        ({"X-Robots-Tag": "googlebot: noindex, noai"}, set()),
        ({"X-Robots-Tag": "noai, googlebot: noindex"}, {"noai"}),
        ({"X-Robots-Tag": "unavailable_after: 25 Jun 2030 15:00:00 PST, noai"}, {"noai"}),
        ({"X-Robots-Tag": "max-snippet: 5, noindex"}, {"noindex"}),
        # A header that is sent twice is a list.
        ({"X-Robots-Tag": ["googlebot: noindex", "noai"]}, {"noai"}),
        ({"TDM-Reservation": ["0", "1"]}, {"tdm_reserved"}),
        ({"X-Robots": "noai", "Robots": "noindex", "TDM-Policy": "1"}, set()),
    ],
)
def test_headers_reserve_what_their_drafts_say(headers, expected):
    assert signals(headers=headers) == expected


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"name": "robots", "content": "noai,noindex"}, {"noai", "noindex"}),
        ({"name": "ROBOTS", "content": " NoAI "}, {"noai"}),
        ({"name": "CCBot", "content": "noindex"}, {"noindex"}),
        ({"name": "googlebot", "content": "noindex, noai"}, set()),
        ({"name": "description", "content": "noai, noindex"}, set()),
        ({"name": "robots", "content": "index, follow"}, set()),
        ({"name": "tdm-reservation", "content": "1"}, {"tdm_reserved"}),
        ({"name": "tdm-reservation", "content": "0"}, set()),
        ({"property": "robots", "content": "noai"}, set()),
    ],
)
def test_metadata_for_every_robot_or_for_the_one_of_the_crawl_count(meta, expected):
    assert signals(metas=[{"name": "viewport"}, meta]) == expected


def test_a_link_to_a_licence_is_a_mention() -> None:
    licence, commons = "mentions_licence_link", "mentions_creative_commons"
    assert signals(links=[{"path": "A@/href", "url": CC, "rel": "nofollow license"}]) == {
        licence,
        commons,
    }
    assert signals(head_links=[{"url": "/terms", "rel": "license"}]) == {licence}
    assert signals(links=[{"url": CC.replace("https:", "")}]) == {commons}
    assert signals(links=[{"url": "https://creativecommons.org/about/"}]) == set()
    assert signals(links=[{"url": "/a?see=creativecommons.org/licenses/by/4.0"}]) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Text under CC BY-SA 4.0.", ["mentions_creative_commons"]),
        ("see creativecommons.org/licenses/by/2.0", ["mentions_creative_commons"]),
        ("CC0 and cc-by-nc-nd", ["mentions_creative_commons"]),
        ("© 2013 Fig. All Rights Reserved.", ["mentions_all_rights_reserved"]),
        ("CC BYE, ACC BY, overall rights reservedly", []),
        ("creativecommons.org", []),
    ],
)
def test_words_in_the_text_are_mentions(text, expected):
    assert list(mentioned(text.encode())) == expected


KEYS = (
    *("Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "HTML-Metadata", "Head", "Metas"),
    *("Link", "Links", "Headers", "X-Robots-Tag", "name", "content", "rel", "url"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["Headers", "HTML-Metadata", "Head", "Metas", "Link", "Links", ""]))
def test_no_value_of_another_type_stops_the_reading(value, place):
    whole = envelope(URL, response(headers={"X-Robots-Tag": "noai"}))
    part = whole["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]
    if place in ("Metas", "Link"):
        part["HTML-Metadata"]["Head"][place] = value
    elif place in ("Head", "Links"):
        part["HTML-Metadata"][place] = value
    elif place:
        part[place] = value
    found = signals_of_response(json.loads(json.dumps(whole if place else value)))
    assert found is None or found <= set(SIGNALS)
    assert place in ("", "Headers") or "noai" in found


def test_a_record_without_a_response_says_nothing() -> None:
    assert signals_of_response(envelope(URL)) is None
    assert signals_of_response([]) is None
    assert signals_of_response(envelope(URL, response())) == frozenset()


def test_the_settings_drop_the_signals_that_have_a_reason() -> None:
    drop = list(SIGNAL_REASONS)
    assert SignalsSettings(source="wat", drop=drop).drop == drop
    with pytest.raises(ValueError, match="source 'text' drops no page"):
        SignalsSettings(source="text", drop=["noai"])
    with pytest.raises(ValueError, match="more than once"):
        SignalsSettings(source="wat", drop=["noai", "noai"])
    with pytest.raises(ValueError, match="Input should be"):
        SignalsSettings(source="wat", drop=["mentions_licence_link"])
    assert set(OF_SOURCE["wat"]) | set(OF_SOURCE["text"]) == set(SIGNALS)
