r"""Take the text of withdrawn pages out of a WET file, and leave every other byte of text.

A withdrawn record keeps its place and the lines that say which page it was; its text goes. So
records keep their numbers, and `c4_clean` still counts the page, as withdrawn.

Records are cut where `wet` cuts them: at lines that are ``WARC/1.0``; the last
``WARC-Target-URI:`` line of a record is its address.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from t5repro.c4.wet.gzip_members import GZIP_MAGIC
from t5repro.c4.wet.pages import URL_FIELD
from t5repro.c4.wet.warc_records import DELIMITER_TEXT, NEVER_TEXT
from t5repro.errors import CrawlError
from t5repro.files import atomic_path

COMPRESSION = 9


def redact(path: Path, is_withdrawn: Callable[[str], bool]) -> int:
    """Rewrite a WET file without the text of withdrawn pages; return how many there were.

    The file is gzip, a member for each record, if it was gzip. Without such a page it is left as
    it is, byte for byte.

    Args:
        path: the WET file.
        is_withdrawn: tells of a URL whether its page must go.

    Raises:
        CrawlError: it cannot be read.
    """
    try:
        with path.open("rb") as handle:
            packed = handle.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        count = sum(is_withdrawn(_url(record)) for record in _records(path, packed=packed))
        if count:
            with atomic_path(path) as temporary, temporary.open("wb") as out:
                for record in _records(path, packed=packed):
                    kept = _emptied(record) if is_withdrawn(_url(record)) else record
                    _write(out, "".join(kept).encode("utf-8", "surrogateescape"), packed=packed)
    except (OSError, EOFError) as error:
        raise CrawlError(f"{path}: cannot be read ({error}); fetch the file again") from error
    return count


def _records(path: Path, *, packed: bool) -> Iterator[list[str]]:
    """Yield the lines of each record, their ends as they are; bad bytes become surrogates."""
    opener: Callable[..., IO[str]] = gzip.open if packed else open
    with opener(path, "rt", encoding="utf-8", errors="surrogateescape", newline="") as text:
        lines: list[str] = []
        for line in text:
            if line.strip() == DELIMITER_TEXT and any(map(str.strip, lines)):
                yield lines
                lines = []
            lines.append(line)
        if lines:
            yield lines


def _url(record: list[str]) -> str:
    found = [line.strip() for line in record if line.strip().startswith(URL_FIELD)]
    return found[-1].removeprefix(URL_FIELD).strip() if found else ""


def _emptied(record: list[str]) -> list[str]:
    """Return the record's own lines up to its text, with a length of nothing."""
    kept = []
    for line in record:
        words = line.strip()
        if words and not words.startswith(NEVER_TEXT):
            break
        if words.lower().startswith("content-length:"):
            line = "Content-Length: 0\r\n"
        kept.append(line)
    end = "" if kept and not kept[-1].strip() else "\r\n"
    return [*kept, end, "\r\n"]


def _write(out: IO[bytes], data: bytes, *, packed: bool) -> None:
    out.write(gzip.compress(data, COMPRESSION, mtime=0) if packed else data)
