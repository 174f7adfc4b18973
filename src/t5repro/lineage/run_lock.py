"""One lock that keeps two runs, and commands that write, apart: in a checkout and in its results.

The lock belongs to a process: the kernel releases it when the process ends, by any cause, so a
killed run does not leave one behind. Snakemake's own lock files outlive a kill and have to be
removed by hand; the profiles switch them off.

The folders of results are locked as well, where links lead to: two checkouts may share them.

If only the run is killed, as when memory is short, its jobs go on. They hold a second lock,
`job_lock`, and the next run waits for them: no file has two writers.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from t5repro.errors import StorageError, storage_error
from t5repro.lineage.store import RESULTS, WORK
from t5repro.progress import announce

RUN_LOCK = Path(".snakemake/t5repro.lock")
JOB_LOCK_NAME = "t5repro.jobs.lock"  # in the same folder


def acquire(path: Path = RUN_LOCK) -> contextlib.ExitStack:
    """Take the run lock until the returned value is closed or the process ends.

    Waits until the jobs of earlier runs have ended.

    Args:
        path: the lock, in a folder of the checkout.

    Raises:
        StorageError: another process has the lock; names it. Or another checkout has the results.
    """
    with contextlib.ExitStack() as locks:
        handle = locks.enter_context(_open(path))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise StorageError(
                f"another run is at work in this folder (process {holder}); wait for it, or use "
                "another clone"
            ) from None
        handle.seek(0)
        handle.truncate()
        handle.write(str(os.getpid()))
        handle.flush()
        for folder in _result_folders(path.parent.parent):
            _lock_folder(folder, locks)
        _wait_for_jobs(path.with_name(JOB_LOCK_NAME))
        return locks.pop_all()
    raise AssertionError("the stack suppresses no error")


def _result_folders(root: Path) -> list[Path]:
    """Return the folders of results and checkpoints, and of each run in them, without links."""
    roots = [root_folder for root_folder in (root / RESULTS, root / WORK) if root_folder.is_dir()]
    folders = [*roots, *(folder for root_folder in roots for folder in root_folder.iterdir())]
    return sorted({folder.resolve() for folder in folders if folder.is_dir()})


def _lock_folder(folder: Path, locks: contextlib.ExitStack) -> None:
    # The folder itself: a file in it would be one more file among the results.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    locks.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StorageError(
            f"another checkout is at work in {folder}, which links of both share; wait for its "
            "run, or give each checkout results of its own"
        ) from None
    except OSError:
        return  # network file systems do not lock folders


def _open(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        raise storage_error(path, error) from error


def _wait_for_jobs(path: Path) -> None:
    with _open(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("a job of an earlier run, which was killed, is at work; waiting for its end")
            fcntl.flock(handle, fcntl.LOCK_EX)


@contextlib.contextmanager
def job_lock(path: Path = RUN_LOCK) -> Iterator[None]:
    """Make later runs wait until this block has ended."""
    with _open(path.with_name(JOB_LOCK_NAME)) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH)  # shared: jobs of one run do not wait for each other
        yield


@contextlib.contextmanager
def run_lock(path: Path = RUN_LOCK) -> Iterator[None]:
    """Hold the run lock in this block.

    Raises:
        StorageError: another process has the lock.
    """
    with acquire(path):
        yield
