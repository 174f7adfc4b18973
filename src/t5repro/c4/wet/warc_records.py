"""The records of a WET file, found in its bytes before anything is decoded.

A line that is ``WARC/1.0`` begins one, wherever it stands (`wet` says why); lines are those of
universal newlines, stripped of Unicode white space.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from t5repro.c4.wet import faults
from t5repro.c4.wet.faults import Fault, OnFault
from t5repro.c4.wet.gzip_members import DELIMITER, Gap, Limits

NEVER_TEXT = ("WARC", "CONTENT-", "Content-")  # a line that begins so is a field
CUT_CHARS = 1 << 18  # held of a record that was found too long
OTHER_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

DELIMITER_TEXT = DELIMITER.decode()
_FIRST_LINES = (DELIMITER + b"\r\n", DELIMITER + b"\n")
_END_OF_LINE = re.compile(rb"[\r\n]")
_FIELDS = [prefix.encode() for prefix in NEVER_TEXT]
_ANY_FIELD = BytesAhoCorasick(_FIELDS, implementation=Implementation.DFA)
_LEADING_FIELDS = re.compile(
    rb"(?:[ \t-\r]*(?:%b)[^\r\n]*(?:\r?\n|\Z))*[ \t-\r]*" % b"|".join(_FIELDS)
)


class Record(NamedTuple):
    """One record.

    Attributes:
        data: its bytes, from its delimiter on.
        cut: whether it was too long to keep, and its end is missing.
        text_at: where its text begins, if that is known and it is a plain one.
    """

    data: bytes
    cut: bool
    text_at: int | None = None


def plain_text_at(record: bytes) -> int | None:
    """Return where a record's text begins that has fields before it and none inside; else None."""
    match = _LEADING_FIELDS.match(record)
    begin = match.end() if match else 0
    if record.find(DELIMITER, len(DELIMITER), begin) >= 0:  # two records, the first without text
        return None
    return None if _ANY_FIELD.find_matches_as_indexes(memoryview(record)[begin:]) else begin


def records(
    pieces: Iterable[bytes | Gap], path: Path, limits: Limits, on_fault: OnFault
) -> Iterator[Record]:
    """Yield the records of a WET file.

    Args:
        pieces: its bytes and gaps.
        path: of the file, for the error.
        limits: what one record may need.
        on_fault: is told if the file does not begin with a record.
    """
    splitter = _Splitter(limits.record_chars)
    begin = b""  # of the file, until enough of it was seen
    judged = False
    for piece in pieces:
        if isinstance(piece, Gap):
            judged = True  # what follows need not begin with a delimiter
            yield from splitter.break_off(unfinished=piece.cuts)
            continue
        if not judged:
            begin += piece
            text = as_text(begin).lstrip()
            judged = len(text) >= len(DELIMITER_TEXT)
            if judged and not text.startswith(DELIMITER_TEXT):
                on_fault(_not_wet(text, path))
                yield from splitter.break_off(unfinished=True)
        yield from splitter.feed(piece)
    if not judged and not as_text(begin).lstrip().startswith(DELIMITER_TEXT):
        on_fault(_not_wet(as_text(begin).lstrip(), path))
        return
    yield from splitter.close()


def _not_wet(begin: str, path: Path) -> Fault:
    detail = (
        f"not a WET file: at byte 0 it begins with {begin[:40]!r}, and a WET file with the "
        f"line {DELIMITER_TEXT!r}"
    )
    return Fault(path.as_posix(), "byte 0", faults.NOT_WET, detail)


class _Splitter:
    """Cuts a stream of bytes at the lines that are `DELIMITER_TEXT`."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._pending = b""  # from the last delimiter on
        self._searched = 0  # no delimiter begins before this place of `_pending`
        self._cut = False  # text of the record in `_pending` was let go
        self._text_at: int | None = None  # where its text begins, if it is a plain one
        self._lost = False  # its begin is unknown: nothing is a record until the next delimiter

    def feed(self, piece: bytes) -> Iterator[Record]:
        """Take more bytes; yield the records that they complete."""
        if piece.startswith(_FIRST_LINES) and self._pending[-1:] in (b"", b"\n"):
            # As nearly every gzip member: the begin of a record, and the end of the one before.
            if not (self._lost or _is_blank(self._pending)):
                yield Record(self._pending, self._cut, self._text_at)
            self._pending = piece
            self._cut = self._lost = False
            self._text_at = plain_text_at(piece)
            plain = self._text_at is not None
            self._searched = len(piece) - len(DELIMITER) + 1 if plain else len(DELIMITER)
        else:
            self._pending += piece
            self._text_at = None
        yield from self._complete(final=False)
        most = min(CUT_CHARS if self._cut else self._max_chars, self._max_chars)
        if len(self._pending) > most and len(as_text(self._pending)) > most:
            self._shrink()

    def break_off(self, *, unfinished: bool) -> Iterator[Record]:
        """End the record before a gap; what follows is none until the next delimiter."""
        yield from self._complete(final=True)
        if not (unfinished or self._lost or _is_blank(self._pending)):
            yield Record(self._pending, self._cut, self._text_at)
        self._pending, self._searched, self._text_at = b"", 0, None
        self._cut, self._lost = False, True

    def close(self) -> Iterator[Record]:
        """Yield what is left at the end of the file."""
        yield from self._complete(final=True)
        if not self._lost:
            yield Record(self._pending, self._cut, self._text_at)

    def _complete(self, *, final: bool) -> Iterator[Record]:
        data, start = self._pending, 0
        searched = len(data) - len(DELIMITER) + 1
        at = data.find(DELIMITER, self._searched)
        while at >= 0:
            line_start = max(data.rfind(b"\n", start, at) + 1, start)
            line_start = max(data.rfind(b"\r", line_start, at) + 1, line_start)
            line_end = _END_OF_LINE.search(data, at)
            if line_end is None and not final:
                searched = at  # the line goes on in the next piece
                break
            end = len(data) if line_end is None else line_end.start()
            if as_text(data[line_start:end]).strip() == DELIMITER_TEXT:
                if not _is_blank(data[start:line_start]):
                    if not self._lost:
                        yield Record(data[start:line_start], self._cut)
                    self._cut = False
                self._lost = False
                start = line_start
            at = data.find(DELIMITER, end)
        self._pending = data[start:]
        # The delimiter that `_pending` begins with is not to be found again as the next one, and
        # finding it again does no harm: it is a record of nothing but white space before it.
        self._searched = max(searched - start, 0)

    def _shrink(self) -> None:
        """Keep the record's meaning in less memory, or its beginning if that is too long."""
        whole, newline, rest = as_text(one_newline(self._pending)).rpartition("\n")
        text = "\n".join(stripped_lines(whole)) + newline + rest
        if self._cut or len(text) > self._max_chars // 2:
            # The unfinished line keeps its beginning: it must not be taken for a delimiter.
            rest = rest[:100]
            text = text[: min(self._max_chars // 4, CUT_CHARS // 4)] + "\n" + rest
            self._cut = True
        self._pending, self._text_at = as_bytes(text), None
        self._searched = max(len(self._pending) - len(as_bytes(rest)) - len(DELIMITER), 0)


def as_text(data: bytes) -> str:
    """Return text; a byte that is no UTF-8 becomes a lone surrogate, which no valid text holds."""
    return data.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return what `as_text` made a text of."""
    return text.encode("utf-8", "surrogateescape")


def one_newline(data: bytes) -> bytes:
    r"""Return text with every ``\r\n`` and every lone ``\r`` as ``\n``."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def stripped_lines(text: str) -> list[str]:
    """Return the lines of `text`, stripped, without blank ones."""
    return list(filter(None, map(str.strip, text.split("\n"))))


def text_of(body: bytes) -> str:
    """Return the text of a page: its lines, stripped, without blank ones."""
    return "\n".join(stripped_lines(as_text(body)))


def has_other_ends(text: str) -> bool:
    r"""Return whether `text` holds an end of a line, as Python knows them, that is no ``\n``."""
    return any(end in text for end in OTHER_LINE_ENDS)


def _is_blank(data: bytes) -> bool:
    return not data.startswith(DELIMITER) and not as_text(data).strip()
