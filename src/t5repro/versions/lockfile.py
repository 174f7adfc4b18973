"""`dvc.lock` as data, and the hashes DVC gives files and folders.

Files are read in full here: DVC itself trusts size and date, which a tamperer can keep.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from t5repro.errors import ArtifactError
from t5repro.files import HASH_BLOCK_BYTES

LOCK = Path("dvc.lock")
CACHE = Path(".dvc/cache/files/md5")
FOLDER = ".dir"
SAFE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the former is ten times as fast


@dataclass(frozen=True)
class Hashes:
    """A file's content, named for DVC and for records."""

    md5: str
    sha256: str


@dataclass(frozen=True)
class Locked:
    """What `dvc.lock` says of a stage."""

    cmd: Any = None
    deps: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    outs: dict[str, str] = field(default_factory=dict)


def read_lock(path: Path = LOCK) -> dict[str, Locked]:
    """Return stage -> its entry; nothing where there is no lock yet.

    Raises:
        ArtifactError: the file is not a lock.
    """
    try:
        return parse_lock(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return {}


def parse_lock(text: str, name: str = str(LOCK)) -> dict[str, Locked]:
    """Return stage -> its entry from the text of a lock.

    Raises:
        ArtifactError: the text is not a lock.
    """
    try:
        stages = (yaml.load(text, Loader=SAFE_LOADER) or {}).get("stages", {})  # noqa: S506
        return {name: _locked(entry) for name, entry in stages.items()}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{name} is no lock of DVC ({error}); restore it with git checkout {name}"
        ) from error


def _locked(entry: Mapping[str, Any]) -> Locked:
    params: dict[str, Any] = {}
    for values in (entry.get("params") or {}).values():
        params.update(values)
    return Locked(
        cmd=entry["cmd"],
        deps={item["path"]: item["md5"] for item in entry.get("deps", [])},
        params=params,
        outs={item["path"]: item["md5"] for item in entry.get("outs", [])},
    )


def hashes_of(path: Path) -> Hashes:
    """Hash a file, reading it once."""
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(HASH_BLOCK_BYTES):
            md5.update(block)
            sha256.update(block)
    return Hashes(md5.hexdigest(), sha256.hexdigest())


class Hasher:
    """Hashes of files below a root, each read once."""

    def __init__(self) -> None:
        self._hash = cache(hashes_of)

    def of(self, path: str) -> Hashes | None:
        """Return the hashes of a file; None if it is missing."""
        place = Path(path)
        return self._hash(place) if place.is_file() else None

    def folder(self, folder: str, files: Mapping[str, Hashes]) -> str:
        """Return DVC's hash of a folder that holds just `files` (by whole path)."""
        listed = sorted(
            (
                {"md5": found.md5, "relpath": path[len(folder) + 1 :]}
                for path, found in files.items()
            ),
            key=lambda item: item["relpath"].split("/"),
        )
        text = json.dumps(listed, sort_keys=True)
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() + FOLDER


def locked_files(folder: str, md5: str) -> dict[str, str] | None:
    """Return path -> md5 of a locked folder; None if DVC's cache has no list of it.

    Raises:
        ArtifactError: the list in the cache is damaged.
    """
    if not md5.endswith(FOLDER):
        return {folder: md5}
    place = CACHE / md5[:2] / md5[2:]
    if not place.is_file():
        return None
    data = place.read_bytes()
    if hashlib.md5(data, usedforsecurity=False).hexdigest() + FOLDER != md5:
        raise ArtifactError(f"{place} in DVC's cache is damaged; delete it and run dvc fetch")
    return {f"{folder}/{item['relpath']}": item["md5"] for item in json.loads(data)}
