"""Files of a git revision as files on disk, from DVC's cache or its remote."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, storage_error
from t5repro.files import atomic_path

REVISIONS = Path("work/revisions")


@dataclass(frozen=True)
class RevisionFiles:
    """The files of a revision; each is copied once, to ``work/revisions/<commit>/``.

    DVC takes them from its cache, and otherwise from the remote of the revision.

    Attributes:
        root: the checkout.
        revision: full hash of the commit.
    """

    root: Path
    revision: str

    def names(self, folder: str, ending: str) -> list[str]:
        """Return the files below `folder` with names that end with `ending`, sorted.

        Raises:
            ArtifactError: the revision does not track the folder, or neither cache nor remote has
                the list of its files.
        """
        with self._errors_about(folder):
            return sorted(name for name in self._tree.find(folder) if name.endswith(ending))

    def path(self, name: str) -> Path:
        """Return a copy of a tracked file.

        Raises:
            ArtifactError: the revision does not track it, or neither cache nor remote has it.
            StorageError: the copy cannot be written.
        """
        copy = self.root / REVISIONS / self.revision / name
        if copy.is_file():
            return copy
        with self._errors_about(name):
            content = self._tree.open(name)
        try:
            with content, atomic_path(copy) as target, target.open("wb") as output:
                shutil.copyfileobj(content, output)
        except OSError as error:
            raise storage_error(copy, error) from error
        return copy

    @cached_property
    def _tree(self) -> Any:
        from dvc.api import DVCFileSystem

        return DVCFileSystem(str(self.root), rev=self.revision)

    @contextlib.contextmanager
    def _errors_about(self, name: str) -> Iterator[None]:
        """Name missing files and where they can come from."""
        from dvc.exceptions import DvcException
        from dvc_data.index import DataIndexError

        try:
            yield
        except (OSError, DvcException, DataIndexError) as error:
            raise ArtifactError(
                f"{name} of revision {self.revision[:12]} is neither in DVC's cache nor in its "
                f"remote ({error}); push it with dvc push where it was made, or check the "
                "revision out and run snakemake --profile local"
            ) from error
