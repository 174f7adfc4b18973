"""Select pages by URL (`c4.select`): listed domains, or the listed URLs of another corpus.

Both compare the normalised URL, so all copies of a page are read or none. The result is therefore
the same as if the newest copy had been selected first.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t5repro.c4.keys import key_halves, md5, normalize_url
from t5repro.c4.listed_lines import listed_lines
from t5repro.c4.reasons import DOMAIN_NOT_LISTED, URL_NOT_LISTED
from t5repro.config.hosts import host_of
from t5repro.errors import RawDataError
from t5repro.files import read_file
from t5repro.strict_json import parse_json

Subdomains = frozenset[str] | None  # None allows all
UrlReason = Callable[[str], str | None]


def url_filter(domains: Path | None, urls: Path | None) -> UrlReason | None:
    """Return a function that returns the reason to skip a normalised URL; None to read it.

    Args:
        domains: JSON file, domain -> list of allowed subdomains, or any other value for all.
        urls: text file with one URL per line.

    Returns:
        The function, or None without lists, if every URL is read.

    Raises:
        RawDataError: a list cannot be read, or is empty.
    """
    if domains is None and urls is None:
        return None
    listed_domains = None if domains is None else read_domains(domains)
    keys = None if urls is None else read_urls(urls)

    def reason(url: str) -> str | None:
        if listed_domains is not None and not is_listed_domain(url, listed_domains):
            return DOMAIN_NOT_LISTED
        if keys is not None and not _contains(keys, md5(url)):
            return URL_NOT_LISTED
        return None

    return reason


def read_domains(path: Path) -> dict[str, Subdomains]:
    """Return domain -> allowed subdomains; any value that is not a list allows all.

    Raises:
        RawDataError: the file cannot be read or is not such a list.
    """
    try:
        domains = parse_json(read_file(path))
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); check c4.select.domains"
        ) from error
    except ValueError as error:
        raise RawDataError(
            f"{path}: is not JSON ({error}); correct it, or fetch it again"
        ) from error
    if not isinstance(domains, dict) or not domains:
        raise RawDataError(
            f"{path}: contains no domains; c4.select.domains must name a JSON object such as "
            '{"example.com": ["", "news"], "example.org": true}'
        )
    return {
        str(name): frozenset(map(str, subdomains)) if isinstance(subdomains, list) else None
        for name, subdomains in domains.items()
    }


def is_listed_domain(url: str, domains: dict[str, Subdomains]) -> bool:
    """Return whether the host of a normalised URL is a listed domain or an allowed subdomain.

    Source: released code, ``c4_utils.is_realnews_domain``, which splits subdomain and domain with
    tldextract. Here the domain is the longest suffix of the host that is listed.
    """
    labels = host_of(url).split(".")
    # From the longest suffix on, so that the most specific entry decides.
    for first in range(len(labels)):
        domain = ".".join(labels[first:])
        if domain in domains:
            subdomains = domains[domain]
            return subdomains is None or ".".join(labels[:first]) in subdomains
    return False


def read_urls(path: Path) -> NDArray[np.uint64]:
    """Return the sorted keys of the listed URLs, normalised, shape ``(urls, 2)``.

    Raises:
        RawDataError: the list cannot be read, is not UTF-8 or is empty.
    """
    keys = bytearray()
    try:
        for url in listed_lines(path):
            keys += md5(normalize_url(url))
    except OSError as error:
        raise RawDataError(
            f"{path}: cannot be read ({error.strerror}); check c4.select.urls"
        ) from error
    if not keys:
        raise RawDataError(f"{path}: lists no URL; set c4.select.urls to '' to read every page")
    halves = key_halves(bytes(keys))
    return halves[np.lexsort((halves[:, 1], halves[:, 0]))]


def _contains(keys: NDArray[np.uint64], key: bytes) -> bool:
    high, low = key_halves(key)[0]
    begin, end = (
        np.searchsorted(keys[:, 0], high, "left"),
        np.searchsorted(keys[:, 0], high, "right"),
    )
    # Equal upper halves are rare: the few rows between the bounds are compared one by one.
    return bool((keys[begin:end, 1] == low).any())
