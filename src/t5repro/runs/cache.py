"""Rows of runs whose files have not changed: 1,000 runs are read in a second, not in many.

An entry is valid for the identities of all files that it was made from (`lineage/hashes.py`) and
for this version of the package, since an edit may change the values of a row.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from t5repro.files import read_file, write_text
from t5repro.lineage.hashes import SETTLED_NANOSECONDS, identity_of
from t5repro.lineage.sources import PACKAGE
from t5repro.strict_json import parse_json

CACHE_FILE = Path("work/lineage/runs.json")


class RunCache:
    """JSON values by key, valid for one identity each.

    Args:
        root: the checkout.
    """

    def __init__(self, root: Path) -> None:
        self._file = root / CACHE_FILE
        self._version = _version()
        self._entries = self._read()
        self._is_changed = False

    def get(self, key: str, identity: str | None) -> Any:
        """Return the values of a key; None without an entry of this identity."""
        entry = self._entries.get(key)
        return entry[1] if identity is not None and entry and entry[0] == identity else None

    def put(self, key: str, identity: str | None, values: Any) -> None:
        """Keep values; an identity of None says that their files may still change."""
        if identity is not None:
            self._entries[key] = [identity, values]
            self._is_changed = True

    def save(self) -> None:
        """Save the entries for later processes; does nothing in a read-only folder."""
        if self._is_changed:
            with contextlib.suppress(OSError):
                os.makedirs(self._file.parent, exist_ok=True)
                if os.access(self._file.parent, os.W_OK):
                    values = {"version": self._version, "entries": self._entries}
                    write_text(self._file, json.dumps(values, separators=(",", ":")))

    def _read(self) -> dict[str, list[Any]]:
        """Return the saved entries; none if they are damaged or of another version."""
        try:
            values = parse_json(read_file(self._file))
            if values["version"] != self._version:
                return {}
            entries = values["entries"].items()
            return {key: entry for key, entry in entries if isinstance(entry, list) and entry[1:]}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def identity_of_files(root: Path, names: Iterable[str], *, now: int) -> str | None:
    """Return what changes if one of some files does; None if one changed just now.

    Args:
        root: the checkout.
        names: their paths.
        now: time at which this process began, in nanoseconds.
    """
    digest = hashlib.sha256()
    folder = os.fspath(root)  # a Path for each of 30,000 files takes longer than their status
    for name in names:
        try:
            identity = identity_of(os.stat(f"{folder}/{name}"))
        except OSError:  # it may appear or vanish
            return None
        if now - max(identity[2:]) < SETTLED_NANOSECONDS:  # two changes may share a tick
            return None
        digest.update(f"{name}\0{identity}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _version() -> str:
    """Return a hash of the package's code."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
