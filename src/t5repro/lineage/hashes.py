"""File hashes, cached for as long as a file cannot have changed.

A hash is cached with size, inode, time of modification (mtime) and time of status change (ctime) of
the file. A program can set mtime back but not ctime, which every write moves. A file that changed
less than two seconds ago is not cached, because two changes may share a tick of the clock. A disk
that was written without the file system, or a clock that was set back, is detected only by hashing
everything (``deep``).
"""

import contextlib
import hashlib
import json
import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from t5repro.files import HASH_BLOCK_BYTES, read_file, write_text
from t5repro.strict_json import parse_json

CACHE_FILE = Path("work/lineage/hashes.json")
SETTLED_NANOSECONDS = 2_000_000_000
CACHE_FIELDS = 6  # size, inode, mtime, ctime, SHA-256, MD5


class Hashes(NamedTuple):
    """Both hashes of a file, from one pass over its bytes."""

    sha256: str
    md5: str
    length: int


class Hasher:
    """Hashes files below a checkout.

    Args:
        root: the checkout.
        deep: hash every file at least once, ignoring the hashes cached by earlier processes.
    """

    def __init__(self, root: Path = Path(), *, deep: bool = False) -> None:
        self._root = root
        self._cache_file = root / CACHE_FILE
        self._cached: dict[str, list[int | str]] = {} if deep else _read_cache(self._cache_file)
        self._start = time.time_ns()
        self._has_new_hashes = False
        self.read_files = 0

    def of(self, name: str) -> Hashes | None:
        """Return the hashes of a file; None if the path is not a file."""
        path = self._root / name
        try:
            status = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        identity = identity_of(status)
        cached = self._cached.get(name)
        if cached is not None and cached[:4] == identity:
            return Hashes(str(cached[4]), str(cached[5]), status.st_size)
        hashes = hash_file(path)
        self.read_files += 1
        # Compared with the start of this process: a file may change again after it was hashed.
        if self._start - status.st_ctime_ns > SETTLED_NANOSECONDS:
            self._cached[name] = [*identity, hashes.sha256, hashes.md5]
            self._has_new_hashes = True
        return hashes

    def sha256(self, name: str) -> str | None:
        """Return the SHA-256 of a file; None if the path is not a file."""
        hashes = self.of(name)
        return hashes.sha256 if hashes else None

    def md5(self, name: str) -> str | None:
        """Return the MD5 of a file; None if the path is not a file."""
        hashes = self.of(name)
        return hashes.md5 if hashes else None

    def save(self) -> None:
        """Save the cache for later processes; does nothing in a read-only folder."""
        if self._has_new_hashes:  # an unchanged cache need not be written: verify may run often
            with contextlib.suppress(OSError):
                os.makedirs(self._cache_file.parent, exist_ok=True)
                if os.access(self._cache_file.parent, os.W_OK):
                    write_text(self._cache_file, json.dumps(self._cached, separators=(",", ":")))


def identity_of(status: os.stat_result) -> list[int]:
    """Return what differs once a file has changed: size, inode, mtime and ctime."""
    return [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


def _read_cache(path: Path) -> dict[str, list[int | str]]:
    """Return the saved hashes; a damaged file counts as empty."""
    try:
        values = parse_json(read_file(path))
    except (OSError, ValueError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {
        name: entry
        for name, entry in values.items()
        if isinstance(entry, list) and len(entry) == CACHE_FIELDS
    }


def hash_file(path: Path) -> Hashes:
    """Return both hashes of a file."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    length = 0
    with path.open("rb", buffering=0) as handle:
        while block := handle.read(HASH_BLOCK_BYTES):
            sha256.update(block)
            md5.update(block)
            length += len(block)
    return Hashes(sha256.hexdigest(), md5.hexdigest(), length)
