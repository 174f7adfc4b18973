"""WET records as Common Crawl writes them: headers, a blank line, the text, two line ends."""

import base64
import hashlib
import uuid
from dataclasses import dataclass

CRLF = "\r\n"


@dataclass(frozen=True)
class Page:
    """One page of the crawl; `length_error` is added to the true Content-Length."""

    url: str
    date: str
    body: bytes
    length_error: int = 0


def _record(headers: list[tuple[str, str]], body: bytes) -> bytes:
    head = CRLF.join(["WARC/1.0", *(f"{name}: {value}" for name, value in headers)])
    return (head + CRLF + CRLF).encode() + body + (CRLF + CRLF).encode()


def _identity(*parts: str) -> str:
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return f"<urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}>"


def warcinfo(file_name: str, date: str) -> bytes:
    """Return the record that opens a file."""
    body = CRLF.join(
        (
            "isPartOf: MINI-2019-18",
            "publisher: t5repro",
            "description: synthetic pages written for t5repro, no crawl",
            "operator: examples/mini/generate.py",
            "Software-Info: t5repro-mini",
            "",
        )
    ).encode()
    headers = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Date", date),
        ("WARC-Filename", file_name),
        ("WARC-Record-ID", _identity("warcinfo", file_name)),
        ("Content-Type", "application/warc-fields"),
        ("Content-Length", str(len(body))),
    ]
    return _record(headers, body)


def conversion(page: Page) -> bytes:
    """Return the record of one page."""
    digest = base64.b32encode(hashlib.sha1(page.body).digest()).decode()  # noqa: S324, WET uses it
    headers = [
        ("WARC-Type", "conversion"),
        ("WARC-Target-URI", page.url),
        ("WARC-Date", page.date),
        ("WARC-Record-ID", _identity("conversion", page.url, page.date)),
        ("WARC-Refers-To", _identity("response", page.url, page.date)),
        ("WARC-Block-Digest", f"sha1:{digest}"),
        ("Content-Type", "text/plain"),
        ("Content-Length", str(len(page.body) + page.length_error)),
    ]
    return _record(headers, page.body)
