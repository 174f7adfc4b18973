"""The host of an address: lists of domains, withdrawals and the pages behind a score compare it."""

import re

_SCHEME = re.compile(r"[A-Za-z0-9+.-]+:")
_OTHER_DOTS = re.compile("[\u3002\uff0e\uff61]")


def host_of(url: str) -> str:
    """Return the host of an address, with or without a scheme; its letters keep their case.

    Not by `urlsplit`, which raises on some addresses of the crawl.

    Source: ``tldextract``, which also takes the full stops of other scripts for dots.
    """
    scheme, slashes, address = url.partition("//")
    if not slashes or (scheme and not _SCHEME.fullmatch(scheme)):
        address = url
    authority = re.split(r"[/?#]", address, maxsplit=1)[0].rpartition("@")[2]
    if authority.startswith("[") and "]" in authority:  # IPv6, which has colons of its own
        return authority[: authority.index("]") + 1]
    return _OTHER_DOTS.sub(".", authority.partition(":")[0].strip()).rstrip(".")


def domain_name(host: str) -> str:
    """Return a host in the form that names servers: small letters, and ASCII for other scripts."""
    host = host.lower().strip(".")
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:  # no name of a server: empty or long labels
        return host


def host_name(url: str) -> str:
    """Return the host of an address as `domain_name` has it.

    A browser goes to the part before a backslash, so it ends the host here.
    """
    return domain_name(host_of(url.replace("\\", "/")))


def domains_of(url: str) -> set[str]:
    """Return the host of an address and all domains above it, as `domain_name` has them."""
    labels = host_name(url).split(".")
    return {".".join(labels[first:]) for first in range(len(labels))}


def in_domain(url: str, domain: str) -> bool:
    """Return whether the host of an address is a domain or one of its subdomains."""
    return domain_name(domain) in domains_of(url)
