"""A page finds its record in the WAT file; what cannot be read there is unknown and never free."""

import json

import pytest
from made_wat import DATE, envelope, response, wat_record, write_wat

from t5repro.c4.wet import faults, wat
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.pages import read_pages
from t5repro.c4.wet.wat import mentions_of, read_wat
from t5repro.errors import CrawlError

URL = "http://a.example/1"
NOAI = response(headers={"X-Robots-Tag": "noai"})
UNKNOWN = ("unknown",)
LIMITS = Limits(record_chars=20_000)


def wet_record(url, *, refers_to="", date=DATE, text="A page."):
    reference = f"WARC-Refers-To: {refers_to}\r\n" if refers_to else ""
    return (
        f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"{reference}Content-Type: text/plain\r\n\r\n{text}\r\n\r\n"
    )


@pytest.fixture
def found(tmp_path, write_wet):
    """Return the signals of the pages of some records, and the kinds and details of faults."""

    def signals(wet, *records, limits=LIMITS):
        found_faults = []
        wat_file = write_wat(tmp_path / "pages.warc.wat.gz", *records)
        signals_of = read_wat(wat_file, limits, found_faults.append)
        pages = read_pages(write_wet(wet), signals_of=signals_of, on_fault=lambda fault: None)
        return [page.signals for page in pages], [
            (fault.reason, fault.detail) for fault in found_faults
        ]

    return signals


def test_a_reference_finds_the_response_and_else_its_url_with_its_date(found) -> None:
    records = [
        wat_record(URL, envelope(URL, kind="request"), refers_to="<urn:uuid:0>"),
        wat_record(URL, envelope(URL, NOAI), refers_to="<urn:uuid:1>"),
        wat_record("http://b.example/", envelope("http://b.example/", response())),
    ]
    wet = [
        wet_record("http://moved.example/", refers_to="<urn:uuid:1>"),
        wet_record(URL, refers_to="<urn:uuid:9>"),
        wet_record(URL),
        wet_record(URL, date="2019-05-01T00:00:00Z"),
        wet_record("http://b.example/"),
        wet_record("http://c.example/"),
    ]
    # The third page has the date in the JSON: the header's is when the WAT file was made.
    assert found(wet, *records) == ([("noai",)] * 3 + [UNKNOWN, (), UNKNOWN], [])


def test_a_record_of_a_request_alone_leaves_its_page_unknown(found) -> None:
    record = wat_record(URL, envelope(URL, kind="request"), refers_to="<urn:uuid:1>")
    assert found([wet_record(URL, refers_to="<urn:uuid:1>")], record) == ([UNKNOWN], [])


def test_what_one_of_two_records_of_a_page_reserves_is_reserved(found) -> None:
    free = wat_record(URL, envelope(URL, response()))
    reserved = wat_record(URL, envelope(URL, NOAI))
    for records in ((free, reserved), (reserved, free)):
        assert found([wet_record(URL)], *records) == ([("noai",)], [])


def test_merged_records_have_the_signals_of_all(found) -> None:
    first = wet_record(URL, refers_to="<urn:uuid:1>").rstrip()
    second = wet_record("http://b.example/", refers_to="<urn:uuid:2>").replace("/1.0", "/1.1")
    records = [wat_record(URL, envelope(URL, NOAI), refers_to="<urn:uuid:1>")]
    assert found([first + "\n" + second], *records)[0] == [("noai", "unknown")]
    # A page cannot name the record of another to look free.
    other = wat_record(URL, envelope("http://c.example/", response()), refers_to="<urn:uuid:3>")
    text = "A page.\nWARC-Refers-To: <urn:uuid:3>"
    page = wet_record(URL, refers_to="<urn:uuid:1>", text=text)
    assert found([page], *records, other)[0] == [("noai",)]


DAMAGED = json.dumps(envelope(URL, NOAI)).encode()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (DAMAGED[:-1], "delimiter"),
        (DAMAGED.replace(b'"noai"', b'"\xff"'), "utf-8"),
        (DAMAGED[:-1] + b', "Envelope": {}}', "'Envelope' is set twice"),
        (DAMAGED[:-1] + b', "a": ' + b"[" * 99 + b"]" * 99 + b"}", "more than 64 levels deep"),
        (DAMAGED[:-1] + b', "a": ' + b"[" * 9000 + b"]" * 9000 + b"}", "levels deep"),
        (DAMAGED[:-1] + b', "a": 1e999}', "too large"),
        (DAMAGED[:-1] + b', "a": NaN}', "is not a number of JSON"),
        (DAMAGED[:-1] + b', "a": "' + b"x" * 30_000 + b'"}', "longer than c4.limits.record_chars"),
    ],
    ids=["cut", "bytes", "twice", "deep", "deeper", "large", "constant", "long"],
)
def test_a_record_that_cannot_be_read_is_a_fault_and_its_page_unknown(found, body, why):
    good = "http://good.example/"
    records = [wat_record(URL, body), wat_record(good, envelope(good, NOAI))]
    signals, ((reason, detail),) = found([wet_record(URL), wet_record(good)], *records)
    assert signals == [UNKNOWN, ("noai",)]
    assert reason == faults.WAT_RECORD
    assert detail.startswith("record 1 of this WAT file cannot be read (")
    assert why in detail


def test_more_responses_than_the_limit_are_unknown(found, monkeypatch) -> None:
    monkeypatch.setattr(wat, "MAX_RESPONSES", 2)
    urls = [f"http://a.example/{number}" for number in range(3)]
    records = [
        wat_record(url, envelope(url, response()), refers_to=f"<urn:uuid:{number}>")
        for number, url in enumerate(urls)
    ]
    signals, ((reason, detail),) = found([wet_record(url) for url in urls], *records)
    assert signals == [(), (), UNKNOWN]
    assert reason == faults.WAT_RECORD
    assert "behind 2 others" in detail


def test_damage_and_absence_of_the_file_leave_pages_unknown(tmp_path, write_wet) -> None:
    wet = write_wet([wet_record(URL)])
    path = write_wat(tmp_path / "pages.warc.wat.gz", wat_record(URL, envelope(URL, NOAI)))
    cut = tmp_path / "cut.warc.wat.gz"
    cut.write_bytes(path.read_bytes()[:-20])
    for file, reason in (
        (cut, faults.GZIP_CUT),
        (tmp_path / "absent.warc.wat.gz", faults.MISSING_FILE),
    ):
        named = []
        (page,) = read_pages(wet, signals_of=read_wat(file, LIMITS, named.append))
        assert page.signals == UNKNOWN
        assert [fault.reason for fault in named][:1] == [reason]
        with pytest.raises(CrawlError, match=file.name):
            read_wat(file, LIMITS, faults.stop)


def test_the_text_of_a_page_has_mentions_only(write_wet) -> None:
    texts = ("All rights reserved.", "Under CC BY-SA 4.0, all rights reserved.", "noai")
    wet = write_wet([wet_record(URL, text=text) for text in texts])
    assert [page.signals for page in read_pages(wet, signals_of=mentions_of)] == [
        ("mentions_all_rights_reserved",),
        ("mentions_creative_commons", "mentions_all_rights_reserved"),
        (),
    ]
    assert [page.signals for page in read_pages(wet)] == [()] * 3
