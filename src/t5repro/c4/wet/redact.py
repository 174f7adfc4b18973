r"""Delete the text of withdrawn pages from a WET file without changing any other text.

A withdrawn record keeps its position and its header fields, so the other records keep their
numbers and `c4_clean` still counts the page as withdrawn.

Records are divided as `pages` divides them: at lines that are ``WARC/1.0``, in a file of WARC/1.1
also at lines of that version. A record may have several ``WARC-Target-URI:`` lines, if records
merged: it is withdrawn if one of them is.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from t5repro.c4.wet.gzip_members import GZIP_MAGIC
from t5repro.c4.wet.pages import urls_of
from t5repro.c4.wet.warc_records import FIRST_LINES, NEVER_TEXT, delimiters_of
from t5repro.errors import CrawlError
from t5repro.files import atomic_path

COMPRESSION = 9


def redact(path: Path, is_withdrawn: Callable[[str], bool]) -> int:
    """Rewrite a WET file without the text of withdrawn pages; return the number of these pages.

    A gzip file is written as gzip with one member per record. A file without withdrawn pages is not
    touched.

    Args:
        path: the WET file.
        is_withdrawn: returns whether the page of a URL is withdrawn.

    Raises:
        CrawlError: it cannot be read.
    """
    # First pass only counts: most files of a crawl have no withdrawn page and stay untouched.
    count = sum(any(map(is_withdrawn, urls)) for urls in urls_of_records(path))
    try:
        if count:
            compressed = _is_compressed(path)
            with atomic_path(path) as temporary, temporary.open("wb") as out:
                for record in _records(path, compressed=compressed):
                    withdrawn = any(map(is_withdrawn, _urls(record)))
                    lines = _without_text(record) if withdrawn else record
                    _write(
                        out,
                        "".join(lines).encode("utf-8", "surrogateescape"),
                        compressed=compressed,
                    )
    except (OSError, EOFError) as error:
        raise CrawlError(f"{path}: cannot be read ({error}); fetch the file again") from error
    return count


def is_wet(path: Path) -> bool:
    """Return whether a raw file is one of the crawl, by its name."""
    return ".wet" in path.suffixes


def urls_of_records(path: Path) -> Iterator[list[str]]:
    """Yield the addresses of each record of a WET file.

    Raises:
        CrawlError: it cannot be read.
    """
    yield from map(_urls, _readable_records(path))


def texts_of_records(path: Path) -> Iterator[tuple[list[str], str]]:
    """Yield the addresses and the text of each record of a WET file, as cleaning reads them.

    Raises:
        CrawlError: it cannot be read.
    """
    for record in _readable_records(path):
        yield (
            _urls(record),
            "".join(line for line in record if not line.strip().startswith(NEVER_TEXT)),
        )


def _readable_records(path: Path) -> Iterator[list[str]]:
    try:
        yield from _records(path, compressed=_is_compressed(path))
    except (OSError, EOFError) as error:
        raise CrawlError(f"{path}: cannot be read ({error}); fetch the file again") from error


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as handle:
        return handle.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def _records(path: Path, *, compressed: bool) -> Iterator[list[str]]:
    """Yield the lines of each record with their line ends; invalid bytes become surrogates."""
    opener: Callable[..., IO[str]] = gzip.open if compressed else open
    with opener(path, "rt", encoding="utf-8", errors="surrogateescape", newline="") as text:
        lines: list[str] = []
        delimiters: tuple[str, ...] = ()
        for line in text:
            text_line = line.strip()
            if not delimiters and text_line in FIRST_LINES:
                delimiters = delimiters_of(text_line)
            # Blank lines before the first record are not a record.
            if text_line in delimiters and any(map(str.strip, lines)):
                yield lines
                lines = []
            lines.append(line)
        if lines:
            yield lines


def _urls(record: list[str]) -> list[str]:
    return urls_of(map(str.strip, record))


def _without_text(record: list[str]) -> list[str]:
    """Return the lines of a record before its text, with a content length of 0."""
    kept_lines = []
    for line in record:
        field = line.strip()
        # The first other line begins the text; header fields inside the text go with it.
        if field and not field.startswith(NEVER_TEXT):
            break
        if field.lower().startswith("content-length:"):
            line = "Content-Length: 0\r\n"
        kept_lines.append(line)
    blank = "\r\n"
    while kept_lines and not kept_lines[-1].strip():
        blank = kept_lines.pop()
    return [*kept_lines, blank, "\r\n"]  # one blank line, so that a second pass changes nothing


def _write(out: IO[bytes], data: bytes, *, compressed: bool) -> None:
    # A time of 0 makes equal pages equal bytes.
    out.write(gzip.compress(data, COMPRESSION, mtime=0) if compressed else data)
