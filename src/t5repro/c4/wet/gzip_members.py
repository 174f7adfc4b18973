"""The bytes of a WET file: plain, one gzip stream, or gzip members one after another.

ISA-L inflates what is sound; zlib everything else, because it says what is wrong.

A member is held back until its checksum is known to be right, so what a flipped byte made of a
page never passes for one. A member longer than `Limits.member_bytes` is read as a stream. Behind
damage the next member is looked for, and a `Gap` takes the place of what was lost.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

from isal import igzip_lib

from t5repro.c4.wet import faults

READ_BYTES = 1 << 16  # of a file's begin, and where a member is looked for
FEED_BYTES = 1 << 15  # read to be inflated; what is behind a member's end is copied once
PIECE_BYTES = 1 << 18  # pieces are joined up to this
INFLATE_BYTES = 1 << 20  # of a piece, and inflated by zlib in one call
STEP_BYTES = 1 << 16  # inflated by ISA-L in one call: it takes memory for all that it may return

GZIP_MAGIC = b"\x1f\x8b"
GZIP_MEMBER = 16 + zlib.MAX_WBITS
_MEMBER_BEGIN = GZIP_MAGIC + b"\x08"  # with the only method there is
_RESERVED_FLAGS = 0xE0
_CHECKS = ("incorrect data check", "incorrect length check")  # zlib's words for a wrong checksum
_TRIAL_BYTES = 4096
_SALVAGE_BYTES = 512
DELIMITER = b"WARC/1.0"  # begins a record

Advance = Callable[[int], None]


class Limits(NamedTuple):
    """What one record or member may need.

    Attributes:
        record_chars: characters of one record that are held in memory.
        member_bytes: uncompressed bytes of one gzip member that are checked as a whole.
        expansion: how many times its compressed bytes a longer member may become.
    """

    record_chars: int = 4_194_304
    member_bytes: int = 16_777_216
    expansion: int = 200


class Gap(NamedTuple):
    """Bytes that could not be read.

    Attributes:
        begin: first of them, in the file.
        end: where reading goes on; the length of the file: nowhere.
        reason: one of `faults.REASONS`.
        detail: what was found.
        cuts: whether the record before it is unfinished.
    """

    begin: int
    end: int
    reason: str
    detail: str
    cuts: bool


def is_gzip(first: bytes) -> bool:
    """Return whether the first bytes of a file are those of gzip members, the first damaged or not.

    No text in UTF-8 holds the bytes that a member begins with.
    """
    return first.startswith(GZIP_MAGIC) or _MEMBER_BEGIN in first


def plain(handle: IO[bytes], advance: Advance) -> Iterator[bytes]:
    """Yield the bytes of a file that is not compressed."""
    while block := handle.read(PIECE_BYTES):
        advance(len(block))
        yield block


def inflated(handle: IO[bytes], limits: Limits, advance: Advance) -> Iterator[bytes | Gap]:
    """Yield the contents of the gzip members of a file, and gaps.

    A member that begins a record comes as it is; what else there is is joined to larger pieces.
    """
    waiting: list[bytes] = []
    size = 0
    for piece in _Members(handle, limits, advance).pieces():
        alone = isinstance(piece, Gap) or piece.startswith(DELIMITER)
        if waiting and (alone or size >= PIECE_BYTES):
            yield b"".join(waiting)
            waiting, size = [], 0
        if isinstance(piece, Gap) or alone:
            yield piece
        else:
            waiting.append(piece)
            size += len(piece)
    if waiting:
        yield b"".join(waiting)


class _Members:
    """Reads gzip members.

    Args:
        handle: the file.
        limits: what one member may need.
        advance: called with the number of bytes read for the first time.
    """

    def __init__(self, handle: IO[bytes], limits: Limits, advance: Advance) -> None:
        self._handle = handle
        self._limits = limits
        self._advance = advance
        self._block = b""  # read and not yet used
        self._at = 0  # place in the file behind `_block`
        self._furthest = 0
        self._last = b"\n"  # the last byte that was yielded

    def pieces(self) -> Iterator[bytes | Gap]:
        """Yield contents and gaps, in their order."""
        while self._fill():
            self._block = self._block.lstrip(b"\0")  # padding between members, as gzip allows
            if not self._block:
                continue
            begin = self._at - len(self._block)
            whole = self._sound_member()
            if whole is None:
                self._go_to(begin)
                yield from self._checked_member(begin)
            elif whole:
                self._last = whole[-1:]
                yield from _in_pieces(whole)

    def _fill(self) -> bool:
        """Read on if there is nothing left to use; return whether there is now."""
        if not self._block:
            self._block = self._handle.read(FEED_BYTES)
            self._at += len(self._block)
            if self._at > self._furthest:
                self._advance(self._at - self._furthest)
                self._furthest = self._at
        return bool(self._block)

    def _sound_member(self) -> bytes | None:
        """Return the contents of a member, inflated by ISA-L; None if it is long or not sound."""
        engine = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        held: list[bytes] = []
        left = self._limits.member_bytes
        try:
            while not engine.eof:
                if left <= 0 or (engine.needs_input and not self._fill()):
                    return None
                data, self._block = self._block if engine.needs_input else b"", b""
                held.append(engine.decompress(data, min(left, STEP_BYTES)))
                left -= len(held[-1])
        except igzip_lib.error:  # type: ignore[misc]  # the stub says only that it exists
            return None
        self._block = engine.unused_data
        return held[0] if len(held) == 1 else b"".join(held)

    def _checked_member(self, begin: int) -> Iterator[bytes | Gap]:
        """Yield one member by zlib, which says what is wrong with it, or a gap."""
        engine = zlib.decompressobj(GZIP_MEMBER)
        held: list[bytes] = []
        made = 0
        streams = False
        fault = ""
        while not engine.eof and not fault:
            if not self._fill():
                fault, detail = faults.GZIP_CUT, "is cut off at the end of the file"
                break
            try:
                data = engine.decompress(self._block, INFLATE_BYTES)
            except zlib.error as error:
                fault, detail = faults.GZIP_DAMAGED, f"is damaged ({error})"
                break
            self._block = engine.unused_data if engine.eof else engine.unconsumed_tail
            made += len(data)
            if streams:
                yield from self._told([data])
            else:
                held.append(data)
            if made > self._limits.member_bytes:
                used = self._at - len(self._block) - begin
                if made > used * self._limits.expansion:
                    fault = faults.GZIP_BOMB
                    detail = (
                        f"is a gzip bomb: {used} bytes became {made}, more than "
                        f"{self._limits.expansion} times as many (c4.limits.gzip_expansion)"
                    )
                elif not streams:
                    yield from self._told(held)
                    held, streams = [], True
        if not fault:
            if not streams:
                yield from self._told(held)
            return
        del held
        yield from self._lost(begin, fault, detail, made, streams=streams)

    def _lost(
        self, begin: int, fault: str, detail: str, made: int, *, streams: bool
    ) -> Iterator[bytes | Gap]:
        """Yield what can be saved of a damaged member, and its gap; go to the next member."""
        own_record = several = False
        if fault != faults.GZIP_BOMB and (streams or made <= self._limits.member_bytes):
            if streams:
                yield from self._told(self._salvaged(begin, made))
            else:
                # zlib gives nothing of the call that fails.
                whole = b"".join(self._salvaged(begin, 0))
                own_record = whole.lstrip().startswith(DELIMITER)
                several = whole.count(DELIMITER) > 1
                if several:  # the records before the place where the damage shows are saved
                    yield from self._told([whole])
        cuts = not any(check in detail for check in _CHECKS)  # those show behind the last record
        if not several and not streams:
            cuts = not own_record and self._last != b"\n"
        end = self._seek_member(begin + 1)
        place = f"the gzip member that begins at byte {begin} {detail}"
        yield Gap(begin, end, fault, place, cuts)
        self._last = b"\n"

    def _salvaged(self, begin: int, skip: int) -> Iterator[bytes]:
        """Yield what a damaged member holds before the place where that shows, less `skip`."""
        self._handle.seek(begin)
        engine = zlib.decompressobj(GZIP_MEMBER)
        while not engine.eof and (step := self._handle.read(_SALVAGE_BYTES)):
            before = engine.copy()
            try:
                pieces = [engine.decompress(step)]
            except zlib.error:
                pieces = _byte_by_byte(before, step)
                step = b""
            for piece in pieces:
                yield piece[skip:]
                skip = max(skip - len(piece), 0)
            if not step:
                return

    def _told(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if piece:
                self._last = piece[-1:]
                yield piece

    def _seek_member(self, begin: int) -> int:
        """Go to the first member that begins at `begin` or later; return where it is."""
        at = begin
        self._handle.seek(at)
        window = b""
        while block := self._handle.read(READ_BYTES):
            window += block
            found = window.find(_MEMBER_BEGIN)
            while found >= 0:
                if self._is_member(at + found):
                    return self._go_to(at + found)
                found = window.find(_MEMBER_BEGIN, found + 1)
            used = max(len(window) - len(_MEMBER_BEGIN) + 1, 0)
            at, window = at + used, window[used:]
            self._handle.seek(at + len(window))
        return self._go_to(at + len(window))

    def _go_to(self, at: int) -> int:
        self._handle.seek(at)
        self._block, self._at = b"", at
        if at > self._furthest:
            self._advance(at - self._furthest)
            self._furthest = at
        return at

    def _is_member(self, at: int) -> bool:
        """Return whether what begins there can be inflated for a while."""
        self._handle.seek(at)
        head = self._handle.read(_TRIAL_BYTES)
        if len(head) > 3 and head[3] & _RESERVED_FLAGS:
            return False
        try:
            data = zlib.decompressobj(GZIP_MEMBER).decompress(head, INFLATE_BYTES)
        except zlib.error as error:
            return any(check in str(error) for check in _CHECKS)
        return bool(data)


def _in_pieces(data: bytes) -> list[bytes]:
    """Return `data` in pieces as small as if it had been inflated step by step."""
    if len(data) <= INFLATE_BYTES:
        return [data]
    return [data[at : at + INFLATE_BYTES] for at in range(0, len(data), INFLATE_BYTES)]


def _byte_by_byte(engine: Any, data: bytes) -> list[bytes]:
    """Return what `engine` makes of `data` until it finds it damaged."""
    pieces: list[bytes] = []
    for at in range(len(data)):
        try:
            pieces.append(engine.decompress(data[at : at + 1]))
        except zlib.error:
            break
    return pieces
