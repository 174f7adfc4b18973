import gzip
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4 import reasons
from t5repro.c4.reasons import LINE_REASONS
from t5repro.c4.text.fast_rules import clean_bodies
from t5repro.c4.text.rules import CleanRules, clean_page
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet import faults, gzip_members
from t5repro.c4.wet import pages as wet_pages
from t5repro.config.sections.c4 import CleanSettings
from t5repro.errors import CrawlError

TEXTS = ("First line of one.\nSecond line.", "Über zwei.", "Three — drei.\n\nLast.")


def pages_of(path):
    return list(wet_pages.read_pages(path))


@pytest.fixture
def three_records(wet_record):
    return [wet_record(f"http://a/{number}", text) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize("kind", ["members", "whole", "plain"])
def test_all_three_layouts_give_the_same_pages(write_wet, three_records, kind):
    pages = pages_of(write_wet(three_records, kind=kind))
    assert [page.text for page in pages] == [
        "First line of one.\nSecond line.",
        "Über zwei.",
        "Three — drei.\nLast.",
    ]
    assert [page.url for page in pages] == ["http://a/0", "http://a/1", "http://a/2"]
    assert [page.record for page in pages] == [0, 1, 2]
    assert {page.timestamp for page in pages} == {"2019-04-18T10:00:00Z"}
    assert {page.fault for page in pages} == {None}


def test_the_layout_is_known_by_its_bytes_and_not_by_its_name(write_wet, three_records):
    assert pages_of(write_wet(three_records, name="plain.gz", kind="plain")) == pages_of(
        write_wet(three_records, name="gzip.wet", kind="whole")
    )


def test_a_wrong_content_length_changes_nothing(write_wet, wet_record):
    path = write_wet([wet_record("http://a", "One.", length=9999), wet_record("http://b", "Two.")])
    assert [page.text for page in pages_of(path)] == ["One.", "Two."]


def test_a_delimiter_inside_a_text_begins_a_new_page(write_wet, wet_record):
    path = write_wet([wet_record("http://a", "Before.\n \u00a0WARC/1.0 \nAfter.\nMore.")])
    pages = pages_of(path)
    assert [(page.text, page.fault) for page in pages] == [
        ("Before.", None),
        ("After.\nMore.", reasons.NO_URL),
    ]


def test_a_line_that_only_contains_the_delimiter_is_text(write_wet, wet_record):
    text = "See WARC/1.0\nWARC/1.0 is a format.\nxWARC/1.0"
    (page,) = pages_of(write_wet([wet_record("http://a", text)]))
    assert page.text == "See WARC/1.0\nxWARC/1.0"  # a line that begins with WARC is never text


def test_header_lines_inside_a_text_set_the_fields_and_the_last_wins(write_wet, wet_record):
    text = "One.\nWARC-Target-URI: http://other \nTwo.\n  WARC-Date: 2020\nThree.\nWARC-Date: 2021"
    (page,) = pages_of(write_wet([wet_record("http://a", text)]))
    assert page == wet_pages.Page(
        "http://other",
        "2021",
        b"One.\nTwo.\nThree.",
        0,
        None,
        "conversion",
        has_other_newlines=False,
    )


def test_lines_that_look_like_metadata_are_never_text(write_wet, wet_record):
    text = "One.\nContent-Type: x\nCONTENT-Y\nWARCRAFT is a game.\ncontent-z\n Content- w"
    (page,) = pages_of(write_wet([wet_record("http://a", text)]))
    assert page.text == "One.\ncontent-z"


def test_lines_end_at_a_lone_carriage_return_but_not_at_unicode_separators(write_wet, wet_record):
    text = "One.\rTwo.\r\n\rThree\u2028four\x85five\x0bsix.\r"
    (page,) = pages_of(write_wet([wet_record("http://a", text)]))
    assert page.text == "One.\nTwo.\nThree\u2028four\x85five\x0bsix."


def test_lines_are_stripped_of_unicode_white_space_and_empty_ones_vanish(write_wet, wet_record):
    text = "\u00a0\u3000One. \u2003\n\u00a0\n\t\x1f\n\ufeffTwo."
    (page,) = pages_of(write_wet([wet_record("http://a", text)]))
    assert page.text == "One.\n\ufeffTwo."


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ("WARC/1.0\nWARC-Date: 2019\n\nText.\n", reasons.NO_URL),
        ("WARC/1.0\nWARC-Target-URI: http://a\nWARC-Date: 2019\n\n \n", reasons.NO_CONTENT),
        ("WARC/1.0\nWARC-Target-URI: http://a\n\nText.\n", reasons.NO_TIMESTAMP),
        ("WARC/1.0\nWARC-Target-URI: \nWARC-Date: \n", reasons.NO_URL),
    ],
)
def test_a_record_without_a_field_has_its_fault(write_wet, record, fault):
    assert [page.fault for page in pages_of(write_wet([record]))] == [fault]


@pytest.mark.parametrize("bad", [b"\xff", b"caf\xe9 au lait", b"\xed\xa0\x80", b"cut \xc3"])
@pytest.mark.parametrize("kind", ["members", "whole", "plain"])
def test_a_bad_byte_loses_its_page_and_no_other(write_wet, three_records, wet_record, bad, kind):
    begin, end = wet_record("http://bad", "Good. @ Good.").encode().split(b"@")
    records = [three_records[0], begin + bad + end, *three_records[1:]]
    pages = pages_of(write_wet(records, kind=kind))
    assert [page.fault for page in pages] == [None, reasons.INVALID_UTF8, None, None]
    assert [page.url for page in pages] == ["http://a/0", "http://bad", "http://a/1", "http://a/2"]


def test_a_bad_byte_at_the_very_end_of_the_file_is_seen(write_wet, wet_record):
    data = wet_record("http://a", "Text.").encode().rstrip() + b" \xe2\x82"
    assert [page.fault for page in pages_of(write_wet([data], kind="plain"))] == [
        reasons.INVALID_UTF8
    ]


def test_a_cut_gzip_member_names_file_and_byte(write_wet, three_records):
    path = write_wet(three_records)
    data = path.read_bytes()
    second = data.index(b"\x1f\x8b", 10)
    path.write_bytes(data[: second + 40])
    with pytest.raises(
        CrawlError, match=rf"pages.warc.wet.gz: the gzip member that begins at byte {second} is cut"
    ):
        pages_of(path)


def test_a_file_cut_inside_the_check_sum_is_cut(write_wet, three_records):
    path = write_wet(three_records)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CrawlError, match="is cut off at the end of the file"):
        pages_of(path)


def test_a_damaged_gzip_member_names_file_and_byte(write_wet, three_records):
    path = write_wet(three_records)
    data = bytearray(path.read_bytes())
    second = data.index(b"\x1f\x8b", 10)
    data[second + 30] ^= 0x55
    path.write_bytes(bytes(data))
    with pytest.raises(CrawlError, match=f"begins at byte {second} is damaged"):
        pages_of(path)


def test_bytes_behind_the_last_member_are_damage_and_zeros_are_padding(write_wet, three_records):
    path = write_wet(three_records)
    data = path.read_bytes()
    path.write_bytes(data + b"\0" * 700)
    assert len(pages_of(path)) == 3
    path.write_bytes(data + b"junk")
    with pytest.raises(CrawlError, match=f"begins at byte {len(data)} is damaged"):
        pages_of(path)


@pytest.mark.parametrize("kind", ["whole", "plain"])
def test_a_file_that_is_not_wet_is_refused_with_its_begin(write_wet, kind):
    path = write_wet(["<html>no crawl</html>"], kind=kind)
    with pytest.raises(CrawlError, match=r"not a WET file: at byte 0 it starts with '<html>no"):
        pages_of(path)


def as_warc_1_1(record):
    return record.replace("WARC/1.0", "WARC/1.1")


@pytest.mark.parametrize("kind", ["members", "whole", "plain"])
def test_a_file_of_warc_1_1_has_the_pages_of_warc_1_0(write_wet, three_records, kind):
    expected = pages_of(write_wet(three_records, kind=kind))
    assert pages_of(write_wet(map(as_warc_1_1, three_records), kind=kind)) == expected


def test_a_file_of_warc_1_1_is_refused_as_one_fault_if_the_settings_say_so(
    write_wet, three_records
):
    path = write_wet(map(as_warc_1_1, three_records))
    with pytest.raises(CrawlError, match=r"not a WET file: at byte 0 it starts with 'WARC/1\.1"):
        list(wet_pages.read_pages(path, reads_warc_1_1=False))


def test_a_newer_delimiter_is_refused_and_not_read_as_one_long_page(write_wet, wet_record):
    record = wet_record("http://a", "Text.").replace("WARC/1.0", "WARC/1.2")
    with pytest.raises(CrawlError, match=r"'WARC/1\.2.* not with the line 'WARC/1\.0' or 'WARC/1"):
        pages_of(write_wet([record]))


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "empty.warc.wet.gz"
    path.touch()
    with pytest.raises(CrawlError, match="the file is empty"):
        pages_of(path)
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(CrawlError, match="not a WET file: at byte 0 it starts with ''"):
        pages_of(path)


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(CrawlError, match=r"absent\.wet: cannot be read \(No such file"):
        pages_of(tmp_path / "absent.wet")
    with pytest.raises(CrawlError, match=r"cannot be read \(it is a folder and not a file"):
        pages_of(tmp_path)


def test_progress_counts_the_bytes_of_the_file(write_wet, three_records):
    path = write_wet(three_records)
    counts = []
    list(wet_pages.read_pages(path, advance=counts.append))
    assert sum(counts) == path.stat().st_size


def test_a_record_too_long_to_keep_is_told_and_the_next_one_is_whole(
    write_wet, wet_record, monkeypatch
):
    monkeypatch.setattr(gzip_members, "PIECE_BYTES", 100)
    monkeypatch.setattr(gzip_members, "MAX_PIECE_BYTES", 100)
    records = [
        wet_record("http://long", "A line of text that goes on.\n" * 500),
        wet_record("http://one-line", "word " * 2000),
        wet_record("http://blank", "Short." + " \n" * 9000 + "End."),
        wet_record("http://last", "Last."),
    ]
    path = write_wet(records, kind="whole")
    pages = list(wet_pages.read_pages(path, limits=gzip_members.Limits(record_chars=2000)))
    assert [(page.url, page.fault) for page in pages] == [
        ("http://long", reasons.RECORD_TOO_LARGE),
        ("http://one-line", reasons.RECORD_TOO_LARGE),
        ("http://blank", None),
        ("http://last", None),
    ]
    assert pages[2].text == "Short.\nEnd."
    assert all(len(page.text) <= 2000 for page in pages)


def reference(text):
    """The released reader's loop, in its own few words: (url, date, text) of usable pages."""
    pages, url, date, lines = [], "", "", []
    for raw in [*io.StringIO(text, newline=None), "WARC/1.0"]:
        line = raw.strip()
        if line == "WARC/1.0":
            if url and date and lines:
                pages.append((url, date, "\n".join(lines)))
            url, date, lines = "", "", []
        if line.startswith("WARC-Target-URI:"):
            url = line[16:].strip()
        if line.startswith("WARC-Date:"):
            date = line[10:].strip()
        if line and not line.startswith(("WARC", "CONTENT-", "Content-")):
            lines.append(line)
    return pages


def is_harmless(fault):
    """Allow the faults that change no text."""
    assert fault.reason in (faults.FILE_CUT, faults.MERGED_RECORDS)


PIECES = st.sampled_from(
    [
        "WARC/1.0",
        "WARC-Target-URI: http://ä",
        "WARC-Date: 2019",
        "Content-Length: 3",
        "text.",
        "WARC",
        "/1.0",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\u00a0",
        "\x85",
        "é",
        "𝄞",
        "\u2028",
        "\x0c",
    ]
)


@given(
    st.lists(PIECES, max_size=40),
    st.integers(1, 9),
    st.sampled_from(["plain", "whole", "members"]),
    st.sampled_from(["1.0", "1.1"]),
)
def test_any_text_is_read_as_the_released_code_reads_it_whatever_the_blocks(
    tmp_path_factory, pieces, block, kind, warc
):
    # A file of WARC/1.1 has the pages of the same file in WARC/1.0.
    text = "WARC/1.0\n" + "".join(pieces)
    expected = reference(text)
    text = text.replace("/1.0", f"/{warc}")
    # A member begins where a record may begin.
    parts = re.split(f"(?=WARC/{warc})", text) if kind == "members" else [text]
    data = [part.encode() for part in parts]
    path = tmp_path_factory.getbasetemp() / "any.wet"
    path.write_bytes(b"".join(data if kind == "plain" else map(gzip.compress, data)))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SEARCH_BYTES", "FEED_BYTES", "PIECE_BYTES", "MAX_PIECE_BYTES"):
            patch.setattr(gzip_members, name, block)
        pages = list(wet_pages.read_pages(path, on_fault=is_harmless))
    found = [
        tuple(value.replace("/1.1", "/1.0") for value in (page.url, page.timestamp, page.text))
        for page in pages
        if page.fault is None
    ]
    assert found == expected


def test_real_crawl_files_have_their_pages(real_data):
    counts = {
        path.name: [page.fault for page in wet_pages.read_pages(path)]
        for path in sorted((real_data / "wet").glob("*.warc.wet*"))
    }
    usable = {name: faults.count(None) for name, faults in counts.items()}
    assert usable == {
        "cc2014_eugeneware.warc.wet": 3,
        "cc2024_whirlwind.warc.wet.gz": 1,
        "novels_deu.warc.wet.gz": 897,
        "novels_eng.warc.wet.gz": 967,
        "novels_fra.warc.wet.gz": 1873,
        "novels_ron.warc.wet.gz": 1799,
        "real_html.warc.wet.gz": 1031,
    }
    assert {fault for faults in counts.values() for fault in faults} <= {None, reasons.NO_URL}


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\x0b", "\x1e", "\r", "\n"])
def test_a_line_end_inside_a_line_is_told_to_the_rules(write_wet, wet_record, end):
    text = f"One good line that ends here.{end}and a tail\nAnd just another one to end it."
    (page,) = pages_of(write_wet([wet_record("http://a", text)]))
    rules = CleanRules(CleanSettings(min_sentences=1), SentenceSplitter())
    (cleaned,) = clean_bodies([page], rules)
    assert cleaned == clean_page(page.text, rules)
    assert cleaned.text.split("\n")[0] == "One good line that ends here."
    assert cleaned.dropped_lines[LINE_REASONS.index("no_terminal_punctuation")] == 1
