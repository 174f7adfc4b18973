"""Find the signals of the pages of a WET file in the WAT file beside it (D-060).

Both are made from one WARC file. A record of either names the record of the response that it was
made from (``WARC-Refers-To``), or else has its URL and date. A page without such a record is
`unknown`: nothing is known of what its response said.

A WAT file is as hostile as a page: records are read by `split_records` within `gzip_members.Limits`
and their JSON by `strict_json`; what cannot be read is a fault, and its page unknown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from t5repro.c4.keys import md5
from t5repro.c4.reasons import UNKNOWN
from t5repro.c4.wet import faults
from t5repro.c4.wet.crawl_file import read_pieces
from t5repro.c4.wet.faults import Fault, OnFault
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.pages import Page, SignalsOf
from t5repro.c4.wet.signals import mentioned, ordered, response_header, signals_of_response
from t5repro.c4.wet.warc_records import Record, split_records
from t5repro.strict_json import parse_json

MAX_RESPONSES = 1 << 20  # of a file in memory, 250 bytes each; Common Crawl's have 50,000
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_REFERS_TO = re.compile(rb"^[ \t]*WARC-Refers-To:[ \t]*([^\r\n]*)", re.MULTILINE)
_RESPONSE_KEY = b'"HTTP-Response-Metadata"'  # records of requests have none

Signals = dict[bytes, frozenset[str]]  # by hash of a reference, or of a URL with its date


def mentions_of(_: Record, page: Page) -> tuple[str, ...]:
    """Return the mentions of licences in the text of a page."""
    return mentioned(page.body)


def read_wat(path: Path, limits: Limits, on_fault: OnFault) -> SignalsOf:
    """Return the function from a record of a WET file and its page to their signals.

    Args:
        path: the WAT file.
        limits: maximum sizes of a record.
        on_fault: called with each fault of the file; reading continues behind it.

    Raises:
        CrawlError: the file cannot be opened, or a fault stops the run.
    """
    responses: Signals = {}
    pieces = read_pieces(path, limits, on_fault)
    records = split_records(pieces, path, limits, on_fault, reads_warc_1_1=True)
    for number, record in enumerate(records):
        try:
            _add(responses, record)
        except ValueError as error:
            place = f"record {number}"
            detail = f"{place} of this WAT file cannot be read ({error}); its page is unknown"
            on_fault(Fault(path.as_posix(), place, faults.WAT_RECORD, detail))

    def signals_of(record: Record, page: Page) -> tuple[str, ...]:
        return ordered(_found(responses, record, page))

    return signals_of


def _add(responses: Signals, record: Record) -> None:
    """Add the signals of a record of a WAT file.

    Raises:
        ValueError: it cannot be read, or there are too many.
    """
    if record.cut:
        raise ValueError("longer than c4.limits.record_chars")
    match = _HEADER_END.search(record.data)
    if not match or record.data.find(_RESPONSE_KEY, match.end()) < 0:
        return
    values = parse_json(record.data[match.end() :])
    signals = signals_of_response(values)
    if signals is None:
        return
    for key in (*_references(record.data[: match.start()]), *_visits(values)):
        if key not in responses and len(responses) >= 2 * MAX_RESPONSES:
            raise ValueError(f"behind {MAX_RESPONSES:,} others")
        # Two records of one page: what either reserves is reserved.
        responses[key] = responses.get(key, frozenset()) | signals


def _visits(values: Any) -> Iterator[bytes]:
    """Yield the key of URL and date of a response, if its record has both as texts."""
    # The header of the WAT record has the date on which the WAT file was made.
    header = response_header(values)
    url, date = header.get("WARC-Target-URI"), header.get("WARC-Date")
    if isinstance(url, str) and isinstance(date, str):
        yield _visit(url, date)


def _found(responses: Signals, record: Record, page: Page) -> frozenset[str]:
    """Return the signals of a page; of merged records those of all of them."""
    keys = list(_references(record.data[: record.text_start]))
    if not any(key in responses for key in keys):
        keys = [_visit(page.url, page.timestamp)]
    unknown = frozenset({UNKNOWN})
    return frozenset[str]().union(*(responses.get(key, unknown) for key in keys))


def _references(header: bytes) -> Iterator[bytes]:
    for reference in _REFERS_TO.findall(header):
        if name := reference.strip():
            yield _key(name)


def _visit(url: str, date: str) -> bytes:
    return _key(f"{date} {url}".encode("utf-8", "surrogatepass"))


def _key(name: bytes) -> bytes:
    return md5(name.decode("latin-1"))
