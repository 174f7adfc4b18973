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

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from t5repro.c4 import faults
from t5repro.c4.faults import (
    INVALID_UTF8,
    NO_TIMESTAMP,
    NO_URL,
    RECORD_TOO_LARGE,
    Fault,
    OnFault,
)
from t5repro.c4.members import READ_BYTES, Gap, Limits, inflated, is_gzip, plain
from t5repro.errors import CrawlError

DELIMITER = "WARC/1.0"
URL_FIELD = "WARC-Target-URI:"
DATE_FIELD = "WARC-Date:"
NEVER_TEXT = ("WARC", "CONTENT-", "Content-")

TYPE_FIELD = "WARC-Type:"
DESCRIPTION = "warcinfo"  # the type of the record that describes its file and has no URL

NO_CONTENT = "no_content"
TOO_LONG = "too_long"
# Reasons for which a page cannot be used; the first four are faults of the crawl.
CUT_CHARS = 1 << 18  # held of a record that was found too long
NOTHING = Gap(0, 0, "", "", True)  # stands for a file without content
WITHDRAWN = "withdrawn"  # its owner took it back: dropped, and no excerpt of it is kept
PAGE_FAULTS = (NO_URL, NO_TIMESTAMP, INVALID_UTF8, RECORD_TOO_LARGE, NO_CONTENT, TOO_LONG)


class Page(NamedTuple):
    """One page of a WET file.

    Attributes:
        url: its address as the record has it.
        timestamp: the record's date, as text.
        text: its lines.
        record: its number in the file, from 0.
        fault: why it cannot be used; None if it can.
        describes: whether it is the file's own description, which has no URL by right.
    """

    url: str
    timestamp: str
    text: str
    record: int
    fault: str | None
    describes: bool = False


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
    texts = _universal_newlines(_decoded(_pieces(path, limits, advance or _nobody, on_fault)))
    for number, (record, cut) in enumerate(_records(texts, path, limits, on_fault)):
        page = _page(record, number, cut=cut)
        if withdrawn is not None and page.url and withdrawn(page.url):
            page = page._replace(text="", fault=WITHDRAWN)
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


def _decoded(pieces: Iterable[bytes | Gap]) -> Iterator[str | Gap]:
    """Yield text; bytes that are no UTF-8 become lone surrogates, which no valid text holds."""
    held = b""
    for piece in pieces:
        if isinstance(piece, Gap):
            if held:
                yield held.decode("utf-8", "surrogateescape")
            held = b""
            yield piece
            continue
        data = held + piece
        try:
            text, used = codecs.utf_8_decode(data, "strict", False)
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(data, "surrogateescape", False)
        held = data[used:]
        yield text
    if held:
        yield held.decode("utf-8", "surrogateescape")


def _universal_newlines(texts: Iterable[str | Gap]) -> Iterator[str | Gap]:
    r"""Yield the text with every lone ``\r`` as ``\n``; stripping removes that of ``\r\n``."""
    held = ""
    for text in texts:
        if isinstance(text, Gap):
            if held:
                yield "\n"
            held = ""
            yield text
            continue
        whole = held + text
        held = ""
        if whole.endswith("\r"):  # its "\n" may follow in the next piece
            whole, held = whole[:-1], "\r"
        if "\r" in whole and whole.count("\r") != whole.count("\r\n"):
            whole = whole.replace("\r\n", "\n").replace("\r", "\n")
        yield whole
    if held:
        yield "\n"


def _records(
    texts: Iterable[str | Gap], path: Path, limits: Limits, on_fault: OnFault
) -> Iterator[tuple[str, bool]]:
    """Yield each record's text from its delimiter on, and whether it was too long to keep."""
    splitter = _Splitter(limits.record_chars)
    begin = ""  # of the file, until enough of it was seen
    judged = False
    for text in texts:
        if isinstance(text, Gap):
            judged = True  # what follows need not begin with a delimiter
            yield from splitter.break_off(unfinished=text.cuts)
            continue
        if not judged:
            begin = (begin + text).lstrip()
            judged = len(begin) >= len(DELIMITER)
            if judged and not begin.startswith(DELIMITER):
                on_fault(_not_wet(begin, path))
                yield from splitter.break_off(unfinished=True)
        yield from splitter.feed(text)
    if not judged and not begin.startswith(DELIMITER):
        on_fault(_not_wet(begin, path))
        return
    yield from splitter.close()


def _not_wet(begin: str, path: Path) -> Fault:
    detail = (
        f"not a WET file: at byte 0 it begins with {begin[:40]!r}, and a WET file with the "
        f"line {DELIMITER!r}"
    )
    return Fault(path.as_posix(), "byte 0", faults.NOT_WET, detail)


class _Splitter:
    """Cuts a stream of text at the lines that are `DELIMITER`."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._pending = ""  # from the last delimiter on
        self._searched = 0  # no delimiter begins before this place of `_pending`
        self._cut = False  # text of the record in `_pending` was let go
        self._lost = False  # its begin is unknown: nothing is a record until the next delimiter

    def feed(self, text: str) -> Iterator[tuple[str, bool]]:
        """Take more text; yield the records that it completes."""
        self._pending += text
        yield from self._complete(final=False)
        if len(self._pending) > min(CUT_CHARS if self._cut else self._max_chars, self._max_chars):
            self._shrink()

    def break_off(self, *, unfinished: bool) -> Iterator[tuple[str, bool]]:
        """End the record before a gap; what follows is none until the next delimiter."""
        yield from self._complete(final=True)
        if not (unfinished or self._lost) and self._pending.strip():
            yield self._pending, self._cut
        self._pending, self._searched, self._cut, self._lost = "", 0, False, True

    def close(self) -> Iterator[tuple[str, bool]]:
        """Yield what is left at the end of the file."""
        yield from self._complete(final=True)
        if not self._lost:
            yield self._pending, self._cut

    def _complete(self, *, final: bool) -> Iterator[tuple[str, bool]]:
        text, start = self._pending, 0
        searched = len(text) - len(DELIMITER) + 1
        at = text.find(DELIMITER, self._searched)
        while at >= 0:
            line_start = max(text.rfind("\n", start, at) + 1, start)
            line_end = text.find("\n", at)
            if line_end < 0:
                if not final:
                    searched = at  # the line goes on in the next piece
                    break
                line_end = len(text)
            if text[line_start:line_end].strip() == DELIMITER:
                if text[start:line_start].strip():
                    if not self._lost:
                        yield text[start:line_start], self._cut
                    self._cut = False
                self._lost = False
                start = line_start
            at = text.find(DELIMITER, line_end)
        self._pending = text[start:]
        # The delimiter that `_pending` begins with is not to be found again as the next one, and
        # finding it again does no harm: it is a record of nothing but white space before it.
        self._searched = max(searched - start, 0)

    def _shrink(self) -> None:
        """Keep the record's meaning in less memory, or its beginning if that is too long."""
        whole, newline, rest = self._pending.rpartition("\n")
        self._pending = "\n".join(filter(None, map(str.strip, whole.split("\n")))) + newline + rest
        if self._cut or len(self._pending) > self._max_chars // 2:
            # The unfinished line keeps its beginning: it must not be taken for a delimiter.
            rest = rest[:100]
            self._pending = self._pending[: min(self._max_chars // 4, CUT_CHARS // 4)] + "\n" + rest
            self._cut = True
        self._searched = max(len(self._pending) - len(rest) - len(DELIMITER), 0)


def _page(record: str, number: int, *, cut: bool) -> Page:
    """Return the page of a record's text."""
    lines = list(filter(None, map(str.strip, record.split("\n"))))
    url = timestamp = ""
    describes = False
    first = len(lines)
    for index, line in enumerate(lines):
        if not line.startswith(NEVER_TEXT):
            first = index
            break
        if line.startswith(URL_FIELD):
            url = line[len(URL_FIELD) :].strip()
        elif line.startswith(DATE_FIELD):
            timestamp = line[len(DATE_FIELD) :].strip()
        elif line.startswith(TYPE_FIELD):
            describes = line[len(TYPE_FIELD) :].strip() == DESCRIPTION
    text = "\n".join(lines[first:])
    if any("\n" + prefix in text for prefix in NEVER_TEXT):
        kept = []
        for line in lines[first:]:
            if line.startswith(URL_FIELD):
                url = line[len(URL_FIELD) :].strip()
            elif line.startswith(DATE_FIELD):
                timestamp = line[len(DATE_FIELD) :].strip()
            if not line.startswith(NEVER_TEXT):
                kept.append(line)
        text = "\n".join(kept)
    fault = _fault(url, timestamp, text, cut=cut)
    return Page(url, timestamp, text, number, fault, describes and fault == NO_URL)


def _fault(url: str, timestamp: str, text: str, *, cut: bool) -> str | None:
    """Return why a page cannot be used; None if it can."""
    if not url:
        return NO_URL
    if not text:
        return NO_CONTENT
    if not timestamp:
        return NO_TIMESTAMP
    if cut:
        return RECORD_TOO_LARGE
    if not (_is_unicode(text) and _is_unicode(url) and _is_unicode(timestamp)):
        return INVALID_UTF8
    return None


def _is_unicode(text: str) -> bool:
    """Return whether `text` holds no lone surrogate, which is what a bad byte became."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
