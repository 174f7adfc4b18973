"""Checkpoints that do not fit the running training, in named folders below the work folder.

Nothing here deletes or overwrites a file with other contents. A move that is killed halfway is
completed by the next one: each file is moved in the cloud first, then on this disk.
"""

import filecmp
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from t5repro.errors import storage_error
from t5repro.train.cloud import CloudCopy

FOLDER = "set-aside"
NUMBERED = re.compile(r"-\d{1,7}$")  # of a second folder of one name; shorter than hex digits


class SetAside:
    """The folder ``set-aside`` in a work folder and its copy in the cloud.

    Args:
        work: the work folder; names of files are relative to it.
        cloud: copy of the work folder; if absent, there is none.
    """

    def __init__(self, work: Path, cloud: CloudCopy | None) -> None:
        self._work = work
        self._cloud = cloud

    def move(self, names: Sequence[str], group: str) -> Path:
        """Move files of the work folder to a group; return the group's folder.

        A number is appended to the group's name if it contains other files of these names.
        """
        for number in itertools.count(1):
            target = f"{FOLDER}/{group}" + (f"-{number}" if number > 1 else "")
            if not any(self._conflict(name, f"{target}/{name}") for name in names):
                break
        for name in names:
            self._move_file(name, f"{target}/{name}")
        return self._work / target

    def groups(self, digits: str) -> Iterator[set[str]]:
        """Yield the names of the files of each group, local ones and those in the cloud.

        Args:
            digits: end of the group's name, the first digits of a fingerprint; if empty, all.
        """
        root = self._work / FOLDER
        groups = {path.name for path in root.iterdir()} if root.is_dir() else set()
        if self._cloud is not None:
            groups |= set(self._cloud.names(FOLDER))
        for group in sorted(groups):
            if not NUMBERED.sub("", group).endswith(digits):
                continue
            folder = root / group
            names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
            if self._cloud is not None:
                names |= set(self._cloud.names(f"{FOLDER}/{group}"))
            yield {f"{FOLDER}/{group}/{name}" for name in names}

    def contains(self, name: str) -> bool:
        """Return whether a file of the work folder exists on this disk or in the cloud."""
        if (self._work / name).exists():
            return True
        folder, _, file = name.rpartition("/")
        return self._cloud is not None and file in self._cloud.names(folder)

    def fetch(self, name: str) -> Path:
        """Return the local path of a file, after copying it from the cloud if necessary."""
        path = self._work / name
        if not path.exists() and self._cloud is not None:
            self._cloud.fetch(path, name)
        return path

    def _conflict(self, name: str, target: str) -> bool:
        """Return whether `target` exists with other contents than `name`."""
        source_path, target_path = self._work / name, self._work / target
        if target_path.exists() and not filecmp.cmp(source_path, target_path, shallow=False):
            return True
        return self._cloud is not None and self._cloud.differ(name, target)

    def _move_file(self, name: str, target: str) -> None:
        if self._cloud is not None:
            # In the other order a kill in between would leave a copy in the cloud that the next
            # start fetches back into the work folder.
            self._cloud.move(name, target)
        path = self._work / target
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._work / name, path)
        except OSError as error:
            raise storage_error(path, error) from error
