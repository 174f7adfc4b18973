"""Which addresses are read at all: news domains, or the addresses of another corpus.

Both look at the normalised URL, so all copies of a page are read or none, and it does not matter
that this happens before the newest of them is chosen.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t5repro.c4.dedup import spans as dedup_spans
from t5repro.errors import RawDataError

DOMAIN_NOT_LISTED = "domain_not_listed"
URL_NOT_LISTED = "url_not_listed"
SELECT_REASONS = (DOMAIN_NOT_LISTED, URL_NOT_LISTED)

Subdomains = frozenset[str] | None  # None: all of them
Fault = Callable[[str], str | None]


def address_fault(domains: Path | None, urls: Path | None) -> Fault | None:
    """Return a function that says why a normalised URL is not read; None: every one is.

    Args:
        domains: JSON file, domain -> list of allowed subdomains or anything else for all.
        urls: addresses, one a line.

    Raises:
        RawDataError: a list cannot be read, or is empty.
    """
    if domains is None and urls is None:
        return None
    listed = None if domains is None else read_domains(domains)
    keys = None if urls is None else read_urls(urls)

    def fault(url: str) -> str | None:
        if listed is not None and not is_listed_domain(url, listed):
            return DOMAIN_NOT_LISTED
        if keys is not None and not _holds(keys, dedup_spans.digest(url)):
            return URL_NOT_LISTED
        return None

    return fault


def read_domains(path: Path) -> dict[str, Subdomains]:
    """Return domain -> its allowed subdomains; a list in the file names them, else all are.

    Raises:
        RawDataError: the file cannot be read or is no such list.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); check c4.select.domains"
        ) from error
    except ValueError as error:
        raise RawDataError(f"{path}: is no JSON ({error}); fetch it again") from error
    if not isinstance(found, dict) or not found:
        raise RawDataError(
            f"{path}: holds no domains; c4.select.domains must name a JSON object such as "
            '{"example.com": ["", "news"], "example.org": true}'
        )
    return {
        str(name): frozenset(map(str, allowed)) if isinstance(allowed, list) else None
        for name, allowed in found.items()
    }


def is_listed_domain(url: str, domains: dict[str, Subdomains]) -> bool:
    """Return whether the host of a normalised URL is a listed domain or an allowed part of one.

    Source: released code, ``c4_utils.is_realnews_domain``. It asks tldextract where a domain
    begins; here the list says so: it is the longest end of the host that is listed.
    """
    host = url.partition("/")[0].partition("?")[0].partition("#")[0]
    host = host.rpartition("@")[2].partition(":")[0]
    labels = host.split(".")
    for first in range(len(labels)):
        domain = ".".join(labels[first:])
        if domain in domains:
            allowed = domains[domain]
            return allowed is None or ".".join(labels[:first]) in allowed
    return False


def read_urls(path: Path) -> NDArray[np.uint64]:
    """Return the sorted keys of the listed addresses, normalised, shape ``(addresses, 2)``.

    Raises:
        RawDataError: the list cannot be read, is not UTF-8 or names nothing.
    """
    keys = bytearray()
    try:
        with path.open(encoding="utf-8") as handle:
            for line in handle:
                if address := line.strip():
                    keys += dedup_spans.digest(dedup_spans.normalize_url(address))
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); check c4.select.urls"
        ) from error
    except UnicodeDecodeError as error:
        raise RawDataError(f"{path}: not UTF-8 at byte {error.start}; fetch it again") from error
    if not keys:
        raise RawDataError(f"{path}: names no address; empty c4.select.urls to read every one")
    halves = dedup_spans.key_halves(bytes(keys))
    return halves[np.lexsort((halves[:, 1], halves[:, 0]))]


def _holds(keys: NDArray[np.uint64], key: bytes) -> bool:
    high, low = dedup_spans.key_halves(key)[0]
    begin, end = (
        np.searchsorted(keys[:, 0], high, "left"),
        np.searchsorted(keys[:, 0], high, "right"),
    )
    return bool((keys[begin:end, 1] == low).any())
