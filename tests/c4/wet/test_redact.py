"""Withdrawn pages lose their text and nothing else."""

import gzip
from pathlib import Path

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.reasons import WITHDRAWN
from t5repro.c4.wet.pages import read_pages
from t5repro.c4.wet.redact import redact
from t5repro.errors import CrawlError

BUNDLED = ROOT / "examples/mini/raw/crawl"


def record(url: str, text: str) -> str:
    return (
        f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Date: 2019-04-18T00:00:00Z\r\nContent-Length: {len(text.encode())}\r\n\r\n"
        f"{text}\r\n\r\n"
    )


def wet(path: Path, *records: str, packed: bool = False) -> Path:
    data = "".join(records).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_the_text_of_one_page_goes_and_its_record_keeps_its_place(
    tmp_path: Path, packed: bool
) -> None:
    path = wet(
        tmp_path / "x",
        record("http://a/", "One."),
        record("http://b/", "Two.\nContent-x: Two."),
        record("http://c/", "Three."),
        packed=packed,
    )
    before = list(read_pages(path))
    assert redact(path, lambda url: url == "http://b/") == 1
    after = list(read_pages(path))
    assert [page.record for page in after] == [0, 1, 2]
    assert [page.url for page in after] == [page.url for page in before]
    assert (after[0], after[2]) == (before[0], before[2])
    assert (after[1].text, after[1].fault) == ("", "no_content")
    data = path.read_bytes()
    assert b"Two" not in (gzip.decompress(data) if packed else data)
    assert (data[:2] == b"\x1f\x8b") is packed


@pytest.mark.parametrize("line_end", ["\r\n", "\n"])
def test_a_second_pass_over_a_redacted_file_changes_no_byte(tmp_path: Path, line_end: str) -> None:
    pages = [record(f"http://{name}/", "One.\n\nContent-x: Two.") for name in "abc"]
    path = wet(tmp_path / "x", *(page.replace("\r\n", line_end) for page in pages))
    redact(path, lambda url: url == "http://b/")
    once = path.read_bytes()
    redact(path, lambda url: url == "http://b/")
    assert path.read_bytes() == once
    redact(path, lambda url: url != "http://b/")
    all_redacted = path.read_bytes()
    redact(path, lambda url: True)
    assert path.read_bytes() == all_redacted


def test_a_page_of_a_file_of_warc_1_1_goes_alone(tmp_path: Path) -> None:
    pages = [record(f"http://{name}/", f"Text {name}.") for name in "abc"]
    path = wet(tmp_path / "x", *(page.replace("WARC/1.0", "WARC/1.1") for page in pages))
    assert redact(path, lambda url: url == "http://b/") == 1
    assert [page.text for page in read_pages(path)] == ["Text a.", "", "Text c."]


def test_a_page_that_merged_with_the_next_one_goes_with_it(tmp_path: Path) -> None:
    merged = record("http://c/", "Three.").replace("WARC/1.0", "WARC/1.1")
    texts = record("http://a/", "One."), record("http://b/", "Two."), merged
    path = wet(tmp_path / "x", *texts)

    def texts_without_b() -> list[str]:
        pages = read_pages(path, on_fault=lambda _: None, is_withdrawn=is_b)
        return [page.text for page in pages]

    def is_b(url: str) -> bool:
        return url == "http://b/"

    assert texts_without_b() == ["One.", ""]
    assert redact(path, is_b) == 1
    assert b"Two." not in path.read_bytes()
    assert texts_without_b() == ["One.", ""]


def test_without_such_a_page_the_file_keeps_every_byte(tmp_path: Path) -> None:
    path = wet(tmp_path / "x", record("http://a/", "One."), packed=True)
    before = path.read_bytes()
    assert redact(path, lambda url: url == "http://b/") == 0
    assert path.read_bytes() == before


def test_two_redactions_give_the_same_bytes(tmp_path: Path) -> None:
    records = [record(f"http://{name}/", f"{name}.") for name in "abc"]
    paths = [wet(tmp_path / name, *records, packed=True) for name in ("one", "two")]
    for path in paths:
        redact(path, lambda url: url == "http://a/")
    assert paths[0].read_bytes() == paths[1].read_bytes()


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.integers(0, 3))
def test_other_pages_keep_their_bytes_whatever_they_are(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], gone: int
) -> None:
    head = b"WARC/1.0\nWARC-Target-URI: http://%d/\nWARC-Date: x\n\n"
    path = tmp_path_factory.mktemp("wet") / "x"
    texts = [text.replace(b"WARC", b"") for text in texts]
    path.write_bytes(b"".join(head % at + text + b"\n\n" for at, text in enumerate(texts)))
    before = list(read_pages(path))
    redact(path, lambda url: url == f"http://{gone}/")
    after = list(read_pages(path))
    assert [p for at, p in enumerate(after) if at != gone] == [
        p for at, p in enumerate(before) if at != gone
    ]
    if gone < len(after):
        assert after[gone].text == ""


def test_a_bundled_shard_loses_a_domain_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes((BUNDLED / "MINI-2019-18-00000.warc.wet.gz").read_bytes())
    before = list(read_pages(path))
    assert redact(path, lambda url: "hill-and-dale" in url) > 10
    after = list(read_pages(path))
    assert [p for p in after if "hill-and-dale" not in p.url] == [
        p for p in before if "hill-and-dale" not in p.url
    ]
    assert {p.text for p in after if "hill-and-dale" in p.url} == {""}


def test_a_damaged_file_is_named_and_kept(tmp_path: Path) -> None:
    path = wet(tmp_path / "x", record("http://a/", "One."), packed=True)
    data = path.read_bytes()[:-9]
    path.write_bytes(data)
    with pytest.raises(CrawlError, match="cannot be read"):
        redact(path, lambda url: True)
    assert path.read_bytes() == data


def test_a_withdrawn_page_is_read_without_text_and_for_that_reason(tmp_path: Path) -> None:
    path = wet(tmp_path / "x", record("http://a/", "One."), record("http://b/", ""))
    pages = list(read_pages(path, is_withdrawn=lambda url: url in ("http://a/", "http://b/")))
    assert [(page.text, page.fault) for page in pages] == [("", WITHDRAWN)] * 2
