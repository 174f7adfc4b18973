"""WAT files as ia-web-commons writes them: a record of the request and one of the response a page.

The header of a record has the date on which the WAT file was made; the date of the crawl is in the
JSON only (seen in Common Crawl's CC-MAIN-2024-22).
"""

import gzip
import json

MADE = "2024-05-31T01:17:49Z"
DATE = "2019-04-18T10:00:00Z"


def envelope(url, response=None, *, date=DATE, kind="response"):
    """Return the JSON of a record about a response or a request."""
    payload = {} if response is None else {"HTTP-Response-Metadata": response}
    header = {"WARC-Type": kind, "WARC-Date": date, "WARC-Target-URI": url}
    return {
        "Container": {"Filename": "part.warc.gz", "Compressed": True, "Offset": "80610308"},
        "Envelope": {
            "Format": "WARC/1.0",
            "WARC-Header-Metadata": header,
            "Payload-Metadata": {"Actual-Content-Type": "application/http", **payload},
        },
    }


def response(headers=(), metas=(), links=(), head_links=()):
    """Return what a WAT file says of a response with a page of HTML."""
    head = {"Title": "A page", "Metas": list(metas), "Link": list(head_links)}
    return {
        "Response-Message": {"Status": "200", "Version": "HTTP/1.1", "Reason": "OK"},
        "Headers": {"Content-Type": "text/html", **dict(headers)},
        "HTML-Metadata": {"Head": head, "Links": list(links)},
    }


def wat_record(url, values, *, refers_to=""):
    """Return a record of a WAT file; `values` are JSON, or its bytes."""
    body = values if isinstance(values, bytes) else json.dumps(values).encode()
    reference = f"WARC-Refers-To: {refers_to}\r\n" if refers_to else ""
    header = (
        f"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: {url}\r\nWARC-Date: {MADE}\r\n"
        f"{reference}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return header.encode() + body + b"\r\n\r\n"


def write_wat(path, *records):
    """Write a WAT file, a gzip member a record; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    members = (gzip.compress(record, mtime=0) for record in (info, *records))
    path.write_bytes(b"".join(members))
    return path


def wat_of(wet, folder, response_of):
    """Write a WAT file for some WET files, with the references of their pages; return the paths.

    Args:
        wet: WET files, one gzip member a record.
        folder: gets the WAT files.
        response_of: returns what the response of a URL said; None leaves out its record.
    """
    return [_wat_of_file(path, folder, response_of) for path in wet]


def _wat_of_file(path, folder, response_of):
    records = []
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode(errors="replace")
    for record in text.split("WARC/1.0\r\n")[2:]:
        header = dict(line.split(": ", 1) for line in record.split("\r\n\r\n")[0].split("\r\n"))
        url, date, reference = (
            header.get(f"WARC-{name}", "") for name in ("Target-URI", "Date", "Refers-To")
        )
        requested = envelope(url, date=date, kind="request")
        records.append(wat_record(url, requested, refers_to=f"<request of {url}>"))
        if (said := response_of(url)) is not None:
            values = envelope(url, said, date=date)
            records.append(wat_record(url, values, refers_to=reference))
    return write_wat(folder / path.name.replace(".wet", ".wat"), *records)
