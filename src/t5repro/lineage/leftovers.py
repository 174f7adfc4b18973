"""Remove the temporary files of a killed run, by the next run of the same job.

A job holds a lock while it runs. Whoever gets the lock knows that no other process runs the job, so
the temporary files of its outputs belong to a run that was killed.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from t5repro.artifacts import MANIFEST
from t5repro.errors import storage_error
from t5repro.files import SPILL_SUFFIX, TEMPORARY_PREFIX

# `tempfile`, and `files.atomic_path`, put eight characters between prefix and suffix.
_TEMPORARY = re.compile(re.escape(TEMPORARY_PREFIX) + rf"[a-z0-9_]{{8}}-(.+?)({SPILL_SUFFIX})?")
_LOCK = re.compile(re.escape(f"{TEMPORARY_PREFIX}lock-") + rf".*{re.escape(MANIFEST)}")


@contextlib.contextmanager
def exclusive(manifest: Path, outputs: Iterable[Path] | None = None) -> Iterator[None]:
    """Hold the lock of a job during the block, after removing what a killed run of it left.

    If another process holds the lock, nothing is removed.

    Args:
        manifest: manifest of the job; the lock is next to it.
        outputs: files that the job writes; absent, all below the folder of the manifest.

    Raises:
        StorageError: the folder of the manifest cannot be written.
    """
    lock = manifest.with_name(f"{TEMPORARY_PREFIX}lock-{manifest.name}")
    try:
        manifest.parent.mkdir(parents=True, exist_ok=True)
        handle = lock.open("w")
    except OSError as error:
        raise storage_error(manifest, error) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process runs the job, or the file system has no locks
            yield
            return
        try:
            if outputs is None:
                remove_leftovers_below(manifest.parent)
            else:
                remove_leftovers([manifest, *outputs])
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextlib.contextmanager
def writing_beside(files: Iterable[Path]) -> Iterator[None]:
    """Write files of the user during the block, after removing what killed commands left of them.

    Nothing is removed from a folder into which another command is writing.
    """
    written = list(files)
    with contextlib.ExitStack() as stack:
        for folder in {file.parent for file in written if file.parent.is_dir()}:
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            with contextlib.suppress(OSError):  # another command, or a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_leftovers(file for file in written if file.parent == folder)
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield


def is_leftover(name: str) -> bool:
    """Return whether a file has the name of a temporary file or of the lock of a job."""
    return bool(_TEMPORARY.fullmatch(name) or _LOCK.fullmatch(name))


def remove_leftovers_below(folder: Path) -> None:
    """Delete the temporary files below a folder in which no process is writing."""
    for path in folder.rglob(f"{TEMPORARY_PREFIX}*"):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def remove_leftovers(files: Iterable[Path]) -> None:
    """Delete the temporary files and folders of some files that no process is writing."""
    names: dict[Path, set[str]] = {}
    for file in files:
        names.setdefault(file.parent, set()).add(file.name)
    for folder, written in names.items():
        for name in os.listdir(folder) if folder.is_dir() else ():
            match = _TEMPORARY.fullmatch(name)
            if match and match[1] in written:
                if match[2]:
                    shutil.rmtree(folder / name, ignore_errors=True)
                else:
                    (folder / name).unlink(missing_ok=True)
