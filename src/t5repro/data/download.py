"""Fetch files over https, whole or not at all, and take members out of archives.

Used only where `data.download` allows the network.
"""

import hashlib
import http.client
import shutil
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from t5repro.errors import RawDataError
from t5repro.files import HASH_BLOCK_BYTES, atomic_path

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar")
TIMEOUT_SECONDS = 60
STORES = ("s3://", "gs://")
ADDRESSES = ("https://", *STORES)  # what `fetch_address` knows


def download_once(origin: str, folder: Path) -> Path:
    """Return the file of an origin below `folder`, fetched if it is not there yet."""
    last = origin.rstrip("/").split("/")[-1]
    path = folder / f"{hashlib.sha256(origin.encode()).hexdigest()[:12]}-{last}"
    if not path.is_file():
        download(origin, path)
    return path


def fetch_address(address: str, path: Path) -> None:
    """Fetch an https address or an object of a cloud's store into `path`.

    Credentials, region and another endpoint are taken from where the store's own tools take them
    (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …; Google's application default credentials).

    Raises:
        RawDataError: it cannot be had, or the address is of another kind.
    """
    if not address.startswith(STORES):
        download(address, path)
        return
    from pyarrow import fs

    try:
        store, name = fs.FileSystem.from_uri(_with_patience(address))
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


def _with_patience(address: str) -> str:
    """Return the address of a store with a limit for retries, unless it has one.

    Google's client retries for a quarter of an hour, also where credentials are missing.
    """
    _, asks, query = address.partition("?")
    if not address.startswith("gs://") or "retry_limit_seconds=" in query:
        return address
    joint = "&" if asks else "?"
    return f"{address}{joint}retry_limit_seconds={TIMEOUT_SECONDS}"


def download(address: str, path: Path) -> None:
    """Fetch one https address into `path`.

    Raises:
        RawDataError: the address is not https, does not answer, or breaks off.
    """
    if not address.startswith("https://"):
        raise RawDataError(f"origin {address!r} cannot be fetched; only https addresses can")
    try:
        answer = urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS)  # noqa: S310 (https)
    except OSError as error:
        raise RawDataError(f"{address} does not answer ({error}); try again later") from error
    with answer, atomic_path(path) as temporary, temporary.open("wb") as handle:
        for block in blocks_of(answer, address):
            handle.write(block)


def blocks_of(answer: http.client.HTTPResponse, address: str) -> Iterator[bytes]:
    """Yield the body of an answer, all of it.

    Raises:
        RawDataError: the connection breaks off before the promised length.
    """
    received = 0
    promised = answer.headers.get("Content-Length")
    while True:
        try:
            block = answer.read(HASH_BLOCK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise RawDataError(
                f"{address} broke off after {received} bytes ({error}); run again"
            ) from error
        if not block:
            break
        received += len(block)
        yield block
    if promised is not None and received != int(promised):
        raise RawDataError(f"{address} broke off after {received} of {promised} bytes; run again")


def extract(archive: Path, name: str, path: Path) -> None:
    """Take from an archive the one member whose path ends as `name` does.

    Raises:
        RawDataError: no member or several end so, or the archive is damaged (it is deleted, so
            that the next run fetches it again).
    """
    tail = "/".join(PurePosixPath(name).parts[-2:])
    try:
        with atomic_path(path) as temporary, temporary.open("wb") as target:
            if archive.suffix == ".zip":
                _from_zip(archive, tail, target)
            else:
                _from_tar(archive, tail, target)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        archive.unlink()
        raise RawDataError(f"{archive} is damaged ({error}); it was deleted, run again") from error


def _from_zip(archive: Path, tail: str, target: IO[bytes]) -> None:
    with zipfile.ZipFile(archive) as opened:
        name = _only(opened.namelist(), tail, archive)
        with opened.open(name) as member:
            shutil.copyfileobj(member, target)


def _from_tar(archive: Path, tail: str, target: IO[bytes]) -> None:
    with tarfile.open(archive) as opened:
        files = {item.name: item for item in opened.getmembers() if item.isfile()}
        member = opened.extractfile(files[_only(list(files), tail, archive)])
        if member is not None:  # it is a file, so it is not
            shutil.copyfileobj(member, target)


def _only(members: list[str], tail: str, archive: Path) -> str:
    found = [member for member in members if f"/{member}".endswith(f"/{tail}")]
    if len(found) != 1:
        raise RawDataError(f"{archive} holds {len(found)} files that end in {tail!r}; expected one")
    return found[0]
