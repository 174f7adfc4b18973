"""Where the files of a run are read from: the working tree, another folder, or a git revision.

A revision holds no artifact itself: its `dvc.lock` and `*.dvc` name the MD5 of every tracked file
or folder, and DVC's cache holds the bytes under that name. Both are plain files, read here without
importing DVC, so that an answer does not wait for it.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import yaml

from t5repro.errors import ArtifactError, LineageError

STAGES = "dvc.yaml"
LOCK = "dvc.lock"
FROZEN = "data.dvc"
RESULTS = "results"
RECORDS = "records"
FOLDER = ".dir"
CACHE = Path(".dvc/cache/files/md5")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


class Store(Protocol):
    """Files of one state of a run, by path relative to the checkout."""

    @property
    def name(self) -> str:
        """How answers call this state."""

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` whose name ends with `ending`, sorted."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises ArtifactError if they cannot be had."""

    def lock(self) -> "Lock":
        """Return what `dvc.lock` and `data.dvc` say in this state."""


@dataclass(frozen=True)
class Tracked:
    """One file or folder that DVC tracks.

    Attributes:
        path: relative to the checkout.
        md5: of the file; of the sorted list of files, with `FOLDER` behind it, for a folder.
        stage: the stage of `dvc.yaml` that makes it; empty for raw inputs.
        length: bytes, or None where the lock does not say.
    """

    path: str
    md5: str
    stage: str = ""
    length: int | None = None

    @property
    def is_folder(self) -> bool:
        """Whether the hash is of a list of files."""
        return self.md5.endswith(FOLDER)


@dataclass(frozen=True)
class Lock:
    """The content of `dvc.lock` and `data.dvc`.

    Attributes:
        outputs: what stages and `data.dvc` track, in the order of the files.
        stages: stage -> its entry in `dvc.lock`, as it stands there.
    """

    outputs: tuple[Tracked, ...] = ()
    stages: Mapping[str, Any] = field(default_factory=dict)

    def dependencies(self, stage: str) -> dict[str, str]:
        """Return path -> md5 of what a stage read."""
        return {
            item["path"]: str(item.get("md5", ""))
            for item in self.stages.get(stage, {}).get("deps", [])
        }


def parse_lock(lock: bytes | None, frozen: bytes | None) -> Lock:
    """Return the content of the two files; an absent one tracks nothing.

    Raises:
        LineageError: a file is not what DVC writes.
    """
    outputs: list[Tracked] = []
    stages: dict[str, Any] = {}
    try:
        if frozen is not None:
            for item in parse_yaml(frozen)["outs"]:
                outputs.append(Tracked(item["path"], item["md5"], "", item.get("size")))
        if lock is not None:
            stages = parse_yaml(lock).get("stages") or {}
            for stage, entry in stages.items():
                for item in entry.get("outs", []):
                    outputs.append(Tracked(item["path"], item["md5"], stage, item.get("size")))
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise LineageError(
            f"{LOCK} or {FROZEN} is not what DVC writes ({error}); restore it with git checkout"
        ) from error
    return Lock(tuple(outputs), stages)


def parse_yaml(data: bytes) -> Any:
    """Return the values of a YAML text."""
    return yaml.load(data, Loader=LOADER)  # noqa: S506 a safe loader, in C where there is one


@dataclass(frozen=True)
class Folder:
    """A checkout on the disk, or a copy of its results."""

    root: Path
    name: str = "the working tree"

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` whose name ends with `ending`, sorted."""
        for path in files_below(self.root / folder):
            if path.endswith(ending):
                yield os.path.relpath(path, self.root)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            ArtifactError: it is missing or cannot be read.
        """
        try:
            return (self.root / name).read_bytes()
        except OSError as error:
            raise ArtifactError(
                f"{name}: {error.strerror}; run the stage that writes it"
            ) from error

    def lock(self) -> Lock:
        """Return what `dvc.lock` and `data.dvc` say now."""
        return parse_lock(_bytes(self.root / LOCK), _bytes(self.root / FROZEN))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def files_below(folder: Path | str) -> list[str]:
    """Return every file below a folder, sorted; quicker than rglob on large folders."""
    found: list[str] = []
    queue = [os.fspath(folder)]
    while queue:
        try:
            with os.scandir(queue.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
                    else:
                        found.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return sorted(found)


@dataclass(frozen=True)
class Revision:
    """A git revision: its lock from git, its artifacts from DVC's cache."""

    root: Path
    name: str

    def lock(self) -> Lock:
        """Return what `dvc.lock` and `data.dvc` said at this revision."""
        return parse_lock(self.committed(LOCK), self.committed(FROZEN))

    def committed(self, name: str) -> bytes | None:
        """Return a file that git tracks at this revision; None if it tracks none."""
        return git_file(self.root, self.name, name)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Path -> MD5 of every file that DVC tracked, folders opened.

        Raises:
            ArtifactError: the list of a folder is not in the cache.
        """
        return dict(opened(self.root, self.lock().outputs))

    @cached_property
    def _records(self) -> tuple[str, ...]:
        listed = git(self.root, "ls-tree", "-r", "-z", "--name-only", self.name, "--", RECORDS)
        return tuple(sorted(filter(None, listed.decode().split("\0"))))

    def names(self, folder: str, ending: str) -> Iterator[str]:
        """Yield the files below `folder` whose name ends with `ending`, sorted."""
        known = self._records if folder == RECORDS else sorted(self.hashes)
        for name in known:
            if name.startswith(f"{folder}/") and name.endswith(ending):
                yield name

    def read(self, name: str) -> bytes:
        """Return the bytes of a tracked file.

        Raises:
            ArtifactError: the revision does not track it, or the cache lacks it.
        """
        if name.startswith(f"{RECORDS}/"):
            if (found := self.committed(name)) is not None:
                return found
            raise ArtifactError(f"{name} is not in revision {self.name}")
        if name not in self.hashes:
            raise ArtifactError(f"{name} is not tracked at revision {self.name}")
        return cached_object(self.root, self.hashes[name], name)


def opened(root: Path, outputs: tuple[Tracked, ...]) -> Iterator[tuple[str, str]]:
    """Yield path and MD5 of every tracked file, with the lists of folders from the cache.

    Raises:
        ArtifactError: a list is not in the cache.
    """
    for item in outputs:
        if item.is_folder:
            for entry in folder_list(root, item):
                yield f"{item.path}/{entry['relpath']}", entry["md5"]
        else:
            yield item.path, item.md5


def folder_list(root: Path, item: Tracked) -> list[dict[str, str]]:
    """Return the files of a tracked folder: their ``relpath`` and ``md5``.

    Raises:
        ArtifactError: the list is not in the cache.
    """
    entries: list[dict[str, str]] = json.loads(cached_object(root, item.md5, item.path))
    return entries


def cache_folder(root: Path) -> Path:
    """Return the folder of DVC's cache; linked worktrees and `cache.dir` have it elsewhere."""
    for config in (".dvc/config.local", ".dvc/config"):
        if text := _bytes(root / config):
            section = ""
            for line in text.decode("utf-8", "replace").splitlines():
                word = line.strip()
                if word.startswith("["):
                    section = word.strip("[]'\" ")
                key, separator, value = word.partition("=")
                if separator and section == "cache" and key.strip() == "dir":
                    return (root / ".dvc" / value.strip()).resolve() / "files/md5"
    return root / CACHE


def object_path(root: Path, md5: str) -> Path:
    """Return where the cache keeps the object with this hash."""
    return cache_folder(root) / md5[:2] / md5[2:]


def cached_object(root: Path, md5: str, name: str) -> bytes:
    """Return an object of the cache.

    Raises:
        ArtifactError: it is not there.
    """
    try:
        return object_path(root, md5).read_bytes()
    except OSError as error:
        raise ArtifactError(
            f"{name} (md5 {md5}) is not in DVC's cache; get it with `dvc fetch --all-commits`"
        ) from error


def folder_md5(hashes: Mapping[str, str]) -> str:
    """Return the hash that DVC gives a folder, from relative path -> MD5 of its files."""
    entries = [{"md5": md5, "relpath": name} for name, md5 in sorted(hashes.items(), key=_parts)]
    text = json.dumps(entries, sort_keys=True)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() + FOLDER


def _parts(item: tuple[str, str]) -> tuple[str, ...]:
    return tuple(item[0].split("/"))


def git(root: Path, *words: str) -> bytes:
    """Run git in the checkout and return what it printed.

    Raises:
        LineageError: git refused.
    """
    ran = subprocess.run(["git", *words], cwd=root, capture_output=True, check=False)
    if ran.returncode:
        message = ran.stderr.decode(errors="replace").strip()
        raise LineageError(f"git {' '.join(words[:2])}: {message}")
    return ran.stdout


def git_file(root: Path, revision: str, name: str) -> bytes | None:
    """Return a file as a revision has it; None if it has none."""
    if not git(root, "ls-tree", "-z", "--name-only", revision, "--", name):
        return None
    return git(root, "show", f"{revision}:{name}")


def commit_of(root: Path, revision: str) -> str:
    """Return the full name of a revision.

    Raises:
        LineageError: git does not know it.
    """
    ran = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise LineageError(
            f"{revision!r} is neither a revision of this repository nor a folder with results; "
            "git log shows revisions"
        )
    return ran.stdout.strip()


def open_store(root: Path, place: str | None) -> Folder | Revision:
    """Return the state that `place` names: a folder, a git revision, or None for what is here.

    Raises:
        LineageError: it is neither.
    """
    if place is None:
        return Folder(root)
    if (folder := Path(place)).is_dir():
        return Folder(checkout_of(folder), name=place)
    return Revision(root, commit_of(root, place))


def checkout_of(folder: Path) -> Path:
    """Return the folder that the paths of manifests are relative to: the one with `results`."""
    absolute = folder.resolve()
    for candidate in (absolute, *absolute.parents):
        if (candidate / RESULTS).is_dir():
            return candidate
    return absolute
