"""The decompressed bytes of a WET file: plain text, one gzip stream, or a sequence of gzip members.

ISA-L decompresses intact members; zlib all others, because it reports the kind of damage.

A member is buffered until its checksum is verified, so the corrupted text of a damaged member is
never taken for a page. Only a member longer than `Limits.member_bytes` is read as a stream. After
damage, reading continues at the next member, and a `Gap` replaces the lost bytes.
"""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

from isal import igzip_lib

from t5repro.c4.wet import faults

SEARCH_BYTES = 1 << 16  # read at once to recognise the file type or to find the next member
FEED_BYTES = 1 << 15  # read at once for decompression; bytes behind a member's end are copied once
PIECE_BYTES = 1 << 18  # small pieces are joined up to this size
MAX_PIECE_BYTES = 1 << 20  # of a piece, and per call of zlib
ISAL_BYTES = 1 << 16  # per call of ISA-L, which allocates this much in advance

GZIP_MAGIC = b"\x1f\x8b"
GZIP_MEMBER = 16 + zlib.MAX_WBITS
_MEMBER_MAGIC = GZIP_MAGIC + b"\x08"  # with the only compression method, deflate
_RESERVED_FLAGS = 0xE0
_CHECKSUM_ERRORS = ("incorrect data check", "incorrect length check")  # messages of zlib
_TRIAL_BYTES = 4096
_SALVAGE_BYTES = 512
RECORD_START = b"WARC/1."  # of the first line of a record; the minor version follows
WARC_1_0, WARC_1_1 = b"WARC/1.0", b"WARC/1.1"

Advance = Callable[[int], None]


class Limits(NamedTuple):
    """Maximum sizes of a record and a gzip member (`c4.limits`).

    Attributes:
        record_chars: characters of one record in memory.
        member_bytes: uncompressed bytes of one gzip member that are buffered and verified.
        expansion: maximum ratio of uncompressed to compressed bytes of a longer member.
    """

    record_chars: int = 4_194_304
    member_bytes: int = 16_777_216
    expansion: int = 200


class Gap(NamedTuple):
    """Bytes that could not be read.

    Attributes:
        begin: offset of the first of these bytes in the file.
        end: offset at which reading continues; the length of the file if it ends.
        reason: one of `faults.REASONS`.
        detail: description of the damage.
        cuts: whether the record before the gap is incomplete.
    """

    begin: int
    end: int
    reason: str
    detail: str
    cuts: bool


def is_gzip(first: bytes) -> bool:
    """Return whether a file is gzip by its first bytes, which damage may precede.

    A plain file starts a record before any damaged text that looks like the start of a member.
    """
    if first.startswith(GZIP_MAGIC):
        return True
    before_member, magic, _ = first.partition(_MEMBER_MAGIC)
    return bool(magic) and RECORD_START not in before_member


def read_plain(handle: IO[bytes], advance: Advance) -> Iterator[bytes | Gap]:
    """Yield the bytes of an uncompressed file, and a gap for those that went missing meanwhile."""
    size, offset = os.fstat(handle.fileno()).st_size, 0
    while block := handle.read(PIECE_BYTES):
        offset += len(block)
        advance(len(block))
        yield block
    if offset < size:
        detail = f"the file had {size} bytes when it was opened and {offset} at the end"
        yield Gap(offset, size, faults.FILE_SHRANK, detail, True)


def read_members(handle: IO[bytes], limits: Limits, advance: Advance) -> Iterator[bytes | Gap]:
    """Yield the contents of the gzip members of a file, and gaps.

    A member that starts a record is yielded unchanged; other members are joined to larger pieces.

    Args:
        handle: the file.
        limits: maximum size of one member.
        advance: called with the number of bytes read for the first time.
    """
    buffer: list[bytes] = []
    size = 0
    for piece in _MemberReader(handle, limits, advance).pieces():
        starts_record = not isinstance(piece, Gap) and piece.startswith(RECORD_START)
        if buffer and (isinstance(piece, Gap) or starts_record or size >= PIECE_BYTES):
            yield b"".join(buffer)
            buffer, size = [], 0
        if isinstance(piece, Gap) or starts_record:
            yield piece
        else:
            buffer.append(piece)
            size += len(piece)
    if buffer:
        yield b"".join(buffer)


class _MemberReader:
    """Reads gzip members, with the arguments of `read_members`."""

    def __init__(self, handle: IO[bytes], limits: Limits, advance: Advance) -> None:
        self._handle = handle
        self._limits = limits
        self._advance = advance
        self._block = b""  # read and not yet decompressed
        self._offset = 0  # in the file, behind `_block`
        self._max_offset = 0
        self._last_byte = b"\n"  # of the last piece

    def pieces(self) -> Iterator[bytes | Gap]:
        """Yield contents and gaps in the order of the file."""
        while self._fill():
            self._block = self._block.lstrip(b"\0")  # gzip allows zero padding between members
            if not self._block:
                continue
            begin = self._offset - len(self._block)
            content = self._intact_member()
            if content is None:
                # Read the member again with zlib, which reports the kind of damage.
                self._seek(begin)
                yield from self._checked_member(begin)
            elif content:
                self._last_byte = content[-1:]
                yield from _split(content)

    def _fill(self) -> bool:
        """Read the next block if the last one is used up; return False at the end of the file."""
        if not self._block:
            self._block = self._handle.read(FEED_BYTES)
            self._offset += len(self._block)
            self._report_progress()
        return bool(self._block)

    def _report_progress(self) -> None:
        # Damaged members are read several times and reported once.
        if self._offset > self._max_offset:
            self._advance(self._offset - self._max_offset)
            self._max_offset = self._offset

    def _intact_member(self) -> bytes | None:
        """Return the content of a member, decompressed by ISA-L; None if it is long or damaged."""
        engine = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        chunks: list[bytes] = []
        budget = self._limits.member_bytes
        try:
            while not engine.eof:
                if budget <= 0 or (engine.needs_input and not self._fill()):
                    return None
                data, self._block = self._block if engine.needs_input else b"", b""
                chunks.append(engine.decompress(data, min(budget, ISAL_BYTES)))
                budget -= len(chunks[-1])
        except igzip_lib.error:  # type: ignore[misc]  # the stub does not declare a type
            return None
        self._block = engine.unused_data
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _checked_member(self, begin: int) -> Iterator[bytes | Gap]:
        """Yield one member, decompressed by zlib, or its intact part and a gap."""
        engine = zlib.decompressobj(GZIP_MEMBER)
        chunks: list[bytes] = []
        size = 0
        streams = False  # yields parts before the checksum is verified
        fault = ""
        while not engine.eof and not fault:
            if not self._fill():
                fault, detail = faults.GZIP_CUT, "is cut off at the end of the file"
                break
            try:
                data = engine.decompress(self._block, MAX_PIECE_BYTES)
            except zlib.error as error:
                fault, detail = faults.GZIP_DAMAGED, f"is damaged ({error})"
                break
            self._block = engine.unused_data if engine.eof else engine.unconsumed_tail
            size += len(data)
            if streams:
                yield from self._nonempty([data])
            else:
                chunks.append(data)
            if size > self._limits.member_bytes:
                used = self._offset - len(self._block) - begin
                # Checked only for long members: short ones cannot exhaust memory, and a page of
                # one repeated line compresses very well.
                if size > used * self._limits.expansion:
                    fault = faults.GZIP_BOMB
                    detail = (
                        f"is a gzip bomb: {used} bytes became {size}, more than "
                        f"{self._limits.expansion} times as many (c4.limits.gzip_expansion)"
                    )
                elif not streams:
                    yield from self._nonempty(chunks)
                    chunks, streams = [], True
        if not fault:
            if not streams:
                yield from self._nonempty(chunks)
            return
        del chunks
        yield from self._damaged_member(begin, fault, detail, size, streams=streams)

    def _damaged_member(
        self, begin: int, fault: str, detail: str, size: int, *, streams: bool
    ) -> Iterator[bytes | Gap]:
        """Yield the intact records of a damaged member and a gap; seek to the next member.

        Args:
            begin: offset of the member in the file.
            fault: one of `faults.REASONS`.
            detail: description of the damage.
            size: bytes that zlib decompressed before it failed.
            streams: whether these bytes were yielded already.
        """
        starts_record = several_records = False
        if fault != faults.GZIP_BOMB and (streams or size <= self._limits.member_bytes):
            if streams:
                yield from self._nonempty(self._salvaged(begin, size))
            else:
                # zlib returns nothing from the failing call, which may have decompressed records.
                content = b"".join(self._salvaged(begin, 0))
                version = content.lstrip()[: len(WARC_1_0)]
                starts_record = version in (WARC_1_0, WARC_1_1)
                several_records = content.count(version if starts_record else WARC_1_0) > 1
                # In a member of one record, as Common Crawl writes them, the damaged record is the
                # only one and is dropped. A file that is a single member has intact records before
                # the damage.
                if several_records:
                    yield from self._nonempty([content])
        # A wrong checksum is detected behind the last record, which is complete then; other damage
        # is inside a record.
        cuts = not any(error in detail for error in _CHECKSUM_ERRORS)
        if not several_records and not streams:
            # Nothing of this member was yielded. The record before it is incomplete only if it
            # continues in this member: it has no final newline and no record starts here.
            cuts = not starts_record and self._last_byte != b"\n"
        end = self._seek_member(begin + 1)
        yield Gap(begin, end, fault, f"the gzip member that begins at byte {begin} {detail}", cuts)
        self._last_byte = b"\n"

    def _salvaged(self, begin: int, skip: int) -> Iterator[bytes]:
        """Yield the content of a damaged member before the damage, without `skip` bytes."""
        self._handle.seek(begin)
        engine = zlib.decompressobj(GZIP_MEMBER)
        while not engine.eof and (block := self._handle.read(_SALVAGE_BYTES)):
            # A failed call leaves the engine unusable: the copy repeats the block byte by byte.
            retry = engine.copy()
            try:
                pieces = [engine.decompress(block)]
            except zlib.error:
                pieces = _decompress_bytewise(retry, block)
                block = b""
            for piece in pieces:
                yield piece[skip:]
                skip = max(skip - len(piece), 0)
            if not block:
                return

    def _nonempty(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces that are not empty and remember the last byte."""
        for piece in pieces:
            if piece:
                self._last_byte = piece[-1:]
                yield piece

    def _seek_member(self, offset: int) -> int:
        """Seek to the first member at `offset` or later; return its offset, or the file's end."""
        self._handle.seek(offset)
        window = b""
        while block := self._handle.read(SEARCH_BYTES):
            window += block
            index = window.find(_MEMBER_MAGIC)
            while index >= 0:
                # The magic bytes also occur by chance inside compressed data.
                if self._is_member(offset + index):
                    return self._seek(offset + index)
                index = window.find(_MEMBER_MAGIC, index + 1)
            # Keep the last bytes: the magic bytes may be divided between two blocks.
            searched = max(len(window) - len(_MEMBER_MAGIC) + 1, 0)
            offset, window = offset + searched, window[searched:]
            self._handle.seek(offset + len(window))
        return self._seek(offset + len(window))

    def _seek(self, offset: int) -> int:
        self._handle.seek(offset)
        self._block, self._offset = b"", offset
        self._report_progress()
        return offset

    def _is_member(self, offset: int) -> bool:
        """Return whether the data at an offset decompresses for `_TRIAL_BYTES`."""
        self._handle.seek(offset)
        head = self._handle.read(_TRIAL_BYTES)
        if len(head) > 3 and head[3] & _RESERVED_FLAGS:
            return False
        try:
            data = zlib.decompressobj(GZIP_MEMBER).decompress(head, MAX_PIECE_BYTES)
        except zlib.error as error:
            # A short member with a wrong checksum is still a member.
            return any(message in str(error) for message in _CHECKSUM_ERRORS)
        return bool(data)


def _split(data: bytes) -> list[bytes]:
    """Return `data` in pieces of at most `MAX_PIECE_BYTES`."""
    if len(data) <= MAX_PIECE_BYTES:
        return [data]
    return [data[start : start + MAX_PIECE_BYTES] for start in range(0, len(data), MAX_PIECE_BYTES)]


def _decompress_bytewise(engine: Any, data: bytes) -> list[bytes]:
    """Return the output of `engine` for `data` up to the first error."""
    pieces: list[bytes] = []
    for index in range(len(data)):
        try:
            pieces.append(engine.decompress(data[index : index + 1]))
        except zlib.error:
            break
    return pieces
