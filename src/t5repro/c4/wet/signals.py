"""Reservations of rights and licences that a page states, in its response or in its text (D-060).

A name that begins with `mentions` is a mention and no licence: a footer may license a picture, or
one comment.

Source: TDM Reservation Protocol (W3C community group, 2024); ``Content-Usage`` of the drafts
ietf-aipref-attach and ietf-aipref-vocab; Google's description of ``X-Robots-Tag``; WAT files as
ia-web-commons writes them (``HTTPResponseResource``, ``HTMLMetaData``).
"""

import re
from collections.abc import Iterator, Set
from typing import Any

from t5repro.c4.reasons import (
    MENTIONS_CREATIVE_COMMONS,
    MENTIONS_LICENCE_LINK,
    MENTIONS_RIGHTS_RESERVED,
    NOAI,
    NOINDEX,
    SIGNALS,
    TDM_RESERVED,
    USAGE_REFUSED,
)

OF_SOURCE = {
    "none": (),
    "text": (MENTIONS_CREATIVE_COMMONS, MENTIONS_RIGHTS_RESERVED),
    "wat": SIGNALS[:-1],
}
_IN_TEXT = (
    (
        MENTIONS_CREATIVE_COMMONS,
        re.compile(
            rb"creativecommons\.org/(?:licenses|publicdomain)/"
            rb"|\bCC[ -](?:BY|0)\b(?:-(?:NC|ND|SA)\b)*",
            re.IGNORECASE,
        ),
    ),
    (MENTIONS_RIGHTS_RESERVED, re.compile(rb"\ball rights reserved\b", re.IGNORECASE)),
)
_CREATIVE_COMMONS_LINK = re.compile(r"//(?:www\.)?creativecommons\.org/(?:licenses|publicdomain)/")
# Directives for every robot, and those for the robot that made the crawl.
_ROBOTS = ("robots", "ccbot")
# Directives of X-Robots-Tag with a value behind a colon; another name there names a robot.
_WITH_VALUE = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_OF_DIRECTIVE = {"noai": NOAI, "noindex": NOINDEX, "none": NOINDEX}  # none: noindex, nofollow
_RESPONSE = ("Envelope", "Payload-Metadata", "HTTP-Response-Metadata")


def ordered(signals: Set[str]) -> tuple[str, ...]:
    """Return signals in the order of `SIGNALS`."""
    return tuple(signal for signal in SIGNALS if signal in signals)


def mentioned(body: bytes) -> tuple[str, ...]:
    """Return the mentions in the text of a page, UTF-8."""
    return tuple(name for name, pattern in _IN_TEXT if pattern.search(body))


def signals_of_response(record: Any) -> frozenset[str] | None:
    """Return the signals of a response; None if the record describes none.

    Args:
        record: JSON of a record of a WAT file; no value of it has to be of the right type.
    """
    response = _mapping(record, *_RESPONSE)
    if not response:
        return None
    html = _mapping(response, "HTML-Metadata")
    return frozenset(
        (
            *_of_headers(_mapping(response, "Headers")),
            *_of_metas(_mapping(html, "Head")),
            *_of_links(html),
        )
    )


def response_header(record: Any) -> dict[str, Any]:
    """Return the header of the response that a record of a WAT file is about."""
    return _mapping(record, "Envelope", "WARC-Header-Metadata")


def _mapping(value: Any, *keys: str) -> dict[str, Any]:
    # A WAT file is as hostile as a page: anything of another type counts as absent.
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    """Return the values of a header, of which a repeated one has a list."""
    return [text for text in (value if isinstance(value, list) else [value]) if _is_text(text)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _rows(value: dict[str, Any], *names: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of the elements of some lists, those that are texts."""
    for name in names:
        elements = value.get(name)
        for element in elements if isinstance(elements, list) else ():
            if isinstance(element, dict):
                yield {key: text for key, text in element.items() if _is_text(text)}


def _of_headers(headers: dict[str, Any]) -> Iterator[str]:
    for name, value in headers.items():
        kind = name.strip().lower()
        for text in _texts(value):
            if kind == "tdm-reservation" and text.strip() == "1":
                yield TDM_RESERVED
            elif kind == "content-usage" and _refuses(text):
                yield USAGE_REFUSED
            elif kind == "x-robots-tag":
                yield from _of_robots_header(text)


def _refuses(usage: str) -> bool:
    """Return whether a list such as ``train-ai=n, search=y`` refuses a use other than search.

    The name of training differs between drafts: `train-ai`, `ai`, `genai`, `tdm`, `all`.
    """
    for member in usage.lower().split(","):
        name, _, value = member.partition("=")
        if name.strip() != "search" and value.partition(";")[0].strip().strip('"') in ("n", "no"):
            return True
    return False


def _of_robots_header(text: str) -> Iterator[str]:
    """Yield the signals of an X-Robots-Tag, such as ``noai`` or ``ccbot: noindex, nofollow``."""
    robot = _ROBOTS[0]
    for directive in text.lower().split(","):
        name, colon, rest = (part.strip() for part in directive.partition(":"))
        if colon and name not in _WITH_VALUE:
            robot, name = name, rest  # of this and of the directives behind it
        if robot in _ROBOTS and name in _OF_DIRECTIVE:
            yield _OF_DIRECTIVE[name]


def _of_metas(head: dict[str, Any]) -> Iterator[str]:
    for meta in _rows(head, "Metas"):
        name, content = meta.get("name", "").strip().lower(), meta.get("content", "").lower()
        if name == "tdm-reservation" and content.strip() == "1":
            yield TDM_RESERVED
        elif name in _ROBOTS:
            directives = map(str.strip, content.split(","))
            yield from (_OF_DIRECTIVE[word] for word in directives if word in _OF_DIRECTIVE)


def _of_links(html: dict[str, Any]) -> Iterator[str]:
    for links in (_rows(_mapping(html, "Head"), "Link"), _rows(html, "Links")):
        for link in links:
            # `rel` is a list of words, such as "license noopener".
            if "license" in link.get("rel", "").lower().split():
                yield MENTIONS_LICENCE_LINK
            if _CREATIVE_COMMONS_LINK.search(link.get("url", "")):
                yield MENTIONS_CREATIVE_COMMONS
