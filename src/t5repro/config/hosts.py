"""The host of an address: lists of domains, withdrawals and the pages behind a score compare it."""

import re

_SCHEME = re.compile(r"[A-Za-z0-9+.-]+:")
_END_OF_AUTHORITY = re.compile(r"[/?#]")
_UNRESERVED = re.compile("%([2-7][0-9A-Fa-f])")
_WEB = re.compile("https?://|//", re.IGNORECASE)
_PORT = re.compile(r":(\d+)$")
_DEFAULT_PORTS = ("80", "443")
_OTHER_DOTS = re.compile("[\u3002\uff0e\uff61]")


def host_of(url: str) -> str:
    """Return the host of an address, with or without a scheme; its letters keep their case.

    Not by `urlsplit`, which raises on some addresses of the crawl.

    Source: ``tldextract``, which also takes the full stops of other scripts for dots.
    """
    scheme, slashes, address = url.partition("//")
    if not slashes or (scheme and not _SCHEME.fullmatch(scheme)):
        address = url
    authority = _END_OF_AUTHORITY.split(address, maxsplit=1)[0].rpartition("@")[2]
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


def domain_of(url: str) -> str:
    """Return the host of a URL; of a row of own text, ``row://FILE#NUMBER``, the file."""
    if url.startswith("row://"):
        return url.partition("#")[0]
    return host_name(url) or url


def domains_of(url: str) -> set[str]:
    """Return the host of an address and all domains above it, as `domain_name` has them."""
    labels = host_name(url).split(".")
    return {".".join(labels[first:]) for first in range(len(labels))}


def in_domain(url: str, domain: str) -> bool:
    """Return whether the host of an address is a domain or one of its subdomains."""
    return domain_name(domain) in domains_of(url)


def address_form(url: str) -> str:
    """Return the form under which a list of removals compares addresses: host, path and query.

    ``https`` is ``http``; letters of the host are small and ASCII; default port, user, fragment,
    dot segments and needless escapes go. Query, final slash and ``www.`` stay. Text that
    is not a web address, such as the id of a row, stays as it is.

    Source: RFC 3986, section 6.2.2; not the released rule that decides which pages are duplicates.
    """
    scheme = _WEB.match(url)
    if "://" in url and scheme is None:
        return url
    address = url[scheme.end() if scheme else 0 :].replace("\\", "/").partition("#")[0]
    end = _END_OF_AUTHORITY.search(address)
    authority, rest = (address[: end.start()], address[end.start() :]) if end else (address, "")
    port = _PORT.search(authority.strip())
    suffix = f":{port[1]}" if port and port[1] not in _DEFAULT_PORTS else ""
    path, mark, query = rest.partition("?")
    path = _without_dots(_UNRESERVED.sub(_plain, path))
    return f"{domain_name(host_of(authority))}{suffix}{path}{mark}{_UNRESERVED.sub(_plain, query)}"


def _plain(escape: re.Match[str]) -> str:
    """Return an escaped letter, digit or mark that needs no escape; others with large digits."""
    letter = chr(int(escape[1], 16))
    return letter if letter.isalnum() or letter in "-._~" else escape[0].upper()


def _without_dots(path: str) -> str:
    segments: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del segments[-1:]
        elif part != ".":
            segments.append(part)
    # A folder named by a dot ends in a slash, as it does for a browser.
    if parts and parts[-1] in (".", ".."):
        segments.append("")
    return "/" + "/".join(segments)
