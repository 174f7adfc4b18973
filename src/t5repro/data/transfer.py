"""Transfer of one file over https or from a cloud store: repeated, resumed, complete or absent.

A transfer writes to `partial_path`, another name in the folder of the file. If it breaks off, the
next attempt or the next run continues there, provided that the server still has the same content.
"""

import contextlib
import email.utils
import hashlib
import http.client
import os
import ssl
import time
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NoReturn

import tenacity

from t5repro.data.https import SCHEME, check_bytes, open_https
from t5repro.errors import RawDataError, storage_error
from t5repro.files import HASH_BLOCK_BYTES, write_text
from t5repro.progress import announce

TIMEOUT_SECONDS = 60
STORES = ("s3://", "gs://")
ADDRESSES = (SCHEME, *STORES)  # prefixes that `fetch_address` supports

ATTEMPTS = 8
BACK_OFF = tenacity.wait_random_exponential(multiplier=1, max=60)  # seconds
LONGEST_REQUESTED_WAIT = 600  # seconds that a server may ask for; beyond, the transfer is given up
# Request timeout, too early, too many requests, and the faults of a server that may pass.
PASSING_FAULTS = (408, 425, 429, 500, 502, 503, 504)
GONE = (404, 410)
BEYOND_THE_END = 416

pause = time.sleep  # between attempts


class AbsentError(RawDataError):
    """The server answers that the file does not exist."""


class TransferError(RawDataError):
    """A transfer broke off in every attempt. Another machine or a later run may complete it."""


@dataclass
class Transfer:
    """The cost of a transfer.

    Attributes:
        received: bytes that arrived in this process.
        resumed: bytes of earlier attempts and runs that were not transferred again.
        attempts: requests for content.
    """

    received: int = 0
    resumed: int = 0
    attempts: int = 0


class _BrokenOffError(Exception):
    """An attempt failed in a way that another one may not.

    Args:
        reason: for the user.
        wait: seconds to wait as the server asks; None if it does not.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def copy_path(address: str, folder: Path) -> Path:
    """Return where the copy of an address is below `folder`; two addresses never share a path."""
    digest = hashlib.sha256(address.encode()).hexdigest()[:16]
    return folder / digest / address.rstrip("/").rpartition("/")[2]


def fetch_once(origin: str, folder: Path) -> Path:
    """Return the file of an origin below `folder`; transfer it if it is not there."""
    path = copy_path(origin, folder)
    if not path.is_file():
        fetch_address(origin, path)
    return path


def fetch_address(address: str, path: Path) -> Transfer:
    """Transfer an https address or an object of a cloud store to `path`.

    Credentials, region and endpoint of a store come from the environment, as for its own tools
    (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …; Google's application default credentials).

    Raises:
        AbsentError: there is no such file.
        TransferError: the connection broke off in every attempt.
        RawDataError: the address is of another kind, or the server refuses it.
    """
    if address.startswith(STORES):
        return _repeat(address, path, _fetch_from_store)
    if not address.startswith(SCHEME):
        raise RawDataError(f"origin {address!r} cannot be fetched; only https addresses can")
    return _repeat(address, path, _fetch_from_server)


def size_of(address: str) -> int | None:
    """Return the bytes of a file that its server states, if it states them; the file is not read.

    Raises:
        AbsentError: there is no such file.
        RawDataError: the address is of another kind, or the server does not answer or refuses it.
    """
    if address.startswith(STORES):
        return _size_in_store(address)
    if not address.startswith(SCHEME):
        raise RawDataError(
            f"{address!r} has no size that can be asked for; only https addresses have"
        )
    try:
        with open_https(address, timeout=TIMEOUT_SECONDS, method="HEAD") as response:
            length: str | None = response.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        with error:
            if error.code in GONE:
                raise AbsentError(f"{address} does not exist (status {error.code})") from error
            raise RawDataError(
                f"{address} answers with status {error.code} {error.reason}"
            ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise RawDataError(f"{address} does not answer ({reason})") from error
    return int(length) if length and length.isdecimal() else None


def partial_path(path: Path) -> Path:
    """Return the file that holds the content so far."""
    return path.with_name(f".partial-{path.name}")


def _version_path(path: Path) -> Path:
    """Return the file that says which version of the content `partial_path` is a part of."""
    return path.with_name(f".partial-{path.name}.version")


def _repeat(address: str, path: Path, attempt: Any) -> Transfer:
    transfer = Transfer()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for trial in tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_BrokenOffError),
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=_seconds_to_wait,
            sleep=lambda seconds: pause(seconds),
            before_sleep=_announce_repetition(address),
            reraise=True,
        ):
            with trial:
                transfer.attempts += 1
                attempt(address, path, transfer)
        _complete(path)
    except _BrokenOffError as error:
        raise TransferError(
            f"{address} {error}, in {transfer.attempts} attempts; what arrived is kept: run again"
        ) from error
    except OSError as error:
        raise storage_error(path, error) from error
    return transfer


def _seconds_to_wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _BrokenOffError) and error.wait is not None:
        return error.wait
    return BACK_OFF(state)


def _announce_repetition(address: str) -> Any:
    def print_line(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        seconds = state.next_action.sleep if state.next_action else 0.0
        next_attempt = f"attempt {state.attempt_number + 1} of {ATTEMPTS}"
        announce(f"{address} {error}; {next_attempt} in {seconds:.0f} seconds")

    return print_line


def _complete(path: Path) -> None:
    """Give the content its name; it is on the disk before."""
    partial = partial_path(path)
    with partial.open("rb") as handle:
        # Otherwise a power cut could leave the final name with half of the content.
        os.fsync(handle.fileno())
    # Readers see the complete file or none.
    os.replace(partial, path)
    _version_path(path).unlink(missing_ok=True)


def _received_of(path: Path, version: str | None) -> int:
    """Return the number of bytes that can be continued; 0 if they are of another version."""
    with contextlib.suppress(OSError):
        if version and _version_path(path).read_text(encoding="utf-8") == version:
            return partial_path(path).stat().st_size
    return 0


def _known_version(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return _version_path(path).read_text(encoding="utf-8") or None
    return None


@contextlib.contextmanager
def _append(path: Path, version: str | None, begin: int) -> Iterator[IO[bytes]]:
    """Open the content so far behind its first `begin` bytes."""
    if begin == 0:
        partial_path(path).unlink(missing_ok=True)  # of another version
        write_text(_version_path(path), version or "")
    with partial_path(path).open("ab") as handle:
        try:
            yield handle
        except RawDataError:  # too many bytes, which must not stay on the disk
            partial_path(path).unlink(missing_ok=True)
            raise


def _fetch_from_server(address: str, path: Path, transfer: Transfer) -> None:
    """Request the rest of a file over https."""
    version = _known_version(path)
    begin = _received_of(path, version)
    # With `If-Range` a server whose file has changed sends the whole new file, not its rest.
    headers = {"Range": f"bytes={begin}-", "If-Range": version} if begin and version else {}
    try:
        response = open_https(address, timeout=TIMEOUT_SECONDS, headers=headers)
    except urllib.error.HTTPError as error:
        with error:
            _raise_answer(address, path, error)
    except (OSError, http.client.HTTPException) as error:
        _raise_connection(address, error)
    with response:
        # The server ignored the range: it sends the file from the start.
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            begin = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {begin}-"):
            raise _discarded(path, "continues at another byte than requested")
        transfer.resumed += begin
        with _append(path, _version_of(response.headers), begin) as handle:
            received = _copy(address, response, handle, transfer)
    promised = response.headers.get("Content-Length")
    # `read1` ends without an error if the connection closes early.
    if promised is not None and received != int(promised):
        raise _BrokenOffError(
            f"broke off after {begin + received} of {begin + int(promised)} bytes"
        )


def _copy(address: str, source: Any, handle: IO[bytes], transfer: Transfer) -> int:
    """Copy a body to its end; return the number of bytes."""
    received = 0
    while True:
        try:
            # `read` would lose what arrived before a connection that stalls times out.
            block = source.read1(HASH_BLOCK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenOffError(f"broke off after {handle.tell()} bytes ({error})") from error
        if not block:
            return received
        handle.write(block)
        received += len(block)
        transfer.received += len(block)
        check_bytes(address, handle.tell())  # a body without end states no length


def _version_of(headers: Any) -> str | None:
    """Return the strong validator of a response (RFC 9110, section 13.1.5), if it has one."""
    tag: str | None = headers.get("ETag")
    modified: str | None = headers.get("Last-Modified")
    # A weak tag may stay the same although bytes differ.
    return tag if tag and not tag.startswith("W/") else modified


def _raise_answer(address: str, path: Path, error: urllib.error.HTTPError) -> NoReturn:
    """Raise the error that belongs to the status of an answer."""
    if error.code in GONE:
        raise AbsentError(f"{address} does not exist (status {error.code})") from error
    if error.code == BEYOND_THE_END:
        raise _discarded(path, "has another length than before") from error
    if error.code not in PASSING_FAULTS:
        raise RawDataError(
            f"{address} is refused (status {error.code} {error.reason}); check the address"
        ) from error
    wait = _requested_wait(error.headers.get("Retry-After"))
    if wait is not None and wait > LONGEST_REQUESTED_WAIT:
        raise TransferError(
            f"{address} asks to come back in {wait:.0f} seconds (status {error.code}); run again "
            "then: what arrived is kept"
        ) from error
    raise _BrokenOffError(f"answers with status {error.code} {error.reason}", wait) from error


def _raise_connection(address: str, error: Exception) -> NoReturn:
    """Raise the error that belongs to a connection that was not made."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        # A wrong certificate stays wrong: repetitions would only delay the message.
        raise RawDataError(f"{address} does not answer ({reason}); check the address") from error
    raise _BrokenOffError(f"does not answer ({reason})") from error


def _requested_wait(value: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header: a number of seconds, or a date."""
    if not value:
        return None
    if value.isdecimal():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)


def _discarded(path: Path, reason: str) -> _BrokenOffError:
    """Delete the content so far, which cannot be continued; return the error of the attempt."""
    partial_path(path).unlink(missing_ok=True)
    _version_path(path).unlink(missing_ok=True)
    return _BrokenOffError(reason)


def _fetch_from_store(address: str, path: Path, transfer: Transfer) -> None:
    """Read the rest of an object of a cloud store. Its client repeats requests by itself."""
    from pyarrow import fs

    version, begin, size = None, 0, None
    try:
        store, name = fs.FileSystem.from_uri(_retry_limited(address))
        if address.startswith("s3://"):
            (info,) = store.get_file_info([name])
            if info.type == fs.FileType.NotFound:
                raise AbsentError(f"{address} cannot be fetched: it does not exist")
            version, size = f"{info.size} {info.mtime_ns}", info.size
            begin = _received_of(path, version)
            source = store.open_input_file(name)
            source.seek(begin)
        else:  # Google's client resumes a stream by itself
            source = store.open_input_stream(name, compression=None)
    except FileNotFoundError as error:
        raise AbsentError(f"{address} cannot be fetched: it does not exist ({error})") from error
    except (OSError, ValueError) as error:
        raise RawDataError(
            f"{address} cannot be fetched ({error}); check the address, the network and the "
            "credentials of the store"
        ) from error
    transfer.resumed += begin
    with source, _append(path, version, begin) as handle:
        received = _copy(address, source, handle, transfer)
    if size is not None and begin + received != size:
        raise _BrokenOffError(f"broke off after {begin + received} of {size} bytes")


def _size_in_store(address: str) -> int | None:
    from pyarrow import fs

    try:
        store, name = fs.FileSystem.from_uri(_retry_limited(address))
        (info,) = store.get_file_info([name])
    except (OSError, ValueError) as error:
        raise RawDataError(f"{address} does not answer ({error})") from error
    if info.type == fs.FileType.NotFound:
        raise AbsentError(f"{address} does not exist")
    size: int | None = info.size
    return size


def _retry_limited(address: str) -> str:
    """Return the address with a retry limit if it is Google's and has none.

    Google's client otherwise retries for 15 minutes, even without credentials.
    """
    _, question_mark, query = address.partition("?")
    if not address.startswith("gs://") or "retry_limit_seconds=" in query:
        return address
    separator = "&" if question_mark else "?"
    return f"{address}{separator}retry_limit_seconds={TIMEOUT_SECONDS}"
