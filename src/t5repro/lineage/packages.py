"""The installed packages by the bytes of their files, not only by name and version.

An installer writes ``RECORD`` into the metadata of each package: its files with their hashes. The
digest of a package is a hash of this list, so it is the same in every environment into which the
same archives were installed. A file that differs from the list counts with the hash that it has
now, and is named. Byte code (``.pyc``), start scripts and notes of the installer depend on the
folder of the environment and are not in the digest.

Reading gigabytes for every job would be too slow: the files of a package are read again only if the
size, inode, mtime or ctime of one of them has changed (see `lineage.hashes`). The results are kept
in the virtual environment, which several checkouts may share. Headers of C++ and type stubs, which
no job runs, are read by a deep check only.

Source: Binary distribution format, https://packaging.python.org/specifications/ ("RECORD").
"""

import base64
import contextlib
import csv
import hashlib
import json
import os
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from t5repro.files import read_file, sha256_of, write_text
from t5repro.lineage.hashes import SETTLED_NANOSECONDS
from t5repro.strict_json import parse_json

CACHE_NAME = "t5repro-packages.json"
OWN_PACKAGE = "t5repro"  # installed from the checkout, whose files a record lists one by one
PLACE_DEPENDENT = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json")
NOT_RUN = (".h", ".hpp", ".cuh", ".inc", ".inl", ".proto", ".pyi")
STANDARD_LIBRARY_EXCEPT = {"__pycache__", "site-packages", "dist-packages", "test", "tests"}


@dataclass(frozen=True)
class Package:
    """One installed package.

    Attributes:
        name: as the package calls itself.
        version: its version.
        digest: SHA-256 of its list of files and hashes.
        altered: files that differ from the list or are missing, relative to the environment.
    """

    name: str
    version: str
    digest: str
    altered: tuple[str, ...] = ()


@dataclass(frozen=True)
class Installed:
    """All packages that this interpreter can import.

    Attributes:
        packages: sorted by name.
        files: absolute path of every file of a package; below a link, also the path without it.
        folders: the folders that they are installed in.
    """

    packages: tuple[Package, ...]
    files: frozenset[str] = field(repr=False)
    folders: tuple[str, ...]

    @property
    def digests(self) -> dict[str, str]:
        """Name -> digest."""
        return {package.name: package.digest for package in self.packages}

    def has(self, path: str) -> bool:
        """Return whether a file belongs to a package, by its path or its folder without links.

        A link to a file of a package is a file of its own.
        """
        folder, name = os.path.split(path)
        return path in self.files or os.path.join(os.path.realpath(folder), name) in self.files

    @property
    def altered(self) -> list[str]:
        """The files that differ from the lists of their packages."""
        return sorted(name for package in self.packages for name in package.altered)


class _Cache:
    """Results of earlier processes, by the state of the files that they were computed from."""

    def __init__(self, path: Path, *, deep: bool) -> None:
        self._path = path
        self._start = time.time_ns()
        self._entries: dict[str, list[str]] = {}
        self._is_new = False
        # A deep check trusts no earlier reading, not even its own cache.
        if not deep:
            with contextlib.suppress(OSError, ValueError, TypeError):
                self._entries = dict(parse_json(read_file(path)))

    def get(self, name: str, state: str) -> list[str] | None:
        """Return the result for files in this state; None if it is unknown."""
        entry = self._entries.get(name)
        return entry[1:] if entry and entry[0] == state else None

    def put(self, name: str, state: str, newest: int, result: list[str]) -> None:
        """Keep a result, unless a file is so new that it may change again in the same tick."""
        # Within one tick of the clock a second change leaves the same times.
        if self._start - newest > SETTLED_NANOSECONDS:
            self._entries[name] = [state, *result]
            self._is_new = True

    def save(self) -> None:
        """Write new results; does nothing in a read-only folder."""
        if self._is_new:
            with contextlib.suppress(OSError):
                os.makedirs(self._path.parent, exist_ok=True)
                if os.access(self._path.parent, os.W_OK):
                    write_text(self._path, json.dumps(self._entries, separators=(",", ":")))


def _cache_file() -> Path:
    """Return the file with results of earlier processes; in the checkout without an environment."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix, CACHE_NAME)
    return Path("work/lineage", CACHE_NAME)


def installed(*, deep: bool = False) -> Installed:
    """Return the packages of every folder that this interpreter imports from.

    Args:
        deep: read every file, without results of earlier processes.
    """
    cache = _Cache(_cache_file(), deep=deep)
    folders = [os.path.abspath(folder or ".") for folder in sys.path]
    packages: dict[str, Package] = {}
    files: set[str] = set()
    sites: list[str] = []
    # In the order of `sys.path`, because the first copy of a package is the imported one.
    for folder in dict.fromkeys(folders):
        for metadata in sorted(Path(folder).glob("*.dist-info")):
            name, _, version = metadata.name.removesuffix(".dist-info").partition("-")
            rows = list(_rows(metadata / "RECORD"))
            # Python names what it runs by the link `.venv`, and loaded libraries without it.
            for root in {folder, os.path.realpath(folder)}:
                files.update(_absolute(root, path) for path, _ in rows)
            sites.append(folder)
            if name not in packages and name != OWN_PACKAGE:  # the first folder is imported from
                packages[name] = _package(folder, name, version, rows, cache, deep=deep)
    cache.save()
    ordered = tuple(packages[name] for name in sorted(packages))
    return Installed(ordered, frozenset(files), tuple(dict.fromkeys(sites)))


def _rows(record: Path) -> Iterator[tuple[str, str]]:
    """Yield path and hash of the files of a package; the hash is empty if it has none."""
    with contextlib.suppress(OSError), record.open(encoding="utf-8", newline="") as handle:
        for row in csv.reader(handle):
            # Byte code is compared with its source, not with the list.
            if row and not row[0].endswith(".pyc"):
                yield row[0], row[1] if len(row) > 1 else ""


def _absolute(folder: str, path: str) -> str:
    joined = f"{folder}/{path}"
    return os.path.normpath(joined) if path.startswith("../") else joined


def _package(
    folder: str, name: str, version: str, rows: list[tuple[str, str]], cache: _Cache, *, deep: bool
) -> Package:
    listed = [
        (path, digest)
        for path, digest in rows
        # Start scripts (`../../../bin`) contain the path of the environment.
        if digest and not path.startswith("../") and path.rpartition("/")[2] not in PLACE_DEPENDENT
    ]
    read = listed if deep else [row for row in listed if not row[0].endswith(NOT_RUN)]
    state, newest = _state([f"{folder}/{path}" for path, _ in read], [f"{p},{h}" for p, h in rows])
    cached = cache.get(f"{folder}/{name}", state)
    if cached is not None:
        return Package(name, version, cached[0], tuple(cached[1:]))
    actual = {path: _hash_like(Path(folder, path), digest) for path, digest in read}
    altered = sorted(path for path, digest in read if actual[path] != digest)
    # Unread files count as listed, so a shallow and a deep reading have one digest.
    lines = sorted(f"{path},{actual.get(path, digest)}" for path, digest in listed)
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    cache.put(f"{folder}/{name}", state, newest, [digest, *altered])
    return Package(name, version, digest, tuple(altered))


def _state(paths: list[str], listed: list[str] | None = None) -> tuple[str, int]:
    """Return a hash of the state of some files, and the time of the newest change."""
    words, newest = list(listed or paths), 0
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            words.append("missing")
            continue
        words.append(f"{status.st_size} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}")
        # ctime, because a program can set the mtime back but not the ctime.
        newest = max(newest, status.st_ctime_ns)
    text = "\n".join(words).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest(), newest


def _hash_like(path: Path, listed: str) -> str:
    """Return the hash of a file in the form and by the algorithm of the one in a list."""
    algorithm, _, _ = listed.partition("=")
    try:
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, algorithm).digest()
    except (OSError, ValueError):  # missing, or listed by an algorithm that nobody knows
        return "missing"
    return f"{algorithm}={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def interpreter_hash() -> str:
    """Return a hash of the interpreter: its program, its library and the standard library."""
    cache = _Cache(_cache_file(), deep=False)
    paths = interpreter_files()
    state, newest = _state(list(paths.values()))
    cached = cache.get("interpreter", state)
    if cached is not None:
        return cached[0]
    lines = [f"{name},{sha256_of(Path(path))}" for name, path in sorted(paths.items())]
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    cache.put("interpreter", state, newest, [digest])
    cache.save()
    return digest


@cache
def interpreter_files() -> dict[str, str]:
    """Return name -> path of the files of the interpreter and of the standard library."""
    program = os.path.realpath(sys.executable)
    library = f"{sysconfig.get_config_var('LIBDIR')}/{sysconfig.get_config_var('INSTSONAME')}"
    paths = {f"bin/{os.path.basename(program)}": program}
    # A static library is part of the program already.
    if os.path.isfile(library) and not library.endswith(".a"):
        paths[f"lib/{os.path.basename(library)}"] = library
    root = sysconfig.get_path("stdlib")
    for folder, folders, names in os.walk(root):
        # In place: `os.walk` then skips the packages, which have digests of their own.
        folders[:] = sorted(set(folders) - STANDARD_LIBRARY_EXCEPT)
        for name in names:
            if name.endswith((".py", ".so")):
                path = f"{folder}/{name}"
                paths[os.path.relpath(path, root)] = path
    return paths
