"""Read the bytes of a file of the crawl: gzip by member, gzip as one stream, or plain text."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from t5repro.c4.wet import faults
from t5repro.c4.wet.faults import Fault, OnFault
from t5repro.c4.wet.gzip_members import SEARCH_BYTES, Gap, Limits, is_gzip, read_members, read_plain
from t5repro.errors import CrawlError
from t5repro.files import check_is_file

NO_CONTENT_GAP = Gap(0, 0, "", "", True)  # replaces the content of a missing or empty file


def read_pieces(
    path: Path, limits: Limits, on_fault: OnFault, advance: Callable[[int], None] | None = None
) -> Iterator[bytes | Gap]:
    """Yield the decompressed bytes and the gaps of a file of the crawl.

    Args:
        path: the file; gzip is recognised by its content, not by its name.
        limits: maximum sizes of a member.
        on_fault: called with each gap, and with an absent or empty file.
        advance: called from time to time with the number of bytes read from disk.

    Raises:
        CrawlError: the file cannot be opened.
    """
    name, advance = path.as_posix(), advance or _ignore
    if why := _cannot_exist(path):
        on_fault(Fault(name, "", faults.MISSING_FILE, f"cannot be read ({why}); check the path"))
        yield NO_CONTENT_GAP
        return
    try:
        check_is_file(path)
        with path.open("rb") as handle:
            # Names do not tell: a file may be compressed in spite of its name, and the reverse.
            first = handle.read(SEARCH_BYTES)
            handle.seek(0)
            if not first:
                on_fault(Fault(name, "", faults.EMPTY_FILE, "the file is empty"))
                yield NO_CONTENT_GAP
                return
            compressed = is_gzip(first)
            for piece in (
                read_members(handle, limits, advance) if compressed else read_plain(handle, advance)
            ):
                if isinstance(piece, Gap):
                    byte_range = f"bytes {piece.begin} to {piece.end}"
                    on_fault(Fault(name, byte_range, piece.reason, piece.detail))
                yield piece
    except OSError as error:
        raise CrawlError(
            f"{path}: cannot be read ({error.strerror or error}); check the path in the run file"
        ) from error


def _ignore(_: int) -> None:
    """Report no progress."""


def _cannot_exist(path: Path) -> str:
    """Return why a file cannot exist, or ''; a list of paths may contain impossible names."""
    try:
        path.stat()
    except ValueError as error:  # a NUL byte in the name
        return str(error)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return str(error.strerror)
    return ""
