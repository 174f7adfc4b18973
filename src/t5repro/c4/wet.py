r"""Read the pages of a WET file: gzip by member, gzip as one stream, or plain text.

A WET file is read as the released code reads it, line by line, because the recipes are defined
on that reading and not on the WARC standard:

- lines end at ``\n``, ``\r\n`` and a lone ``\r``; each is stripped of Unicode white space and
  empty ones vanish;
- a line that is ``WARC/1.0`` begins a new page, also in the middle of a page's text;
- lines that begin with ``WARC-Target-URI:`` or ``WARC-Date:`` set that field, also in the middle
  of a page's text, and the last one wins; no line that begins with ``WARC``, ``CONTENT-`` or
  ``Content-`` is ever text; the record's length and type are ignored.

One departure: the released code reads UTF-8 strictly, so one bad byte loses the rest of the file.
Here it loses the page that holds it, counted as `invalid_utf8`.

Memory is bounded by `MAX_PENDING_CHARS` and a few blocks, however long a record or a file is.
"""

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from t5repro.errors import CrawlError

BLOCK_BYTES = 1 << 20
MAX_PENDING_CHARS = 4 << 20  # of one record; far above any page that the length rule lets pass

DELIMITER = "WARC/1.0"
URL_FIELD = "WARC-Target-URI:"
DATE_FIELD = "WARC-Date:"
NEVER_TEXT = ("WARC", "CONTENT-", "Content-")

GZIP_MAGIC = b"\x1f\x8b"
GZIP_MEMBER = 16 + zlib.MAX_WBITS

NO_URL = "no_url"
NO_CONTENT = "no_content"
NO_TIMESTAMP = "no_timestamp"
INVALID_UTF8 = "invalid_utf8"
TOO_LONG = "too_long"


class Page(NamedTuple):
    """One page of a WET file; `fault` says why it cannot be used, if it cannot."""

    url: str
    timestamp: str
    text: str
    record: int
    fault: str | None


def read_pages(path: Path, *, advance: Callable[[int], None] | None = None) -> Iterator[Page]:
    """Yield every page of a WET file in order, those with a fault included.

    Args:
        path: the file; gzip is known by its first bytes, not by its name.
        advance: called with the number of bytes read from the disk, now and then.

    Raises:
        CrawlError: the file cannot be opened, is not WET, or its gzip data is damaged or cut off.

    Source: released code, ``c4_utils.split_wet_file``.
    """
    texts = _universal_newlines(_decoded(_blocks(path, advance or _nobody)))
    for number, (record, cut) in enumerate(_records(texts, path)):
        yield _page(record, number, cut=cut)


def _nobody(_: int) -> None:
    """Take no notice of progress."""


def _blocks(path: Path, advance: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the file's bytes, decompressed, in pieces of at most `BLOCK_BYTES`."""
    try:
        with path.open("rb") as handle:
            first = handle.read(len(GZIP_MAGIC))
            if not first:
                raise CrawlError(
                    f"{path}: the file is empty; fetch it again or take it off the list"
                )
            handle.seek(0)
            pieces = _inflated if first == GZIP_MAGIC else _plain
            yield from pieces(handle, path, advance)
    except OSError as error:
        raise CrawlError(
            f"{path}: cannot be read ({error.strerror or error}); check the path in the run file"
        ) from error


def _plain(handle: IO[bytes], path: Path, advance: Callable[[int], None]) -> Iterator[bytes]:
    while block := handle.read(BLOCK_BYTES):
        advance(len(block))
        yield block


def _inflated(handle: IO[bytes], path: Path, advance: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the contents of gzip members that follow each other."""
    member, member_at = zlib.decompressobj(GZIP_MEMBER), 0
    fresh = True  # nothing was fed to `member` yet
    read = 0
    while block := handle.read(BLOCK_BYTES):
        read += len(block)
        advance(len(block))
        while block:
            if fresh:
                block = block.lstrip(b"\0")  # padding between members, as gzip allows
                member_at = read - len(block)
                if not block:
                    break
            fresh = False
            try:
                data = member.decompress(block, BLOCK_BYTES)
            except zlib.error as error:
                raise CrawlError(
                    f"{path}: the gzip member that begins at byte {member_at} is damaged "
                    f"({error}); fetch the file again or take it off the list"
                ) from error
            if data:
                yield data
            block = member.unconsumed_tail
            if member.eof:
                block = member.unused_data
                member, fresh = zlib.decompressobj(GZIP_MEMBER), True
    if not fresh:
        raise CrawlError(
            f"{path}: the gzip member that begins at byte {member_at} is cut off at the end of the "
            f"file (byte {read}); fetch the file again or take it off the list"
        )


def _decoded(blocks: Iterable[bytes]) -> Iterator[str]:
    """Yield text; bytes that are no UTF-8 become lone surrogates, which no valid text holds."""
    held = b""
    for block in blocks:
        data = held + block
        try:
            text, used = codecs.utf_8_decode(data, "strict", False)
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(data, "surrogateescape", False)
        held = data[used:]
        yield text
    if held:
        yield held.decode("utf-8", "surrogateescape")


def _universal_newlines(texts: Iterable[str]) -> Iterator[str]:
    r"""Yield the text with every lone ``\r`` as ``\n``; stripping removes that of ``\r\n``."""
    held = ""
    for text in texts:
        whole = held + text
        held = ""
        if whole.endswith("\r"):  # its "\n" may follow in the next piece
            whole, held = whole[:-1], "\r"
        if whole.count("\r") != whole.count("\r\n"):
            whole = whole.replace("\r\n", "\n").replace("\r", "\n")
        yield whole
    if held:
        yield "\n"


def _records(texts: Iterable[str], path: Path) -> Iterator[tuple[str, bool]]:
    """Yield each record's text from its delimiter on, and whether it was too long to keep."""
    splitter = _Splitter()
    begin = ""  # of the file, until enough of it was seen
    for text in texts:
        if len(begin) < len(DELIMITER):
            begin = (begin + text).lstrip()
            _check_begin(begin, path)
        yield from splitter.feed(text)
    if not begin.startswith(DELIMITER):
        raise _not_wet(begin, path)
    yield from splitter.close()


def _check_begin(begin: str, path: Path) -> None:
    """Refuse a file as soon as its first line cannot be the delimiter."""
    if not DELIMITER.startswith(begin[: len(DELIMITER)]):
        raise _not_wet(begin, path)


def _not_wet(begin: str, path: Path) -> CrawlError:
    return CrawlError(
        f"{path}: not a WET file: at byte 0 it begins with {begin[:40]!r}, and a WET file with the "
        f"line {DELIMITER!r}; take it off the list of WET files"
    )


class _Splitter:
    """Cuts a stream of text at the lines that are `DELIMITER`."""

    def __init__(self) -> None:
        self._pending = ""  # from the last delimiter on
        self._searched = 0  # no delimiter begins before this place of `_pending`
        self._cut = False  # text of the record in `_pending` was let go

    def feed(self, text: str) -> Iterator[tuple[str, bool]]:
        """Take more text; yield the records that it completes."""
        self._pending += text
        yield from self._complete(final=False)
        if len(self._pending) > MAX_PENDING_CHARS:
            self._shrink()

    def close(self) -> Iterator[tuple[str, bool]]:
        """Yield what is left at the end of the file."""
        yield from self._complete(final=True)
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
                    yield text[start:line_start], self._cut
                    self._cut = False
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
        if len(self._pending) > MAX_PENDING_CHARS // 2:
            # The unfinished line keeps its beginning: it must not be taken for a delimiter.
            rest = rest[:100]
            self._pending = self._pending[: MAX_PENDING_CHARS // 4] + "\n" + rest
            self._cut = True
        self._searched = max(len(self._pending) - len(rest) - len(DELIMITER), 0)


def _page(record: str, number: int, *, cut: bool) -> Page:
    """Return the page of a record's text."""
    lines = list(filter(None, map(str.strip, record.split("\n"))))
    url = timestamp = ""
    first = len(lines)
    for index, line in enumerate(lines):
        if not line.startswith(NEVER_TEXT):
            first = index
            break
        if line.startswith(URL_FIELD):
            url = line[len(URL_FIELD) :].strip()
        elif line.startswith(DATE_FIELD):
            timestamp = line[len(DATE_FIELD) :].strip()
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
    return Page(url, timestamp, text, number, _fault(url, timestamp, text, cut=cut))


def _fault(url: str, timestamp: str, text: str, *, cut: bool) -> str | None:
    """Return why a page cannot be used; None if it can."""
    if not url:
        return NO_URL
    if not text:
        return NO_CONTENT
    if not timestamp:
        return NO_TIMESTAMP
    if cut:
        return TOO_LONG
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
