"""Divide the bytes of a WET file into records without decoding them.

A record starts at every line ``WARC/1.0``, even inside a text (`pages` explains why), and in a file
that begins with a WARC/1.1 record also at every line ``WARC/1.1``. Lines end at universal newlines
and are stripped of Unicode white space.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from t5repro.c4.wet import faults, gzip_members
from t5repro.c4.wet.faults import Fault, OnFault
from t5repro.c4.wet.gzip_members import RECORD_START, Gap, Limits

NEVER_TEXT = ("WARC", "CONTENT-", "Content-")  # prefixes of field lines
CUT_CHARS = 1 << 18  # characters in memory of a record that was cut for its length
OTHER_NEWLINES = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

WARC_1_0, WARC_1_1 = gzip_members.WARC_1_0.decode(), gzip_members.WARC_1_1.decode()
FIRST_LINES = (WARC_1_0, WARC_1_1)  # of records
_FIRST_LINE = re.compile(rb"(WARC/1\.[01])\r?\n")
_MERGED_RECORD = re.compile(rb"WARC/1\.[0-9][ \t]*[\r\n]\s*(?:WARC-|Content-)")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*([0-9]{1,18})[ \t]*\r?$")
_END_OF_LINE = re.compile(rb"[\r\n]")
_FIELDS = [prefix.encode() for prefix in NEVER_TEXT]
_ANY_FIELD = BytesAhoCorasick(_FIELDS, implementation=Implementation.DFA)
_LEADING_FIELDS = re.compile(
    rb"(?:[ \t-\r]*(?:%b)[^\r\n]*(?:\r?\n|\Z))*[ \t-\r]*" % b"|".join(_FIELDS)
)


class Record(NamedTuple):
    """One record.

    Attributes:
        data: bytes of the record, from its delimiter on.
        cut: whether the record was too long and its end is missing.
        text_start: offset of the text, if the record is plain (`plain_text_start`) and the offset
            is known.
        ends_file: whether the file ends with the record, and `data` has all of its bytes.
    """

    data: bytes
    cut: bool
    text_start: int | None = None
    ends_file: bool = False


def plain_text_start(record: bytes) -> int | None:
    """Return the offset of the text of a record, or None if there are fields inside the text."""
    match = _LEADING_FIELDS.match(record)
    begin = match.end() if match else 0
    if (
        record.find(RECORD_START, len(RECORD_START), begin) >= 0
    ):  # two records, the first without text
        return None
    return None if _ANY_FIELD.find_matches_as_indexes(memoryview(record)[begin:]) else begin


def merged_records(record: bytes) -> int:
    """Return the number of further record headers inside a record.

    Their first line has another version, or follows a text without a line end.
    """
    begin = record.find(RECORD_START) + len(RECORD_START)  # of its own header
    if record.find(RECORD_START, begin) < 0:  # faster than the pattern, and true of nearly all
        return 0
    return len(_MERGED_RECORD.findall(record, begin))


def missing_bytes(record: bytes) -> int:
    """Return by how many bytes the content of a record is shorter than its header states."""
    header_end = _HEADER_END.search(record)
    end = header_end.end() if header_end else len(record)
    length_field = _CONTENT_LENGTH.search(record, 0, end)
    return max(int(length_field[1]) - (len(record) - end), 0) if length_field else 0


def delimiters_of(first_line: str) -> tuple[str, ...]:
    """Return the lines that start a record in a file that begins with `first_line`.

    The released code knows WARC/1.0 only (D-033).
    """
    return FIRST_LINES if first_line == WARC_1_1 else (WARC_1_0,)


def split_records(
    pieces: Iterable[bytes | Gap],
    path: Path,
    limits: Limits,
    on_fault: OnFault,
    *,
    reads_warc_1_1: bool,
) -> Iterator[Record]:
    """Yield the records of a WET file.

    Args:
        pieces: bytes and gaps of the file.
        path: of the file, for the error.
        limits: maximum sizes of a record.
        on_fault: called if the file does not start with a record.
        reads_warc_1_1: whether a file may begin with a record of WARC/1.1.
    """
    splitter = _Splitter(limits.record_chars, reads_warc_1_1=reads_warc_1_1)
    first_lines = splitter.delimiters
    begin = b""  # first bytes of the file, until there are enough for the check
    checked = False
    for piece in pieces:
        if isinstance(piece, Gap):
            checked = True  # after a gap the file may continue inside a record
            yield from splitter.end_at_gap(incomplete=piece.cuts)
            continue
        if not checked:
            begin += piece
            text = as_text(begin).lstrip()
            checked = len(text) >= len(WARC_1_0)
            if checked and not text.startswith(first_lines):
                on_fault(_not_wet(text, path, first_lines))
                yield from splitter.end_at_gap(incomplete=True)
        yield from splitter.feed(piece)
    if not checked:  # too short for the first line of a record
        on_fault(_not_wet(as_text(begin).lstrip(), path, first_lines))
        return
    yield from splitter.close()


def _not_wet(begin: str, path: Path, first_lines: tuple[str, ...]) -> Fault:
    detail = (
        f"not a WET file: at byte 0 it starts with {begin[:40]!r}, not with the line "
        f"{' or '.join(map(repr, first_lines))}"
    )
    return Fault(path.as_posix(), "byte 0", faults.NOT_WET, detail)


class _Splitter:
    """Divides a stream of bytes at the lines that are `delimiters`.

    Attributes:
        delimiters: the first lines of a record; after the first one, only the lines of its version.
    """

    def __init__(self, max_chars: int, *, reads_warc_1_1: bool) -> None:
        self.delimiters: tuple[str, ...] = FIRST_LINES if reads_warc_1_1 else (WARC_1_0,)
        self._is_first = True  # no record has started yet
        self._max_chars = max_chars
        self._pending = b""  # the incomplete record, from its delimiter on
        self._searched = 0  # no delimiter starts before this offset of `_pending`
        self._cut = False  # part of the text of the record in `_pending` was discarded
        self._is_shrunk = False  # its white space was discarded
        self._text_start: int | None = None  # offset of its text, if it is plain
        self._in_gap = False  # its start was lost: bytes are skipped up to the next delimiter

    def feed(self, piece: bytes) -> Iterator[Record]:
        """Append bytes; yield the records that they complete."""
        line = _FIRST_LINE.match(piece)
        if line and self._pending[-1:] in (b"", b"\n") and self._is_delimiter(line[1]):
            # Nearly every gzip member is one record, so it completes the record before.
            if not (self._in_gap or _is_blank(self._pending)):
                yield Record(self._pending, self._cut, self._text_start)
            self._pending = piece
            self._cut = self._in_gap = self._is_shrunk = False
            self._text_start = plain_text_start(piece)
            # A plain record contains no second delimiter: only its end must be searched again,
            # together with the next piece.
            plain = self._text_start is not None
            self._searched = len(piece) - len(RECORD_START) + 1 if plain else len(RECORD_START)
        else:
            self._pending += piece
            self._text_start = None
        yield from self._complete(final=False)
        max_chars = min(CUT_CHARS if self._cut else self._max_chars, self._max_chars)
        if len(self._pending) > max_chars and len(as_text(self._pending)) > max_chars:
            self._shrink()

    def end_at_gap(self, *, incomplete: bool) -> Iterator[Record]:
        """End the record before a gap and skip all bytes up to the next delimiter.

        Args:
            incomplete: whether the record before the gap lost its end and is dropped.
        """
        yield from self._complete(final=True)
        if not (incomplete or self._in_gap or _is_blank(self._pending)):
            yield Record(self._pending, self._cut, self._text_start)
        self._pending, self._searched, self._text_start = b"", 0, None
        self._cut, self._is_shrunk, self._in_gap = False, False, True

    def close(self) -> Iterator[Record]:
        """Yield the last records of the file."""
        yield from self._complete(final=True)
        if not self._in_gap:
            yield Record(self._pending, self._cut, self._text_start, not self._is_shrunk)

    def _is_delimiter(self, line: bytes) -> bool:
        """Return whether a line starts a record; the first one decides the version of the file."""
        text = as_text(line).strip()
        if text not in self.delimiters:
            return False
        if self._is_first:
            self._is_first, self.delimiters = False, delimiters_of(text)
        return True

    def _complete(self, *, final: bool) -> Iterator[Record]:
        """Yield the complete records of `_pending`; `final`: the last line is complete too."""
        data, start = self._pending, 0
        searched = len(data) - len(RECORD_START) + 1
        index = data.find(RECORD_START, self._searched)
        while index >= 0:
            line_start = max(data.rfind(b"\n", start, index) + 1, start)
            line_start = max(data.rfind(b"\r", line_start, index) + 1, line_start)
            line_end = _END_OF_LINE.search(data, index)
            if line_end is None and not final:
                searched = index  # the line continues in the next piece
                break
            end = len(data) if line_end is None else line_end.start()
            # "WARC/1.0" inside a longer line is text; white space around it is not.
            if self._is_delimiter(data[line_start:end]):
                if not _is_blank(data[start:line_start]):
                    if not self._in_gap:
                        yield Record(data[start:line_start], self._cut)
                    self._cut = self._is_shrunk = False
                self._in_gap = False
                start = line_start
            index = data.find(RECORD_START, end)
        self._pending = data[start:]
        # If the search finds the delimiter at the start of `_pending` again, the record before it
        # is blank and is not yielded.
        self._searched = max(searched - start, 0)

    def _shrink(self) -> None:
        """Strip white space from the record, and cut it if it is still too long."""
        complete, newline, last_line = as_text(normalize_newlines(self._pending)).rpartition("\n")
        text = "\n".join(stripped_lines(complete)) + newline + last_line
        if self._cut or len(text) > self._max_chars // 2:
            # The incomplete last line keeps its start: otherwise a text that continues with
            # "WARC/1.0" would look like a delimiter.
            last_line = last_line[:100]
            text = text[: min(self._max_chars // 4, CUT_CHARS // 4)] + "\n" + last_line
            self._cut = True
        self._pending, self._text_start, self._is_shrunk = as_bytes(text), None, True
        self._searched = max(len(self._pending) - len(as_bytes(last_line)) - len(RECORD_START), 0)


def as_text(data: bytes) -> str:
    """Decode UTF-8; an invalid byte becomes a lone surrogate, which no valid text contains."""
    return data.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return the bytes from which `as_text` decoded a text."""
    return text.encode("utf-8", "surrogateescape")


def normalize_newlines(data: bytes) -> bytes:
    r"""Replace every ``\r\n`` and every lone ``\r`` by ``\n``."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def stripped_lines(text: str) -> list[str]:
    """Return the lines of `text`, stripped, without blank ones."""
    return list(filter(None, map(str.strip, text.split("\n"))))


def text_of(body: bytes) -> str:
    """Return the text of a page's body: its lines, stripped, without blank ones."""
    return "\n".join(stripped_lines(as_text(body)))


def contains_other_newlines(text: str) -> bool:
    r"""Return whether `text` contains a line end of `str.splitlines` other than ``\n``."""
    return any(newline in text for newline in OTHER_NEWLINES)


def _is_blank(data: bytes) -> bool:
    return not data.startswith(RECORD_START) and not as_text(data).strip()
