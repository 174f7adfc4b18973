"""Paths of raw files below `data.folder`."""

import os
import re
from pathlib import Path, PurePosixPath

from t5repro.config.sections.data import DataSettings
from t5repro.errors import RawDataError

# With `cache.type` `symlink`, DVC fills tracked folders with links to objects of its cache.
_OBJECT_OF_DVC = re.compile(r".*/files/md5/[0-9a-f]{2}/[0-9a-f]{30}")


def raw_path(data: DataSettings, name: str) -> Path:
    """Return the path of a raw file.

    Args:
        data: the `data` section.
        name: path relative to `data.folder`.

    Raises:
        RawDataError: the name leaves the folder.
    """
    if leaves_folder(name):
        raise RawDataError(
            f"data.sources names {name!r}, which leaves data.folder; use a path below it"
        )
    return Path(data.folder) / name


def leaves_folder(name: str) -> bool:
    """Return whether a relative path may resolve to a file outside the folder it is joined to."""
    pure = PurePosixPath(name)
    return pure.is_absolute() or ".." in pure.parts


def linked_target(path: Path, folder: Path) -> str | None:
    """Return the file outside of a folder to which symbolic links lead from `path`, if they do.

    The folder itself may be a link, and links to objects of DVC's cache are allowed.
    """
    try:
        target = os.path.realpath(path)
    except ValueError:  # a NUL byte: there is no such file
        return None
    if Path(target).is_relative_to(os.path.realpath(folder)) or _OBJECT_OF_DVC.fullmatch(target):
        return None
    return target


def check_links(data: DataSettings, path: Path) -> None:
    """Check that no symbolic link leads from a raw file out of `data.folder`.

    Raises:
        RawDataError: one does.
    """
    if target := linked_target(path, Path(data.folder)):
        raise RawDataError(
            f"{path} is {target} by a symbolic link, which leaves data.folder ({data.folder}): DVC "
            "does not version what is there; move or copy it into the folder, or make data.folder "
            "itself the link"
        )
