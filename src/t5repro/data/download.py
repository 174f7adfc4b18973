"""Download files over https or from a cloud store.

A file is written atomically: it is complete or absent.
"""

import hashlib
import http.client
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from t5repro.errors import RawDataError
from t5repro.files import HASH_BLOCK_BYTES, atomic_path

TIMEOUT_SECONDS = 60
STORES = ("s3://", "gs://")
ADDRESSES = ("https://", *STORES)  # prefixes that `fetch_address` supports


def download_once(origin: str, folder: Path) -> Path:
    """Return the cached file of an origin below `folder`; download it if there is none."""
    last = origin.rstrip("/").split("/")[-1]
    path = folder / f"{hashlib.sha256(origin.encode()).hexdigest()[:12]}-{last}"
    if not path.is_file():
        download(origin, path)
    return path


def fetch_address(address: str, path: Path) -> None:
    """Download an https address or an object of a cloud store to `path`.

    Credentials, region and endpoint come from the environment, as for the store's own tools
    (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …; Google's application default credentials).

    Raises:
        RawDataError: the download fails, or the address is of another kind.
    """
    if not address.startswith(STORES):
        download(address, path)
        return
    from pyarrow import fs

    try:
        store, name = fs.FileSystem.from_uri(_with_retry_limit(address))
        with (
            store.open_input_stream(name, compression=None) as source,
            atomic_path(path) as temporary,
            temporary.open("wb") as handle,
        ):
            shutil.copyfileobj(source, handle, HASH_BLOCK_BYTES)
    except (OSError, ValueError) as error:
        raise RawDataError(
            f"{address} cannot be fetched ({error}); check the address, the network and the "
            "credentials of the store"
        ) from error


def _with_retry_limit(address: str) -> str:
    """Return the address with a retry limit if it is Google's and has none.

    Google's client otherwise retries for 15 minutes, even without credentials.
    """
    _, question_mark, query = address.partition("?")
    if not address.startswith("gs://") or "retry_limit_seconds=" in query:
        return address
    separator = "&" if question_mark else "?"
    return f"{address}{separator}retry_limit_seconds={TIMEOUT_SECONDS}"


def download(address: str, path: Path) -> None:
    """Download one https address to `path`.

    Raises:
        RawDataError: the address is not https, does not answer, or the connection breaks.
    """
    if not address.startswith("https://"):
        raise RawDataError(f"origin {address!r} cannot be fetched; only https addresses can")
    try:
        response = urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS)  # noqa: S310 (https)
    except OSError as error:
        raise RawDataError(f"{address} does not answer ({error}); try again later") from error
    with response, atomic_path(path) as temporary, temporary.open("wb") as handle:
        for block in blocks_of(response, address):
            handle.write(block)


def blocks_of(response: http.client.HTTPResponse, address: str) -> Iterator[bytes]:
    """Yield the body of a response and check its length.

    Raises:
        RawDataError: the connection breaks before ``Content-Length`` bytes arrived.
    """
    received = 0
    content_length = response.headers.get("Content-Length")
    while True:
        try:
            block = response.read(HASH_BLOCK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise RawDataError(
                f"{address} broke off after {received} bytes ({error}); run again"
            ) from error
        if not block:
            break
        received += len(block)
        yield block
    if content_length is not None and received != int(content_length):
        raise RawDataError(
            f"{address} broke off after {received} of {content_length} bytes; run again"
        )
