"""What the reader of a job's WET files shows."""

import pytest

from t5repro.c4.wet.pages import read_pages
from t5repro.c4.wet.reader import CleanTally, Reader, megabytes
from t5repro.data.crawl_lists import CrawlFiles, LocalCopies, fetch_address
from t5repro.progress import Progress

RECORD = (
    "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a/{number}\r\n"
    "WARC-Date: 2019-04-18T00:00:00Z\r\n\r\nText of page {number}.\r\n\r\n\r\n"
)


def test_the_last_line_of_progress_has_all_pages(tmp_path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "a.warc.wet"
    path.write_bytes("".join(RECORD.format(number=number) for number in range(7)).encode())
    tally = CleanTally()
    with Progress("c4_clean", total=None, unit="MB") as progress:
        pages = list(Reader(190_000, tally, progress=progress).usable_pages(path))
    assert len(pages) == tally.read["read"] == 7
    last = capsys.readouterr().err.splitlines()[-1]
    assert " pages=7 " in last
    assert last.endswith("(done)")


def test_a_file_of_less_than_a_megabyte_is_one_of_one_megabyte(
    tmp_path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "a.warc.wet"
    path.write_bytes(RECORD.format(number=1).encode())
    copies = LocalCopies(CrawlFiles((path,), {}), tmp_path, fetch_address)
    with Progress("c4_clean", total=megabytes(copies), unit="MB") as progress:
        list(Reader(190_000, CleanTally(), progress=progress).usable_pages(path))
    first, last = capsys.readouterr().err.splitlines()
    assert first == "c4_clean: 0/1 MB (started)"
    assert last.startswith("c4_clean: 1/1 MB ")


def test_a_plain_file_that_shrinks_while_it_is_read_is_a_fault_and_its_last_page_is_dropped(
    tmp_path,
):
    path = tmp_path / "a.warc.wet"
    path.write_bytes("".join(RECORD.format(number=number) for number in range(9000)).encode())
    size, found = path.stat().st_size, []

    def shrink(_: int) -> None:
        with path.open("r+b") as handle:
            handle.truncate(size // 2)

    pages = list(read_pages(path, advance=shrink, on_fault=found.append))
    assert [fault.reason for fault in found] == ["file_shrank"]
    assert found[0].place == f"bytes {size // 2} to {size}"
    assert 4000 < len(pages) < 5000
    assert all(page.text == f"Text of page {number}." for number, page in enumerate(pages))
