"""One lock keeps two runs in one checkout apart.

It belongs to the process: the kernel frees it when the process ends, however it ends, so no killed
run leaves one behind. Snakemake's own lock files outlive a kill and want a person; the profiles
switch them off.

A run that is killed alone, as when memory is short, leaves its jobs at work. They hold a lock of
their own, `at_work`, and the next run waits for them: no file has two writers.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from t5repro.errors import StorageError, storage_error
from t5repro.progress import announce

LOCK = Path(".snakemake/t5repro.lock")
JOBS = "t5repro.jobs.lock"  # beside it


def acquire(path: Path = LOCK) -> TextIO:
    """Take the lock; it is held until the returned file is closed or the process ends.

    Waits until the jobs of earlier runs have ended.

    Raises:
        StorageError: another process holds it; says which.
    """
    handle = _opened(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        holder = handle.read().strip() or "unknown"
        handle.close()
        raise StorageError(
            f"another run is at work in this folder (process {holder}); wait for it, or use "
            "another clone"
        ) from None
    handle.seek(0)
    handle.truncate()
    handle.write(str(os.getpid()))
    handle.flush()
    _wait_for_jobs(path.with_name(JOBS))
    return handle


def _opened(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        raise storage_error(path, error) from error


def _wait_for_jobs(path: Path) -> None:
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("a job of an earlier run, which was killed, is at work; waiting for its end")
            fcntl.flock(handle, fcntl.LOCK_EX)


@contextlib.contextmanager
def at_work(path: Path = LOCK) -> Iterator[None]:
    """Have runs that begin later wait until this block has ended."""
    with _opened(path.with_name(JOBS)) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def held(path: Path = LOCK) -> Iterator[None]:
    """Hold the lock in this block.

    Raises:
        StorageError: another process holds it.
    """
    with acquire(path):
        yield
