"""Requests over https that no answer leads elsewhere, and no body fills the disk."""

import urllib.request
from typing import IO, Any

from t5repro.errors import RawDataError

SCHEME = "https://"
MAX_REDIRECTIONS = 10
# The largest archive of a task has 2 GB, and the largest WET file 0.4 GB.
MAX_BYTES = 1 << 36


class _HttpsRedirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections to https only; what other schemes send, anybody on the way can write."""

    max_redirections = MAX_REDIRECTIONS

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.lower().startswith(SCHEME):
            fp.close()
            raise RawDataError(
                f"{req.full_url} redirects to {newurl[:200]!r}, and only https addresses are "
                "followed; ask its owner for an https address, or get the file by hand"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# The opener of `urlopen` with the other redirections; proxies of the environment are used as there.
_OPENER = urllib.request.build_opener(_HttpsRedirections)


def open_https(address: str, *, timeout: float, **options: Any) -> Any:
    """Open an https address; return the response.

    Args:
        address: begins with ``https://``.
        timeout: seconds without an answer.
        options: of the request, as of `urllib.request.Request`.

    Raises:
        RawDataError: a server redirects to an address that is not https, or states too many bytes.
        OSError: there is no connection, or the status is an error.
    """
    request = urllib.request.Request(address, **options)  # noqa: S310 (https)
    response = _OPENER.open(request, timeout=timeout)
    length = response.headers.get("Content-Length") or ""
    try:
        check_bytes(address, int(length) if length.isdecimal() else 0)
    except RawDataError:
        response.close()
        raise
    return response


def check_bytes(address: str, count: int) -> None:
    """Refuse more bytes than a raw file can have, before they fill the disk.

    Raises:
        RawDataError: there are more than `MAX_BYTES`.
    """
    if count > MAX_BYTES:
        raise RawDataError(
            f"{address} sends {count:,} bytes, and at most {MAX_BYTES:,} of a file are fetched; "
            "check the address, or get the file by hand"
        )
