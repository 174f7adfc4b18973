"""Hashes of files, remembered as long as the file cannot have changed.

A hash is remembered with size, inode, time of change and time of status change. A program can set
the first time back; the second it cannot: writing one byte moves it, whatever is done to the
first. A file that changed less than two seconds ago is hashed again next time, because two changes
may share a tick of the clock. A disk written past the file system, or a clock set back, is found
by hashing everything: ``deep``.
"""

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from t5repro.files import HASH_BLOCK_BYTES, write_text

MEMORY = Path("work/lineage/hashes.json")
SETTLED_NANOSECONDS = 2_000_000_000


class Hashes(NamedTuple):
    """Both hashes of a file, from one reading."""

    sha256: str
    md5: str
    length: int


class Hasher:
    """Hashes files below a checkout.

    Args:
        root: the checkout.
        deep: hash everything, whatever is remembered.
    """

    def __init__(self, root: Path, *, deep: bool = False) -> None:
        self._root = root
        self._memory = root / MEMORY
        self._known: dict[str, list[int | str]] = {} if deep else _remembered(self._memory)
        self._now = time.time_ns()
        self._new = False
        self.read_files = 0

    def of(self, name: str) -> Hashes | None:
        """Return the hashes of a file; None if there is none."""
        path = self._root / name
        try:
            status = os.stat(path)
        except OSError:
            return None
        mark = [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]
        known = self._known.get(name)
        if known is not None and known[:4] == mark:
            return Hashes(str(known[4]), str(known[5]), status.st_size)
        found = hash_file(path)
        self.read_files += 1
        if self._now - status.st_ctime_ns > SETTLED_NANOSECONDS:
            self._known[name] = [*mark, found.sha256, found.md5]
            self._new = True
        return found

    def remember(self) -> None:
        """Keep what was learnt for the next question; a folder that is read-only is no fault."""
        if self._new:
            with contextlib.suppress(OSError):
                os.makedirs(self._memory.parent, exist_ok=True)
                if os.access(self._memory.parent, os.W_OK):
                    write_text(self._memory, json.dumps(self._known, separators=(",", ":")))


def _remembered(path: Path) -> dict[str, list[int | str]]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {name: mark for name, mark in known.items() if isinstance(mark, list) and len(mark) == 6}


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
