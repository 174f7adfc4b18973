r"""Read the pages of a WET file: gzip by member, gzip as one stream, or plain text.

A WET file is read as the released code reads it, line by line, because the recipes are defined
on that reading and not on the WARC standard:

- lines end at ``\n``, ``\r\n`` and a lone ``\r``; each is stripped of Unicode white space and
  empty ones vanish;
- a line that is ``WARC/1.0`` begins a new page, also in the middle of a page's text;
- lines that begin with ``WARC-Target-URI:`` or ``WARC-Date:`` set that field, also in the middle
  of a page's text, and the last one wins; no line that begins with ``WARC``, ``CONTENT-`` or
  ``Content-`` is ever text; the record's length and type are ignored.

One departure: to the released code a bad byte is the end of the file. Here damage loses the page
that holds it (`faults`), and reading goes on at the next gzip member or the next page.

Memory is bounded by `members.Limits`, however long a record, a member or a file is.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from t5repro.c4.wet import faults
from t5repro.c4.wet.faults import (
    INVALID_UTF8,
    NO_TIMESTAMP,
    NO_URL,
    RECORD_TOO_LARGE,
    Fault,
    OnFault,
)
from t5repro.c4.wet.gzip_members import READ_BYTES, Gap, Limits, inflated, is_gzip, plain
from t5repro.c4.wet.warc_records import (
    NEVER_TEXT,
    Record,
    as_bytes,
    as_text,
    has_other_ends,
    one_newline,
    plain_text_at,
    records,
    stripped_lines,
    text_of,
)
from t5repro.errors import CrawlError

URL_FIELD = "WARC-Target-URI:"
DATE_FIELD = "WARC-Date:"

TYPE_FIELD = "WARC-Type:"
DESCRIPTION = "warcinfo"  # the type of the record that describes its file and has no URL

_URL_FIELD, _DATE_FIELD, _TYPE_FIELD = URL_FIELD.encode(), DATE_FIELD.encode(), TYPE_FIELD.encode()
_RECORD_END = b"\r\n\r\n"

NO_CONTENT = "no_content"
TOO_LONG = "too_long"
# Reasons for which a page cannot be used; the first four are faults of the crawl.
NOTHING = Gap(0, 0, "", "", True)  # stands for a file without content
WITHDRAWN = "withdrawn"  # its owner took it back: dropped, and no excerpt of it is kept
PAGE_FAULTS = (NO_URL, NO_TIMESTAMP, INVALID_UTF8, RECORD_TOO_LARGE, NO_CONTENT, TOO_LONG)


class Page:
    r"""One page of a WET file.

    Args:
        url: its address as the record has it.
        timestamp: the record's date, as text.
        body: its text as it was read; lines may be blank or begin or end with white space.
        record: its number in the file, from 0.
        fault: why it cannot be used; None if it can.
        describes: whether it is the file's own description, which has no URL by right.
        other_ends: whether `body` holds ends of lines other than ``\n``.
    """

    def __init__(
        self,
        url: str,
        timestamp: str,
        body: bytes,
        record: int,
        fault: str | None,
        describes: bool = False,
        *,
        other_ends: bool,
    ) -> None:
        self.url = url
        self.timestamp = timestamp
        self.body = body
        self.record = record
        self.fault = fault
        self.describes = describes
        self.other_ends = other_ends

    @property
    def text(self) -> str:
        """Its lines, stripped, without blank ones; made anew each time, for many are never read."""
        return text_of(self.body)

    def is_longer_than(self, chars: int) -> bool:
        """Return whether its text has more than so many characters."""
        return len(self.body) > chars and len(self.text) > chars

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Page) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"Page{self._values()}"

    def _values(self) -> tuple[object, ...]:
        return self.url, self.timestamp, self.text, self.record, self.fault, self.describes

    def without_text(self, fault: str) -> "Page":
        """Return the page with nothing in it, for a reason."""
        return Page(
            self.url, self.timestamp, b"", self.record, fault, self.describes, other_ends=False
        )


def read_pages(
    path: Path,
    *,
    advance: Callable[[int], None] | None = None,
    limits: Limits | None = None,
    on_fault: OnFault = faults.stop,
    withdrawn: Callable[[str], bool] | None = None,
) -> Iterator[Page]:
    """Yield every page of a WET file in order, those that cannot be used included.

    Args:
        path: the file; gzip is known by its first bytes, not by its name.
        advance: called with the number of bytes read from the disk, now and then.
        limits: what one record may need; None: as the settings have it by default.
        on_fault: called with what is wrong with the file itself; reading goes on behind it.
        withdrawn: tells of a URL whether its pages may not be used; they come without text.

    Raises:
        CrawlError: the file cannot be opened; by default also for any fault of it.

    Source: released code, ``c4_utils.split_wet_file``.
    """
    limits = limits or Limits()
    pieces = _pieces(path, limits, advance or _nobody, on_fault)
    for number, record in enumerate(records(pieces, path, limits, on_fault)):
        page = _page(record, number)
        if withdrawn is not None and page.url and withdrawn(page.url):
            page = page.without_text(WITHDRAWN)
        yield page


def page_fault(path: Path, page: Page) -> Fault | None:
    """Return what is wrong with the record of a page, if that is a fault of the crawl."""
    if page.fault not in faults.REASONS or page.describes:
        return None
    url = page.url.encode("utf-8", "replace").decode("utf-8") or "no URL"
    detail = f"record {page.record} ({url}) cannot be used ({page.fault})"
    return Fault(path.as_posix(), f"record {page.record}", page.fault, detail)


def _nobody(_: int) -> None:
    """Take no notice of progress."""


def _pieces(
    path: Path, limits: Limits, advance: Callable[[int], None], on_fault: OnFault
) -> Iterator[bytes | Gap]:
    """Yield the file's bytes, decompressed, and its gaps; tell of those."""
    name = path.as_posix()
    try:
        with path.open("rb") as handle:
            first = handle.read(READ_BYTES)
            handle.seek(0)
            if not first:
                on_fault(Fault(name, "", faults.EMPTY_FILE, "the file is empty"))
                yield NOTHING
            elif not is_gzip(first):
                yield from plain(handle, advance)
            else:
                for piece in inflated(handle, limits, advance):
                    if isinstance(piece, Gap):
                        place = f"bytes {piece.begin} to {piece.end}"
                        on_fault(Fault(name, place, piece.reason, piece.detail))
                    yield piece
    except FileNotFoundError as error:
        detail = f"cannot be read ({error.strerror}); check the path"
        on_fault(Fault(name, "", faults.MISSING_FILE, detail))
        yield NOTHING
    except OSError as error:
        raise CrawlError(
            f"{path}: cannot be read ({error.strerror or error}); check the path in the run file"
        ) from error


def _page(record: Record, number: int) -> Page:
    """Return the page of a record.

    Nearly all records hold fields before their text and nowhere else: their text is decoded, to
    see whether it is UTF-8, and not divided. Of the others every line is looked at. What is kept
    are bytes: cleaning makes text of few lines.
    """
    data, cut, begin = record
    begin = plain_text_at(data) if begin is None else begin
    if begin is None:
        fields, text = _sorted_lines(stripped_lines(as_text(one_newline(data))))
        body, sound = as_bytes(text), _is_unicode(text)
    else:
        end = len(data) - len(_RECORD_END) if data.endswith(_RECORD_END) else len(data)
        fields = _leading_fields(data, begin)
        body = one_newline(data[begin:end])
        text, sound = _decoded(body)
    fault = _fault(fields, text, cut=cut, sound=sound)
    describes = fields.kind == DESCRIPTION and fault == NO_URL
    return Page(
        fields.url,
        fields.timestamp,
        body,
        number,
        fault,
        describes,
        other_ends=has_other_ends(text),
    )


class _Fields(NamedTuple):
    url: str
    timestamp: str
    kind: str


def _decoded(data: bytes) -> tuple[str, bool]:
    """Return text, and whether it is UTF-8."""
    try:
        return str(data, "utf-8"), True
    except UnicodeDecodeError:
        return as_text(data), False


def _leading_fields(record: bytes, end: int) -> _Fields:
    """Return the fields in the first `end` bytes of a record, which hold nothing else."""
    url = _value(record, _URL_FIELD, end)
    # A record with a URL describes no file.
    kind = "" if url else _value(record, _TYPE_FIELD, end)
    return _Fields(url, _value(record, _DATE_FIELD, end), kind)


def _value(record: bytes, name: bytes, end: int) -> str:
    """Return the last value that a field has in the first `end` bytes of a record."""
    at = record.rfind(name, 0, end)
    while at > 0 and not _begins_line(record, at):  # in the value of another field
        at = record.rfind(name, 0, at)
    if at < 0:
        return ""
    begin = at + len(name)
    stop = record.find(b"\n", begin, end)
    return as_text(record[begin : stop if stop >= 0 else end]).strip()


def _begins_line(record: bytes, at: int) -> bool:
    """Return whether only white space stands before a place on its line."""
    return record[at - 1 : at] == b"\n" or not record[record.rfind(b"\n", 0, at) + 1 : at].strip()


def _sorted_lines(lines: Iterable[str]) -> tuple[_Fields, str]:
    """Return the fields that stand anywhere in a record, and the lines that are its text."""
    url = timestamp = kind = ""
    text: list[str] = []
    for line in lines:
        if not line.startswith(NEVER_TEXT):
            text.append(line)
        elif line.startswith(URL_FIELD):
            url = line[len(URL_FIELD) :].strip()
        elif line.startswith(DATE_FIELD):
            timestamp = line[len(DATE_FIELD) :].strip()
        elif line.startswith(TYPE_FIELD) and not text:
            kind = line[len(TYPE_FIELD) :].strip()
    return _Fields(url, timestamp, kind), "\n".join(text)


def _fault(fields: _Fields, body: str, *, cut: bool, sound: bool) -> str | None:
    """Return why a page cannot be used; None if it can. `sound`: its text is UTF-8."""
    if not fields.url:
        return NO_URL
    if not body or body.isspace():
        return NO_CONTENT
    if not fields.timestamp:
        return NO_TIMESTAMP
    if cut:
        return RECORD_TOO_LARGE
    if not (sound and _is_unicode(fields.url) and _is_unicode(fields.timestamp)):
        return INVALID_UTF8
    return None


def _is_unicode(text: str) -> bool:
    """Return whether `text` holds no lone surrogate, which is what a bad byte became."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
