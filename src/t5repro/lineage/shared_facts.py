"""Facts that many records of a run share, each kept once: ``records/<run>/shared/<sha256>.json``.

A job writes a whole record. `seal` takes out large facts that jobs have in common: environment,
code and loaded modules. The SHA-256 of their file replaces them in the sealed record, so the
hash of the record covers the file. No other module knows these two forms of a record.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import json_text, read_file, read_json, write_bytes
from t5repro.lineage.store import RECORDS
from t5repro.strict_json import parse_json

SHARED = "shared"
# Name in the sealed record -> the half of the record, and the facts that it replaces there.
PARTS = {
    "environment": ("start", ("machine", "run_file")),
    "sources": ("start", ("code", "closure", "workflow")),
    "modules": ("end", ("imported", "foreign", "shared_libraries", "forged_byte_code")),
}
SHA256 = re.compile(r"[0-9a-f]{64}")
ReadShared = Callable[[str], bytes]  # by SHA-256


class SharedFactsError(ArtifactError):
    """A file of shared facts is missing or altered.

    Attributes:
        sha256: the hash that a record has of it.
    """

    def __init__(self, sha256: str, message: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


def shared_path(run: str, sha256: str) -> str:
    """Return the path of a file of shared facts."""
    return f"{RECORDS}/{run}/{SHARED}/{sha256}.json"


def is_shared(path: str) -> bool:
    """Return whether a file below `records` is one of shared facts."""
    words = path.split("/")
    return len(words) == 4 and words[0] == RECORDS and words[2] == SHARED


def take_out(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a record with hashes in place of shared facts, and SHA-256 -> bytes of their files."""
    record = dict(values)
    files = {}
    for label, (half, names) in PARTS.items():
        if not record.get(half) or label in record[half]:
            continue
        facts = {name: record[half][name] for name in names if name in record[half]}
        data = json_text(facts).encode()
        sha256 = hashlib.sha256(data).hexdigest()
        files[sha256] = data
        own = {name: value for name, value in record[half].items() if name not in names}
        record[half] = {**own, label: sha256}
    return record, files


def put_back(values: Mapping[str, Any], read: ReadShared) -> dict[str, Any]:
    """Return a whole record from one with hashes in place of shared facts.

    Raises:
        SharedFactsError: a file is missing or has another hash.
    """
    record = dict(values)
    for half, label, sha256 in _parts_of(values):
        own = {name: value for name, value in record[half].items() if name != label}
        record[half] = {**own, **parse_json(_read_checked(sha256, read))}
    return record


def _read_checked(sha256: str, read: ReadShared) -> bytes:
    cure = "restore it with git checkout, or rerun the jobs"
    try:
        data = read(sha256)
    except (OSError, ArtifactError) as error:
        message = f"missing, and records name it ({error}); {cure}"
        raise SharedFactsError(sha256, message) from error
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        message = f"sha256 {actual[:12]}, its records say {sha256[:12]}; {cure}"
        raise SharedFactsError(sha256, message)
    return data


def hashes_in(values: Any) -> set[str]:
    """Return the hashes of the files of shared facts that a record names."""
    return {sha256 for _, _, sha256 in _parts_of(values)}


def _parts_of(values: Any) -> Iterator[tuple[str, str, str]]:
    """Yield half, label and hash of the shared facts that a record names."""
    for label, (half, _) in PARTS.items():
        facts = values.get(half) if isinstance(values, Mapping) else None
        sha256 = facts.get(label) if isinstance(facts, Mapping) else None
        if isinstance(sha256, str) and SHA256.fullmatch(sha256):
            yield half, label, sha256


def share(path: Path) -> None:
    """Replace the shared facts of a record by hashes, and write their files."""
    folder = folder_of(path)
    record, files = take_out(read_json(path))
    for sha256, data in files.items():
        write_bytes(folder / f"{sha256}.json", data)
    if files:  # the files are there before a record names them
        write_bytes(path, json_text(record).encode())


def folder_of(path: Path) -> Path:
    """Return the folder of shared facts of the run of a record, by the path of the record."""
    run = next((folder for folder in path.parents if folder.parent.name == RECORDS), path.parent)
    return run / SHARED


def reader_of(path: Path) -> ReadShared:
    """Return the reader of the shared facts of a record on disk."""
    return lambda sha256: read_file(folder_of(path) / f"{sha256}.json")
