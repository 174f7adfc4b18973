"""The states of a run that questions are about: a working tree, a copy of it, a git revision.

A revision contains no artifact itself: its `dvc.lock` and `data.dvc` name the MD5 of every tracked
file or folder, and DVC's cache contains the bytes under that name.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from t5repro.errors import ArtifactError, nearest
from t5repro.files import TEMPORARY_PREFIX, read_file
from t5repro.lineage.dvc_cache import read_object, tracked_files
from t5repro.lineage.dvc_lock import LOCK_FILE, RAW_DATA_FILE, Lock, parse_lock, read_lock
from t5repro.lineage.git import commit_of, file_at, files_at

RESULTS = "results"
RECORDS = "records"
WORK = "work"  # checkpoints of unfinished trainings, records of repeated jobs


class Store(Protocol):
    """Files of one state of a run, by path relative to the checkout."""

    @property
    def name(self) -> str:
        """The name of this state in answers."""

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` with names that end with `ending`, sorted."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises ArtifactError if they are not available."""

    def lock(self) -> Lock:
        """Return the content of `dvc.lock` and `data.dvc` in this state."""


@dataclass(frozen=True)
class Folder:
    """A working tree, or a copy of its results."""

    root: Path
    name: str = "the working tree"

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` with names that end with `ending`, sorted.

        What a running job writes is left out.
        """
        # Cut and not os.path.relpath, which takes longer than the walk.
        start = len(os.fspath(self.root / folder)) - len(folder)
        for path in files_below(self.root / folder):
            if path.endswith(ending) and not os.path.basename(path).startswith(TEMPORARY_PREFIX):
                yield path[start:]

    def path(self, name: str) -> Path:
        """Return the file on disk."""
        return self.root / name

    def read(self, name: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            ArtifactError: it is missing or cannot be read.
        """
        try:
            return read_file(self.root / name)
        except PermissionError:
            raise  # another run of the stage would not help; the command line names the file
        except OSError as error:
            raise ArtifactError(
                f"{name}: {error.strerror}; run the stage that writes it"
            ) from error

    def lock(self) -> Lock:
        """Return the content of `dvc.lock` and `data.dvc`."""
        return read_lock(self.root)


def files_below(folder: Path | str) -> list[str]:
    """Return every file below a folder, sorted; in folders that links lead to as well.

    A link back to a folder on its own way is left out.
    """
    paths: list[str] = []
    queue: list[tuple[str, frozenset[str]]] = [(os.fspath(folder), frozenset())]
    while queue:  # faster than rglob, which makes a Path and a stat call for each entry
        current, linked = queue.pop()
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        queue.append((entry.path, linked))
                    # A broken link counts as a file: somebody must be told of it.
                    elif not entry.is_symlink() or not os.path.isdir(entry.path):
                        paths.append(entry.path)
                    elif not _leads_back(entry.path, linked):
                        queue.append((entry.path, linked | {os.path.realpath(entry.path)}))
        # A folder may vanish while a run writes beside this walk.
        except (FileNotFoundError, NotADirectoryError):
            continue
    return sorted(paths)


def _leads_back(link: str, linked: frozenset[str]) -> bool:
    """Return whether a link leads to a folder that it is in, or that an earlier link led to."""
    # Resolved, since a link may lead back through other links.
    target = os.path.realpath(link)
    parent = os.path.realpath(os.path.dirname(link))
    return target in linked or os.path.commonpath([target, parent]) == target


@dataclass(frozen=True)
class Revision:
    """A git revision: its lock and records from git, its artifacts from DVC's cache.

    Attributes:
        root: the checkout.
        name: the full hash of the commit.
    """

    root: Path
    name: str

    def lock(self) -> Lock:
        """Return the content of `dvc.lock` and `data.dvc` at this revision."""
        files = files_at(self.root, self.name, [LOCK_FILE, RAW_DATA_FILE])
        return parse_lock(files.get(LOCK_FILE), files.get(RAW_DATA_FILE))

    def committed(self, name: str) -> bytes | None:
        """Return a file that git tracks at this revision; None if git does not track it."""
        return file_at(self.root, self.name, name)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Path -> MD5 of every file that DVC tracks at this revision.

        Raises:
            ArtifactError: the file list of a folder is not in the cache.
        """
        # From the file lists of folders in the cache: git knows only the hash of a list.
        return dict(tracked_files(self.root, self.lock().cached_outputs))

    @cached_property
    def _records(self) -> dict[str, bytes]:
        return files_at(self.root, self.name, [RECORDS])

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` with names that end with `ending`, sorted."""
        # Records are in git, everything else is in DVC's cache.
        for name in sorted(self._records if folder == RECORDS else self.hashes):
            if name.startswith(f"{folder}/") and name.endswith(ending):
                yield name

    def read(self, name: str) -> bytes:
        """Return the bytes of a tracked file.

        Raises:
            ArtifactError: the revision does not track it, or the cache does not have it.
        """
        if name.startswith(f"{RECORDS}/"):
            if name not in self._records:
                raise ArtifactError(f"{name} is not in revision {self.name}")
            return self._records[name]
        if name not in self.hashes:
            raise ArtifactError(f"{name} is not tracked at revision {self.name}")
        return read_object(self.root, self.hashes[name], name)


def open_store(root: Path, state: str | None) -> Folder | Revision:
    """Return a state.

    Args:
        root: the checkout.
        state: a folder or a git revision; None means the working tree of `root`.

    Raises:
        LineageError: it is neither a folder nor a revision.
    """
    if state is None:
        return Folder(root)
    # A folder wins over a revision of the same name.
    if (folder := Path(state)).is_dir():
        return Folder(checkout_of(folder), name=state)
    return Revision(root, commit_of(root, state))


def absent_run(folder: Path) -> ArtifactError:
    """Return the error of a folder that is not there, with the runs that are."""
    runs = sorted(path.name for path in Path(RESULTS).glob("*/"))
    there = (
        f"{RESULTS}/ has {', '.join(runs)}{nearest(folder.name, runs)}"
        if runs
        else "this folder has no results; first run snakemake --profile local, or go to the folder "
        "of a run"
    )
    return ArtifactError(f"there is no folder {folder}; {there}")


def checkout_of(folder: Path) -> Path:
    """Return the nearest folder upwards with `results`: paths in manifests are relative to it."""
    absolute = folder.resolve()
    for candidate in (absolute, *absolute.parents):
        if (candidate / RESULTS).is_dir():
            return candidate
    return absolute
