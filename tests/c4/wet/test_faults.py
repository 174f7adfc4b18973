"""Damaged crawl files, made here byte by byte: what is lost, what is said, what stays."""

import base64
import gzip
import json
import random
import subprocess
import sys
import zlib

import pytest

from t5repro.c4.wet import faults, gzip_members
from t5repro.c4.wet import pages as wet_pages
from t5repro.errors import CrawlError

COUNT = 9


def text_of(number):
    return f"Page number {number} has a line of its own. " + "And so on. " * (5 + 40 * number)


@pytest.fixture
def records(wet_record):
    return [wet_record(f"http://a/{number}", text_of(number)) for number in range(COUNT)]


def members_of(records):
    return [gzip.compress(item.encode(), mtime=0) for item in records]


def read(path, **limits):
    """Return the numbers of the pages that can be used, and what was wrong."""
    log = faults.FaultLog()
    pages = list(wet_pages.read_pages(path, limits=gzip_members.Limits(**limits), on_fault=log.add))
    for page in pages:
        if fault := wet_pages.page_fault(path, page):
            log.add(fault)
    numbers = [int(page.url.rpartition("/")[2]) for page in pages if page.fault is None]
    for page in pages:
        if page.fault is None:
            assert page.text == text_of(int(page.url.rpartition("/")[2])).strip()
    return numbers, log.to_json()


def all_but(*lost):
    return [number for number in range(COUNT) if number not in lost]


def reasons(found):
    return found["counts"]


def test_a_cut_file_loses_its_last_page_and_names_the_byte(tmp_path, records):
    parts = members_of(records)
    path = tmp_path / "cut.warc.wet.gz"
    path.write_bytes(b"".join(parts)[:-20])
    begin = sum(map(len, parts[:-1]))
    numbers, found = read(path)
    assert numbers == all_but(COUNT - 1)
    assert found == {
        "counts": {"gzip_cut": 1},
        "named": [
            {
                "file": "cut.warc.wet.gz",
                "place": f"bytes {begin} to {path.stat().st_size}",
                "reason": "gzip_cut",
                "detail": f"the gzip member that begins at byte {begin} is cut off at the end of "
                "the file",
            }
        ],
    }
    with pytest.raises(CrawlError, match=rf"cut\.warc\.wet\.gz: .* at byte {begin} is cut off at"):
        list(wet_pages.read_pages(path))


@pytest.mark.parametrize("lost", [0, 4, 8])
@pytest.mark.parametrize("where", ["magic", "header", "deflate", "late", "crc", "length"])
def test_a_flipped_byte_in_a_member_loses_its_page_and_no_other(tmp_path, records, lost, where):
    parts = members_of(records)
    data = bytearray(parts[lost])
    at = {"magic": 0, "header": 3, "deflate": 40, "late": len(data) - 12, "crc": -6, "length": -2}
    data[at[where]] ^= 0xFF if where in ("magic", "header") else 0x55
    parts[lost] = bytes(data)
    path = tmp_path / "flipped.wet.gz"
    path.write_bytes(b"".join(parts))
    numbers, found = read(path)
    assert numbers == all_but(lost)
    # What ends the last member may be what the flip destroyed.
    reason = "gzip_cut" if (lost, where) == (8, "late") else "gzip_damaged"
    assert reasons(found) == {reason: 1}
    begin = sum(map(len, parts[:lost]))
    assert found["named"][0]["place"] == f"bytes {begin} to {begin + len(parts[lost])}"


def test_every_single_flip_in_a_member_loses_that_page_alone(tmp_path, records):
    parts = members_of(records[:3])
    path = tmp_path / "flipped.wet.gz"
    changed = 0
    for at in range(len(parts[1])):
        data = bytearray(parts[1])
        data[at] ^= 1 << at % 8
        path.write_bytes(parts[0] + bytes(data) + parts[2])
        numbers, found = read(path)
        # Four header bytes tell a time, a system and a level, which nothing depends on.
        assert numbers in ([0, 2], [0, 1, 2])
        assert (numbers == [0, 2]) == (reasons(found) == {"gzip_damaged": 1})
        changed += numbers == [0, 2]
    assert changed >= len(parts[1]) - 8


def test_damage_in_several_places_is_told_one_by_one(tmp_path, records):
    parts = members_of(records)
    for number in (2, 3, 6):
        data = bytearray(parts[number])
        data[50] ^= 0x77
        parts[number] = bytes(data)
    path = tmp_path / "flipped.wet.gz"
    path.write_bytes(b"".join(parts) + b"\0" * 100 + b"junk at the end")
    numbers, found = read(path)
    assert numbers == all_but(2, 3, 6)
    begins = [sum(map(len, parts[:number])) for number in range(COUNT + 1)]
    assert [item["place"] for item in found["named"]] == [
        f"bytes {begins[2]} to {begins[4]}",  # two that follow each other are one gap
        f"bytes {begins[6]} to {begins[7]}",
        f"bytes {begins[9] + 100} to {path.stat().st_size}",
    ]


def test_junk_between_members_loses_nothing(tmp_path, records):
    parts = members_of(records)
    junk = b"\x1f\x8b\x08 no member \x1f\x8b\x08\x00" + b"\xee" * 5000
    path = tmp_path / "junk.wet.gz"
    path.write_bytes(b"".join(parts[:4]) + junk + b"".join(parts[4:]))
    numbers, found = read(path)
    assert numbers == all_but()
    assert set(reasons(found)) == {"gzip_damaged"}


@pytest.mark.parametrize("member_bytes", [1000, 1 << 24])
def test_one_gzip_stream_that_is_cut_keeps_the_pages_before(tmp_path, records, member_bytes):
    data = gzip.compress("".join(records).encode(), mtime=0)
    engine = zlib.decompressobj(31)
    made, cut = b"", 0
    while b"/a/7" not in made:
        made += engine.decompress(data[cut : cut + 1])
        cut += 1
    path = tmp_path / "one.wet.gz"
    path.write_bytes(data[: cut + 3])
    numbers, found = read(path, member_bytes=member_bytes)
    assert numbers == list(range(7))
    assert reasons(found) == {"gzip_cut": 1}


@pytest.mark.parametrize("member_bytes", [1000, 1 << 24])
def test_one_gzip_stream_with_a_wrong_checksum_keeps_its_pages_and_is_named(
    tmp_path, records, member_bytes
):
    data = bytearray(gzip.compress("".join(records).encode(), mtime=0))
    data[-5] ^= 1
    path = tmp_path / "one.wet.gz"
    path.write_bytes(bytes(data))
    numbers, found = read(path, member_bytes=member_bytes)
    assert numbers == all_but()
    assert reasons(found) == {"gzip_damaged": 1}


def test_members_that_cut_records_lose_the_records_they_hold_a_part_of(tmp_path, records):
    data = "".join(records).encode()
    pieces = [data[at : at + 400] for at in range(0, len(data), 400)]
    parts = [gzip.compress(piece, mtime=0) for piece in pieces]
    lost = len(parts) // 2
    damaged = bytearray(parts[lost])
    damaged[30] ^= 0x55
    path = tmp_path / "blocks.wet.gz"
    path.write_bytes(b"".join([*parts[:lost], bytes(damaged), *parts[lost + 1 :]]))
    begin, end = lost * 400, lost * 400 + 400
    ends = [len("".join(records[: number + 1]).encode()) for number in range(COUNT)]
    begins = [0, *ends[:-1]]
    touched = [n for n in range(COUNT) if begins[n] < end and ends[n] > begin]
    numbers, found = read(path)
    assert numbers == all_but(*touched)
    assert reasons(found) == {"gzip_damaged": 1}


def test_a_gzip_bomb_is_not_inflated_and_the_next_page_is_read(tmp_path, records):
    bomb = gzip.compress(b"WARC/1.0\r\nWARC-Target-URI: http://a/99\r\n\r\n" + bytes(30_000_000))
    parts = members_of(records)
    path = tmp_path / "bomb.wet.gz"
    path.write_bytes(b"".join([*parts[:4], bomb, *parts[4:]]))
    numbers, found = read(path, member_bytes=1_000_000)
    assert numbers == all_but()
    assert reasons(found) == {"gzip_bomb": 1}
    assert "more than 200 times as many" in found["named"][0]["detail"]


def test_a_bomb_that_stays_under_the_limits_is_a_page_like_any_other(tmp_path, records):
    begin = "WARC/1.0\r\nWARC-Target-URI: http://a/0\r\nWARC-Date: 2019\r\n\r\n"
    data = gzip.compress((begin + "a" * 300_000).encode())
    path = tmp_path / "small.wet.gz"
    path.write_bytes(data)
    pages = list(wet_pages.read_pages(path))
    assert [len(page.text) for page in pages] == [300_000]


def test_invalid_utf8_names_file_and_record(tmp_path, records):
    data = [item.encode() for item in records]
    data[3] = data[3].replace(b"And so on.", b"And \xff\xfe on.", 1)
    path = tmp_path / "bytes.wet"
    path.write_bytes(b"".join(data))
    numbers, found = read(path)
    assert numbers == all_but(3)
    assert found["named"] == [
        {
            "file": "bytes.wet",
            "place": "record 3",
            "reason": "invalid_utf8",
            "detail": "record 3 (http://a/3) cannot be used (invalid_utf8)",
        }
    ]


def test_a_record_without_url_is_named_and_the_description_of_the_file_is_not(tmp_path, records):
    description = "WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Date: 2019\r\n\r\nSoftware: x\r\n\r\n"
    nameless = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Date: 2019\r\n\r\nText.\r\n\r\n"
    dateless = "WARC/1.0\r\nWARC-Target-URI: http://x\r\n\r\nText.\r\n\r\n"
    path = tmp_path / "odd.wet"
    path.write_text("".join([description, *records[:2], nameless, dateless, *records[2:]]), "utf-8")
    numbers, found = read(path)
    assert numbers == all_but()
    assert reasons(found) == {"no_timestamp": 1, "no_url": 1}
    assert [item["place"] for item in found["named"]] == ["record 3", "record 4"]


@pytest.mark.parametrize("kind", ["members", "whole", "plain"])
def test_a_record_of_warc_1_1_between_others_merges_as_released_and_is_counted(
    write_wet, records, kind
):
    for number in (2, 5, 6):
        records[number] = records[number].replace("WARC/1.0", "WARC/1.1")
    log = faults.FaultLog()
    pages = list(wet_pages.read_pages(write_wet(records, kind=kind), on_fault=log.add))
    assert [page.url for page in pages] == [f"http://a/{n}" for n in (0, 2, 3, 6, 7, 8)]
    assert pages[1].text == f"{text_of(1).strip()}\n{text_of(2).strip()}"
    assert pages[3].text == "\n".join(text_of(number).strip() for number in (4, 5, 6))
    assert log.to_json() == {
        "counts": {"merged_records": 3},
        "named": [
            {
                "file": "pages.warc.wet.gz",
                "place": "record 1",
                "reason": "merged_records",
                "detail": "record 1 contains another record, of another WARC version or behind a "
                "text without a line end; both are one page with the last URL",
            }
        ],
    }


@pytest.mark.parametrize("kind", ["response", "request", "revisit", "metadata"])
def test_records_that_are_no_text_of_a_page_are_counted_and_named_once_a_file(
    write_wet, records, kind
):
    for number in (2, 5):
        records[number] = records[number].replace("conversion", kind)
    log = faults.FaultLog()
    pages = list(wet_pages.read_pages(write_wet(records, kind="members"), on_fault=log.add))
    assert [page.url for page in pages] == [f"http://a/{n}" for n in range(COUNT)]  # as released
    assert log.to_json() == {
        "counts": {"not_conversion": 2},
        "named": [
            {
                "file": "pages.warc.wet.gz",
                "place": "record 2",
                "reason": "not_conversion",
                "detail": f"record 2 is a '{kind}', not the text of a page: WET files are listed "
                "in wet.paths.gz, WARC files in warc.paths.gz",
            }
        ],
    }


def test_a_field_of_the_writer_s_own_before_the_type_hides_no_type(write_wet, wet_record):
    # As webrecorder writes it; the released code takes such a line for text.
    own = wet_record("http://a/1", "A page.").replace(
        "WARC-Type: ", "Warc-Referer: b\r\nWARC-Type: "
    )
    about = wet_record("http://a/2", "A page.\nWARC-Type: response\nof records.")
    log = faults.FaultLog()
    path = write_wet([own.replace("conversion", "resource"), own, about])
    pages = list(wet_pages.read_pages(path, on_fault=log.add))
    assert [page.kind for page in pages] == ["resource", "conversion", "conversion"]
    assert log.to_json()["counts"] == {"not_conversion": 1}


@pytest.mark.parametrize("bad", [b"\x1f\x8b\x08", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"])
@pytest.mark.parametrize("start", [b"", b"\r\n"])
def test_bytes_of_gzip_in_the_text_of_a_plain_file_lose_that_page_only(
    tmp_path, records, bad, start
):
    parts = [item.encode() for item in records]
    parts[1] = parts[1].replace(b"And so on.", b"And so" + bad, 1)
    path = tmp_path / "plain.wet"
    path.write_bytes(start + b"".join(parts))
    numbers, found = read(path)
    assert numbers == all_but(1)
    assert reasons(found) == {"invalid_utf8": 1}


@pytest.mark.parametrize("between", [bytes(10_000), b"Text without a line end"])
def test_a_member_without_a_line_end_merges_two_records_and_is_counted(tmp_path, records, between):
    parts = members_of(records)
    path = tmp_path / "glued.wet.gz"
    path.write_bytes(b"".join([*parts[:4], gzip.compress(between), *parts[4:]]))
    log = faults.FaultLog()
    pages = list(wet_pages.read_pages(path, on_fault=log.add))
    assert [page.url for page in pages] == [f"http://a/{n}" for n in all_but(3)]
    assert text_of(3).strip() in pages[3].text
    assert text_of(4).strip() in pages[3].text
    assert log.to_json()["counts"] == {"merged_records": 1}


def test_a_text_about_warc_files_is_no_merged_record(write_wet, wet_record):
    text = "A line WARC/1.1\nbegins a record, WARC/1.0\n too.\nWARC-Type: its type.\nWARC/1.1"
    assert len(list(wet_pages.read_pages(write_wet([wet_record("http://a", text)])))) == 1


def test_a_file_of_warc_1_1_with_damage_loses_one_page(tmp_path, records):
    parts = members_of([item.replace("WARC/1.0", "WARC/1.1") for item in records])
    for lost in (0, 4):
        data = bytearray(parts[lost])
        data[40] ^= 0x55
        path = tmp_path / "flipped.wet.gz"
        path.write_bytes(b"".join([*parts[:lost], bytes(data), *parts[lost + 1 :]]))
        numbers, found = read(path)
        assert numbers == all_but(lost)
        assert reasons(found) == {"gzip_damaged": 1}


def test_a_damaged_page_that_mentions_another_version_is_lost_like_any_other(
    tmp_path, wet_record, records
):
    text = "See WARC/1.1\nand WARC/1.1 again.\n" + text_of(3) * 3
    parts = members_of([records[0], wet_record("http://a/99", text), records[1]])
    data = bytearray(parts[1])
    data[-6] ^= 0x55  # of the checksum: the text may be wrong anywhere
    path = tmp_path / "flipped.wet.gz"
    path.write_bytes(parts[0] + bytes(data) + parts[2])
    numbers, found = read(path)
    assert (numbers, reasons(found)) == ([0, 1], {"gzip_damaged": 1})


def test_records_of_warc_1_0_behind_those_of_1_1_are_pages_too(write_wet, records):
    records[:4] = [item.replace("WARC/1.0", "WARC/1.1") for item in records[:4]]
    assert read(write_wet(records)) == (all_but(), {"counts": {}, "named": []})


@pytest.mark.parametrize("kind", ["whole", "plain"])
def test_a_file_cut_in_transfer_is_told_by_the_length_of_its_last_record(write_wet, records, kind):
    data = "".join(records).encode()
    log = faults.FaultLog()
    path = write_wet([data[:-100]], name="cut.wet", kind=kind)
    pages = list(wet_pages.read_pages(path, on_fault=log.add))
    assert [page.url for page in pages] == [f"http://a/{number}" for number in all_but()]
    assert text_of(8).startswith(pages[8].text)  # as the released code reads it
    assert log.to_json() == {
        "counts": {"file_cut": 1},
        "named": [
            {
                "file": "cut.wet",
                "place": "record 8",
                "reason": "file_cut",
                "detail": "the file ends 96 bytes before the end of record 8 by its Content-Length",
            }
        ],
    }


def test_a_whole_file_and_one_without_its_last_line_ends_are_not_cut(write_wet, records):
    data = "".join(records).encode()
    for end in range(5):
        assert read(write_wet([data[: len(data) - end]], kind="plain")) == (
            all_but(),
            {"counts": {}, "named": []},
        )


def test_a_record_larger_than_memory_is_not_taken_for_a_cut_one(tmp_path, wet_record):
    path = tmp_path / "large.wet"
    path.write_text(wet_record("http://a/0", "x " * 200_000 + "\n" * 50_000))
    assert read(path, record_chars=50_000)[1]["counts"] == {"record_too_large": 1}


def test_an_empty_file_a_missing_one_and_one_of_another_kind_are_named(tmp_path):
    (tmp_path / "empty.wet").touch()
    (tmp_path / "short.wet").write_text("WAR")
    (tmp_path / "page.wet").write_text("<html>\nno crawl</html>")
    for name, reason in (
        ("empty.wet", "empty_file"),
        ("absent.wet", "missing_file"),
        ("short.wet", "not_wet"),
        ("page.wet", "not_wet"),
    ):
        numbers, found = read(tmp_path / name)
        assert (numbers, reasons(found)) == ([], {reason: 1})
        assert found["named"][0]["file"] == name


def test_a_file_that_begins_with_something_else_keeps_its_pages(tmp_path, records):
    path = tmp_path / "late.wet"
    path.write_text("lines of something else\n" + "".join(records), "utf-8")
    numbers, found = read(path)
    assert (numbers, reasons(found)) == (all_but(), {"not_wet": 1})


def test_a_record_that_is_too_large_is_named(tmp_path, records):
    path = tmp_path / "large.wet"
    path.write_text(
        "".join([*records[:4], records[4] + "x " * 200_000 + "\n", *records[5:]]), "utf-8"
    )
    numbers, found = read(path, record_chars=50_000)
    assert numbers == all_but(4)
    assert reasons(found) == {"record_too_large": 1}


@pytest.mark.parametrize("name", ["empty.wet", "absent.wet", "page.wet", "bytes.wet"])
def test_fail_stops_at_the_first_fault(tmp_path, name, records):
    log = faults.FaultLog("fail")
    (tmp_path / "empty.wet").touch()
    (tmp_path / "page.wet").write_text("<html>no crawl</html>")
    (tmp_path / "bytes.wet").write_bytes(records[0].encode().replace(b"And", b"\xff", 1))
    path = tmp_path / name
    with pytest.raises(CrawlError, match=rf"{name}: .*set c4\.on_bad_record to skip"):
        for page in wet_pages.read_pages(path, on_fault=log.add):
            log.add(wet_pages.page_fault(path, page))


def test_faults_of_jobs_add_up_whatever_their_order():
    logs = []
    for job in range(3):
        log = faults.FaultLog()
        for number in range(4):
            log.add(faults.Fault(f"/x/{job}.wet", f"record {number * 7}", faults.NO_URL, "d"))
        logs.append(log.to_json())
    merged = faults.FaultLog()
    reverse = faults.FaultLog()
    for forward_log, reverse_log in zip(logs, logs[::-1], strict=True):
        merged.merge(forward_log)
        reverse.merge(reverse_log)
    whole = merged.to_json()
    assert whole == reverse.to_json()
    assert whole["counts"] == {"no_url": 12}
    assert [item["place"] for item in whole["named"][:4]] == [
        "record 0",
        "record 7",
        "record 14",
        "record 21",
    ]


def test_all_faults_are_counted_and_the_first_thousand_named():
    log = faults.FaultLog()
    for number in range(1200):
        log.add(faults.Fault("a", f"record {number}", faults.NO_URL, "d"))
    assert log.to_json()["counts"] == {"no_url": 1200}
    assert len(log.to_json()["named"]) == faults.MAX_EXAMPLES
    assert log.summary() == "no_url 1200"


PEAK = """
import json, re, sys
from pathlib import Path
from t5repro.c4.wet import faults
from t5repro.c4.wet import pages as wet_pages
log, path, pages = faults.FaultLog(), Path(sys.argv[1]), []
for page in wet_pages.read_pages(path, on_fault=log.add):
    if page.fault is None:
        pages.append(page.url)
    else:
        log.add(wet_pages.page_fault(path, page))
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)
print(json.dumps([pages, log.to_json()["counts"], int(peak)]))
"""


def peak_of(path):
    """Read a file in a process of its own; return its pages, its faults and its peak in kB."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def giant_member(begin, block, times):
    """Yield a gzip member of `begin` and `times` times `block`, made without compressing all."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    head = deflate.compress(begin) + deflate.flush(zlib.Z_FULL_FLUSH)
    body = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(begin)
    for _ in range(times):
        checksum = zlib.crc32(block, checksum)
    end = b"\r\n\r\n"
    checksum = zlib.crc32(end, checksum)
    total = (len(begin) + times * len(block) + len(end)) % 2**32
    trailer = checksum.to_bytes(4, "little") + total.to_bytes(4, "little")
    header = bytes([31, 139, 8, 0, 0, 0, 0, 0, 0, 255])
    yield header + head
    for _ in range(times):
        yield body
    yield deflate.compress(end) + deflate.flush() + trailer


def test_the_giant_member_of_these_tests_is_a_gzip_member():
    made = b"".join(giant_member(b"begin", b"block " * 900, 3))
    assert gzip.decompress(made) == b"begin" + b"block " * 2700 + b"\r\n\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lines", "one line", "bomb"])
def test_a_gigabyte_in_one_record_takes_no_memory(tmp_path, records, kind):
    noise = random.Random(0).randbytes(750_000)
    block = {
        "lines": base64.encodebytes(noise),
        "one line": base64.b64encode(noise),
        "bomb": bytes(1_000_000),
    }[kind]
    begin = b"WARC/1.0\r\nWARC-Target-URI: http://g\r\nWARC-Date: 2019\r\n\r\n"
    path = tmp_path / "giant.wet.gz"
    first, last = members_of(records)[:2]
    with path.open("wb") as handle:
        for part in (first, *giant_member(begin, block, 1 + 1_000_000_000 // len(block)), last):
            handle.write(part)
    pages, counts, peak = peak_of(path)
    assert pages == ["http://a/0", "http://a/1"]
    assert counts == {"gzip_bomb" if kind == "bomb" else "record_too_large": 1}
    assert peak < 250_000
