"""Paths of raw files below `data.folder`."""

from pathlib import Path, PurePosixPath

from t5repro.config.sections.data import DataSettings
from t5repro.errors import RawDataError


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
