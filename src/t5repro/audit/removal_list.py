"""Reads a list of removal requests: CSV, JSON lines, bare lines, ``robots.txt`` and ``ai.txt``.

Every fault of a list is reported with its line before anything is withdrawn.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.audit.find import source_kind
from t5repro.config.credentials import check_no_credentials
from t5repro.config.hosts import address_form, domain_name, host_of
from t5repro.errors import LineageError, SettingsError
from t5repro.files import read_file, refuse_other_form

COLUMNS = ("kind", "value", "request", "reason", "date")
SHA256 = re.compile("[0-9a-f]{64}")
# Robots that collect text for training; `robots.txt` addresses each by its own group.
AGENTS = frozenset(
    ("ccbot", "gptbot", "google-extended", "anthropic-ai", "claudebot", "applebot-extended")
)
MEDIA_TYPES = ("*.html", "*.htm", "*.txt")  # `ai.txt` speaks of kinds of files; WET has these


@dataclass(frozen=True)
class Request:
    """One request of a list.

    Attributes:
        line: number of its line, from 1.
        kind: a key of `KINDS`.
        entry: its form in the list of withdrawn sources: a path, an address, a name or a hash.
        value: as the list writes it.
        reason: why; the same for all requests that state none.
        request: its number or ticket; the line's number if the list states none.
        date: as the list writes it; empty if not stated.
    """

    line: int
    kind: str
    entry: str
    value: str
    reason: str
    request: str
    date: str


def _domain(value: str) -> str:
    name = domain_name(host_of(value))
    # A colon is of an IPv6 address. One label such as "com" would name a whole registry.
    if "/" in value or ("." not in name.strip("[]") and ":" not in name):
        raise ValueError("expected a name such as example.org, without http:// and without a path")
    return name


def _address(value: str) -> str:
    # The entry is in the form that pages are compared in, so any spelling of it matches.
    form = address_form(value)
    if not host_of(form) or "://" in form:
        raise ValueError("expected a web address such as http://example.org/page")
    return form


def _row(value: str) -> str:
    if "://" not in value:
        raise ValueError("expected the id of a row, such as row://passages.jsonl#3")
    return value


def _hash(value: str) -> str:
    digits = value.removeprefix("sha256:").lower()
    if not SHA256.fullmatch(digits):
        raise ValueError("expected 64 hexadecimal digits")
    return digits


def _file(value: str) -> str:
    # A list comes from outside, and its paths must not reach a file outside the checkout.
    if Path(value).is_absolute() or ".." in Path(value).parts:
        raise ValueError("expected the path of a raw file in the checkout")
    return value


# kind of a request -> list of withdrawn sources that has its entry, and the entry of a value
KINDS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "url": ("addresses", _address),
    "domain": ("domains", _domain),
    "host": ("hosts", _domain),
    "prefix": ("prefixes", _address),
    "row": ("urls", _row),
    "sha256": ("hashes", _hash),
    "file": ("files", _file),
}


def read_removal_list(path: Path, *, reason: str, host: str = "") -> list[Request]:
    """Return the requests of a list; equal ones once, the first stays.

    Args:
        path: ``.csv`` with a head of `COLUMNS`, ``.jsonl`` with these keys, ``robots.txt``,
            ``ai.txt``, or bare lines: a URL, a domain, a file or ``sha256:`` and a hash each.
        reason: of requests that state none.
        host: the site of a ``robots.txt`` or ``ai.txt``.

    Raises:
        LineageError: the list cannot be read, or has no request, or lines that are none; the
            message has each.
        FormError: it has another form than its name says.
    """
    try:
        refuse_other_form(path)
        # Excel writes a byte order mark, which would be a part of the first column.
        text = read_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LineageError(f"--list {path}: cannot be read ({error}); save it as UTF-8") from error
    if path.name in ("robots.txt", "ai.txt") and not host:
        raise LineageError(f"--list {path}: it does not name its site; add --host example.org")
    requests: dict[tuple[str, str], Request] = {}
    faults = []
    for number, values in _rows(path, text, host):
        try:
            request = _request(number, values, reason)
            # Two people ask for the same page: it is withdrawn once, under the first number.
            requests.setdefault((request.kind, request.entry), request)
        except (ValueError, TypeError, SettingsError) as error:
            faults.append(f"{path} line {number}: {error}")
    if faults:
        raise LineageError("\n".join([*faults, "nothing was withdrawn; correct these lines"]))
    if not requests:
        raise LineageError(f"--list {path}: has no request; write one a line")
    return list(requests.values())


def _request(number: int, values: Any, reason: str) -> Request:
    # The reader yields a fault as a row, so that the lines behind it are checked as well.
    if isinstance(values, Exception):
        raise values
    unknown = set(values) - set(COLUMNS)
    if unknown:
        raise ValueError(f"unknown column {sorted(map(str, unknown))[0]!r}; expected {COLUMNS}")
    cells = {name: str(values.get(name) or "").strip() for name in COLUMNS}
    if not cells["value"]:
        raise ValueError("no value; name what is to be withdrawn")
    kind = cells["kind"] or _inferred_kind(cells["value"])
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}; expected one of {', '.join(KINDS)}")
    cells["reason"] = cells["reason"] or reason
    if not cells["reason"]:
        raise ValueError("no reason; add one to the line, or --reason for all lines")
    check_no_credentials({"reason": cells["reason"]})  # git keeps it
    try:
        entry = KINDS[kind][1](cells["value"])
    except ValueError as error:
        raise ValueError(f"{kind} {cells['value']!r}: {error}") from error
    return Request(
        line=number,
        kind=kind,
        entry=entry,
        value=cells["value"],
        reason=cells["reason"],
        request=cells["request"] or f"line {number}",
        date=cells["date"],
    )


def _inferred_kind(value: str) -> str:
    if value.startswith("sha256:"):
        return "sha256"
    if value.startswith("row://"):
        return "row"
    return source_kind(value)


def _rows(path: Path, text: str, host: str) -> Iterator[tuple[int, Any]]:
    """Yield line number -> values by column, or the fault of the line."""
    if path.suffix == ".csv":
        yield from _csv_rows(text)
    elif path.name == "robots.txt":
        for number, rule in _disallowed(text, AGENTS):
            yield number, _prefix_of(host, rule)
    elif path.name == "ai.txt":
        for number, rule in _disallowed(text, frozenset("*")):
            # Only a site as a whole: a pattern of images or films names no text.
            if rule == "/" or rule in MEDIA_TYPES:
                yield number, {"kind": "host", "value": host}
    else:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield number, _json_row(line) if path.suffix == ".jsonl" else {"value": line}


def _csv_rows(text: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    if "value" not in (reader.fieldnames or ()):
        yield 1, ValueError(f"no column 'value'; the head is {','.join(COLUMNS)}")
        return
    try:
        for row in reader:
            extra = row.pop(None, None)
            yield reader.line_num, ValueError(f"too many cells: {extra}") if extra else row
    except csv.Error as error:
        yield reader.line_num, ValueError(f"no CSV ({error})")


def _json_row(line: str) -> Any:
    try:
        values = json.loads(line)
    except ValueError as error:
        return ValueError(f"no JSON ({error})")
    return values if isinstance(values, dict) else ValueError("no JSON object")


def _disallowed(text: str, agents: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and rule of each ``Disallow`` in the groups of some robots."""
    group: set[str] = set()
    is_open = False  # whether the line before named a robot of the same group
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "user-agent":
            # Robots named in adjacent lines share the rules that follow (RFC 9309, section 2.1).
            group = {*(group if is_open else ()), value.lower()}
            is_open = True
            continue
        is_open = False
        if name == "disallow" and value and group & agents:
            yield number, value


def _prefix_of(host: str, rule: str) -> Any:
    path = rule.removesuffix("*")
    # Reading a pattern as a prefix would withdraw more, or less, than the site asked for.
    if "*" in path or path.endswith("$"):
        return ValueError(f"Disallow: {rule}: a pattern inside a path is not read; write a prefix")
    if path in ("", "/"):
        return {"kind": "host", "value": host}
    return {"kind": "prefix", "value": f"http://{host}{path}"}
