r"""Read the pages of a WET file: gzip by member, gzip as one stream, or plain text.

A WET file is read line by line, as by the released code, because the recipes are defined on that
reading and not on the WARC standard:

- lines end at ``\n``, ``\r\n`` and a lone ``\r``; Unicode white space is stripped and empty lines
  are dropped;
- a line ``WARC/1.0`` starts a new page, even inside a page's text; a record of another version, or
  behind a text without a line end, merges with the page before, which is counted as a fault;
- lines that start with ``WARC-Target-URI:`` or ``WARC-Date:`` set that field, even inside a page's
  text, and the last one wins; no line that starts with ``WARC``, ``CONTENT-`` or ``Content-`` is
  ever text; the record's length and type are ignored.

Two departures (D-033). The released code stops reading the file at an invalid byte. Here damage
loses only the page that contains it (`faults`), and reading continues at the next gzip member or
page. The released code makes one page of a file of WARC/1.1; here it has the pages of its records.

Memory is bounded by `gzip_members.Limits` for any size of records, members and files.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from t5repro.c4.reasons import (
    INVALID_UTF8,
    NO_CONTENT,
    NO_TIMESTAMP,
    NO_URL,
    RECORD_TOO_LARGE,
    WITHDRAWN,
)
from t5repro.c4.wet import faults
from t5repro.c4.wet.crawl_file import read_pieces
from t5repro.c4.wet.faults import Fault, OnFault
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.warc_records import (
    NEVER_TEXT,
    Record,
    as_bytes,
    as_text,
    contains_other_newlines,
    merged_records,
    missing_bytes,
    normalize_newlines,
    plain_text_start,
    split_records,
    stripped_lines,
    text_of,
)

URL_FIELD = "WARC-Target-URI:"
DATE_FIELD = "WARC-Date:"

TYPE_FIELD = "WARC-Type:"
CONVERSION = "conversion"  # type of the records of a WET file
WARCINFO = "warcinfo"  # type of the record that describes the file and has no URL

_URL_FIELD, _DATE_FIELD, _TYPE_FIELD = URL_FIELD.encode(), DATE_FIELD.encode(), TYPE_FIELD.encode()
_RECORD_END = b"\r\n\r\n"


class Page:
    r"""One page of a WET file.

    Args:
        url: URL of the record, not normalised.
        timestamp: date of the record, as text.
        body: text in UTF-8; lines may be blank and have surrounding white space.
        record: number of the record in the file, from 0.
        fault: reason for which the page is unusable (`reasons`); None if it is usable.
        kind: type of the record, such as ``conversion``; empty if it has none.
        has_other_newlines: whether `body` contains line ends other than ``\n``.

    Attributes:
        signals: signals of the page, in the order of `reasons.SIGNALS`; none if none are read.
    """

    signals: tuple[str, ...] = ()

    def __init__(
        self,
        url: str,
        timestamp: str,
        body: bytes,
        record: int,
        fault: str | None,
        kind: str = "",
        *,
        has_other_newlines: bool,
    ) -> None:
        self.url = url
        self.timestamp = timestamp
        self.body = body
        self.record = record
        self.fault = fault
        self.kind = kind
        self.has_other_newlines = has_other_newlines

    @property
    def is_warcinfo(self) -> bool:
        """Whether the record describes the file; it legitimately has no URL."""
        return self.kind == WARCINFO and self.fault == NO_URL

    @property
    def text(self) -> str:
        """The lines, stripped, without blank ones; not cached, because most are never read."""
        return text_of(self.body)

    def is_longer_than(self, chars: int) -> bool:
        """Return whether the text has more than so many characters."""
        # Bytes are at least characters: most pages are decided without decoding.
        return len(self.body) > chars and len(self.text) > chars

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Page) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"Page{self._values()}"

    def _values(self) -> tuple[object, ...]:
        return self.url, self.timestamp, self.text, self.record, self.fault, self.kind

    def without_text(self, fault: str) -> "Page":
        """Return the page without its text, unusable for the reason `fault`."""
        return Page(
            self.url, self.timestamp, b"", self.record, fault, self.kind, has_other_newlines=False
        )


SignalsOf = Callable[[Record, Page], tuple[str, ...]]


def read_pages(
    path: Path,
    *,
    advance: Callable[[int], None] | None = None,
    limits: Limits | None = None,
    reads_warc_1_1: bool = True,
    on_fault: OnFault = faults.stop,
    is_withdrawn: Callable[[str], bool] | None = None,
    signals_of: SignalsOf | None = None,
) -> Iterator[Page]:
    """Yield every page of a WET file in order, including unusable ones.

    Args:
        path: the file; gzip is recognised by its content, not by its name.
        advance: called from time to time with the number of bytes read from disk.
        limits: maximum sizes of a record; None uses the defaults of the settings.
        reads_warc_1_1: whether a file may begin with a record of WARC/1.1 (`c4.warc_1_1`).
        on_fault: called with each fault of the file; reading continues behind it.
        is_withdrawn: returns whether the page of a URL is withdrawn; it is yielded without text,
            and so is a page with which it merged.
        signals_of: returns the signals of a page; None gives it none.

    Raises:
        CrawlError: the file cannot be opened; by default also for any fault.

    Source: released code, ``c4_utils.split_wet_file``.
    """
    limits = limits or Limits()
    pieces = read_pieces(path, limits, on_fault, advance)
    records = split_records(pieces, path, limits, on_fault, reads_warc_1_1=reads_warc_1_1)
    for number, record in enumerate(records):
        page = _page(record, number)
        for fault in _record_faults(path, record, page):
            on_fault(fault)
        # Merged records are one page, so every URL in it can withdraw it.
        if is_withdrawn is not None and any(map(is_withdrawn, _all_urls(record, page))):
            page = page.without_text(WITHDRAWN)
        if signals_of is not None:
            page.signals = signals_of(record, page)
        yield page


def _record_faults(path: Path, record: Record, page: Page) -> Iterator[Fault]:
    """Yield the faults of a record that do not make its page unusable."""
    name, location = path.as_posix(), f"record {page.record}"
    if page.url and page.kind not in (CONVERSION, WARCINFO, ""):
        detail = (
            f"{location} is a {page.kind!r}, not the text of a page: WET files are listed in "
            "wet.paths.gz, WARC files in warc.paths.gz"
        )
        yield Fault(name, location, faults.NOT_CONVERSION, detail)
    # A plain record has no header inside its text.
    for _ in range(merged_records(record.data) if record.text_start is None else 0):
        detail = (
            f"{location} contains another record, of another WARC version or behind a text without "
            "a line end; both are one page with the last URL"
        )
        yield Fault(name, location, faults.MERGED_RECORDS, detail)
    if record.ends_file and (missing := missing_bytes(record.data)):
        detail = f"the file ends {missing} bytes before the end of {location} by its Content-Length"
        yield Fault(name, location, faults.FILE_CUT, detail)


def page_fault(path: Path, page: Page) -> Fault | None:
    """Return the fault of the crawl that made a page unusable, if there is one."""
    if page.fault not in faults.REASONS or page.is_warcinfo:
        return None
    url = page.url.encode("utf-8", "replace").decode("utf-8") or "no URL"
    detail = f"record {page.record} ({url}) cannot be used ({page.fault})"
    return Fault(path.as_posix(), f"record {page.record}", page.fault, detail)


def _page(record: Record, number: int) -> Page:
    """Return the page of a record."""
    data, cut, begin, _ = record
    # The splitter knows where the text of most records begins.
    begin = plain_text_start(data) if begin is None else begin
    if begin is None:
        # There are field lines inside the text: every line is classified.
        fields, text = _split_fields(stripped_lines(as_text(normalize_newlines(data))))
        body, is_utf8 = as_bytes(text), _is_unicode(text)
    else:
        # Nearly all records have their fields before the text: the text is decoded once, to check
        # that it is UTF-8, and not divided. The page keeps bytes, as cleaning decodes few lines.
        end = len(data) - len(_RECORD_END) if data.endswith(_RECORD_END) else len(data)
        fields = _leading_fields(data, begin)
        body = normalize_newlines(data[begin:end])
        text, is_utf8 = _decode(body)
    fault = _fault(fields, text, cut=cut, is_utf8=is_utf8)
    return Page(
        fields.url,
        fields.timestamp,
        body,
        number,
        fault,
        fields.kind,
        has_other_newlines=contains_other_newlines(text),
    )


class _Fields(NamedTuple):
    url: str
    timestamp: str
    kind: str


def _decode(data: bytes) -> tuple[str, bool]:
    """Return the text of bytes, and whether they are UTF-8."""
    try:
        return str(data, "utf-8"), True
    except UnicodeDecodeError:
        return as_text(data), False


def _leading_fields(record: bytes, end: int) -> _Fields:
    """Return the fields in the first `end` bytes of a record, which contain only fields."""
    return _Fields(
        _value(record, _URL_FIELD, end),
        _value(record, _DATE_FIELD, end),
        _value(record, _TYPE_FIELD, end),
    )


def _value(record: bytes, name: bytes, end: int) -> str:
    """Return the last value of a field in the first `end` bytes of a record."""
    index = record.rfind(name, 0, end)
    while index > 0 and not _starts_line(record, index):  # inside the value of another field
        index = record.rfind(name, 0, index)
    if index < 0:
        return ""
    begin = index + len(name)
    stop = record.find(b"\n", begin, end)
    return as_text(record[begin : stop if stop >= 0 else end]).strip()


def _starts_line(record: bytes, index: int) -> bool:
    """Return whether only white space precedes an index on its line."""
    if record[index - 1 : index] == b"\n":
        return True
    return not record[record.rfind(b"\n", 0, index) + 1 : index].strip()


def _all_urls(record: Record, page: Page) -> list[str]:
    """Return the URL of a page and the URLs of the records that merged with it."""
    if record.data.count(_URL_FIELD) < 2:  # nearly all
        return [page.url] if page.url else []
    return urls_of(stripped_lines(as_text(normalize_newlines(record.data))))


def urls_of(lines: Iterable[str]) -> list[str]:
    """Return the URLs of a record by its stripped lines; the last one is its page's URL."""
    return [line[len(URL_FIELD) :].strip() for line in lines if line.startswith(URL_FIELD)]


def _split_fields(lines: Iterable[str]) -> tuple[_Fields, str]:
    """Return the fields of a record, wherever they are, and its other lines as text."""
    url = timestamp = kind = ""
    text: list[str] = []
    for line in lines:
        if not line.startswith(NEVER_TEXT):
            text.append(line)
        elif line.startswith(URL_FIELD):
            url = line[len(URL_FIELD) :].strip()
        elif line.startswith(DATE_FIELD):
            timestamp = line[len(DATE_FIELD) :].strip()
        elif line.startswith(TYPE_FIELD) and not kind:  # the header has it before the text has
            kind = line[len(TYPE_FIELD) :].strip()
    return _Fields(url, timestamp, kind), "\n".join(text)


def _fault(fields: _Fields, text: str, *, cut: bool, is_utf8: bool) -> str | None:
    """Return the reason for which a page is unusable; None if it is usable."""
    # The first reason that applies is the one that is counted.
    if not fields.url:
        return NO_URL
    if not text or text.isspace():
        return NO_CONTENT
    if not fields.timestamp:
        return NO_TIMESTAMP
    if cut:
        return RECORD_TOO_LARGE
    if not (is_utf8 and _is_unicode(fields.url) and _is_unicode(fields.timestamp)):
        return INVALID_UTF8
    return None


def _is_unicode(text: str) -> bool:
    """Return whether `text` contains no lone surrogate, the replacement of an invalid byte."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
