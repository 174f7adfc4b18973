"""Artifacts as files: atomic writes, hashes, JSON lines, manifests.

Every artifact is written to a temporary file in its folder, flushed to the disk and renamed, so a
job killed at any moment leaves no incomplete file under a final name.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST
from t5repro.errors import ArtifactError, FormError, storage_error
from t5repro.file_forms import FIRST_BYTES, Form, in_place, other_form
from t5repro.strict_json import MAX_BYTES, parse_json, parse_line

HASH_BLOCK_BYTES = 1 << 20
TEMPORARY_PREFIX = ".writing-"
SPILL_SUFFIX = "-spill"  # of a temporary folder
# `json.dumps` creates an encoder at every call, i.e. row.
LINE_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
# The first key of a manifest: SHA-256 of its text with zeros in this place.
NO_CHECKSUM = "0" * 64
CONFLICT = re.compile(rb"^<{7}( |\r?$)", re.MULTILINE)  # how a conflict of git begins
CHECKSUM = re.compile(rb'\{\n  "checksum": "([0-9a-f]{64})",\n')


def refuse_other_form(path: Path) -> None:
    """Refuse what is there in place of a file, before it is opened by a library.

    Raises:
        OSError: it is missing, a folder, a pipe or a device.
        FormError: it has another form than its name says, such as gzip, a page of HTML, or a
            pointer of git LFS, which a clone without LFS has.
    """
    check_is_file(path)
    with path.open("rb") as handle:
        first_bytes = handle.read(FIRST_BYTES)
    if form := other_form(path, first_bytes):
        raise FormError(in_place(path, form))


def form_of(path: Path) -> Form | None:
    """Return the form of a file that its reader cannot read, if the table has it.

    Not to be asked before: weights begin with any bytes.
    """
    with path.open("rb") as handle:
        return other_form(None, handle.read(FIRST_BYTES))


def check_is_file(path: Path) -> os.stat_result:
    """Return the status of a file, before it is opened.

    Raises:
        OSError: it is missing, or a folder, a pipe, which would be waited for, or a device, which
            may have no end.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder and not a file", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device and not a file", str(path))
    return status


def has_conflict(data: bytes) -> bool:
    """Return whether a file has the marks that git writes where two branches disagree."""
    return CONFLICT.search(data) is not None


def by_name(paths: Iterable[Path]) -> list[Path]:
    """Return paths ordered by file name; paths with the same name by their folders."""
    return sorted(paths, key=lambda path: (path.name, path.as_posix()))


def real_path(path: Path) -> Path:
    """Return a path without links; unlike `Path.resolve` also where links lead to each other."""
    return Path(os.path.realpath(path))


def read_file(path: Path) -> bytes:
    """Return the bytes of a file that somebody else may have put there: a list, a lock, a key.

    Raises:
        OSError: it is not a file (`check_is_file`), cannot be read, or has more than `MAX_BYTES`.
    """
    status = check_is_file(path)
    if status.st_size > MAX_BYTES:
        message = f"it has {status.st_size:,} bytes; at most {MAX_BYTES:,} are read"
        raise OSError(errno.EFBIG, message, str(path))
    return path.read_bytes()


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it if the block succeeds.

    Raises:
        StorageError: the disk is full, or the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(4)}-{path.name}")
        temporary.touch(exist_ok=False)  # with the umask of the user, unlike `mkstemp`
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        yield temporary
        _flush(temporary)  # before the rename: it can reach the disk earlier than the content
        os.replace(temporary, path)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data`, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON with sorted keys, atomically."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return `value` as JSON with sorted keys, as every JSON artifact is written."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read_json(path: Path) -> Any:
    """Read a JSON artifact.

    Raises:
        ArtifactError: it is missing or is not JSON.
        FormError: it has another form, such as a pointer of git LFS.
    """
    try:
        data = read_file(path)
        return parse_json(data)
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage that writes it") from error
    except IsADirectoryError as error:
        raise ArtifactError(
            f"{path} is a folder; name a file, such as {path / MANIFEST}"
        ) from error
    except PermissionError:
        raise  # the command line names the file
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be read: {error.strerror}; delete it and rerun its stage"
        ) from error
    except ValueError as error:
        if form := other_form(path, data[:FIRST_BYTES]):
            raise FormError(in_place(path, form)) from error
        raise ArtifactError(
            f"{path} is not JSON ({error}); delete it and rerun its stage, or get it again"
        ) from error


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one JSON object a line, atomically; return the number of lines."""
    count = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as handle:
        for row in rows:
            handle.write(LINE_ENCODER.encode(row) + "\n")
            count += 1
    return count


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON lines artifact.

    Raises:
        ArtifactError: it is missing, or a line is not JSON; the message names the line.
    """
    try:
        handle = path.open(encoding="utf-8")
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage that writes it") from error
    except IsADirectoryError as error:
        raise ArtifactError(f"{path} is a folder; name a file in it") from error
    with handle:
        for number, line in enumerate(handle, start=1):
            try:
                row = parse_line(line)
            except ValueError as error:
                raise ArtifactError(
                    f"{path} line {number} is not JSON ({error}); delete it and rerun its stage"
                ) from error
            yield row


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def describe_file(path: Path) -> dict[str, Any]:
    """Return the entry of a file in a manifest: path, size in bytes and SHA-256.

    Raises:
        ArtifactError: the file is missing.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the stage that writes it")
    return {"path": path.as_posix(), "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def write_manifest(
    path: Path,
    *,
    rule: str,
    settings: Mapping[str, Any],
    inputs: Sequence[Path | Mapping[str, Any]],
    outputs: Sequence[Path | Mapping[str, Any]],
    counters: Mapping[str, Any],
) -> None:
    """Write the manifest of a stage: inputs, outputs, settings and counters.

    It contains no time, host or folder of the machine, so equal runs have equal manifests. Its
    checksum covers its own text (`read_manifest`).

    Args:
        path: file to write; later stages depend on it.
        rule: the Snakemake rule.
        settings: the resolved settings of the stage.
        inputs: files that it read; the entry of `describe_file` for a file on another machine.
        outputs: files that it wrote, without the manifest; as `inputs`.
        counters: numbers specific to the stage, such as pages dropped by rule.
    """
    values = {
        "checksum": NO_CHECKSUM,
        "rule": rule,
        "settings": settings,
        "inputs": [_entry(file) for file in inputs],
        "outputs": [_entry(file) for file in outputs],
        "counters": counters,
    }
    text = json_text(values)
    checksum = hashlib.sha256(text.encode("utf-8")).hexdigest()
    write_text(path, text.replace(NO_CHECKSUM, checksum, 1))


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest and verify its checksum.

    Raises:
        ArtifactError: it is missing, or differs in any byte from what its stage wrote.
    """
    cure = "restore it with dvc checkout, or delete it and rerun its stage"
    try:
        data = read_file(path)
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage that writes it") from error
    except PermissionError:
        raise  # the command line names the file
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}; {cure}") from error
    match = CHECKSUM.match(data)
    if match is None:
        raise ArtifactError(f"{path} does not begin with the checksum of a manifest; {cure}")
    recorded = match[1].decode()
    checksum = hashlib.sha256(data.replace(match[1], NO_CHECKSUM.encode(), 1)).hexdigest()
    if checksum != recorded:
        raise ArtifactError(
            f"{path} was altered after its stage wrote it: its checksum is {recorded}, its text "
            f"has {checksum}; {cure}"
        )
    try:
        values: dict[str, Any] = parse_json(data)
    except ValueError as error:
        raise ArtifactError(f"{path} is not JSON ({error}); {cure}") from error
    return values


def _entry(file: Path | Mapping[str, Any]) -> Mapping[str, Any]:
    return describe_file(file) if isinstance(file, Path) else file
