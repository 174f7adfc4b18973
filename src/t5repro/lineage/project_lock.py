"""One lock keeps two runs in one checkout apart.

It belongs to the process: the kernel frees it when the process ends, however it ends, so no killed
run leaves one behind. Snakemake's own lock files outlive a kill and want a person; the profiles
switch them off.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from t5repro.errors import StorageError, storage_error

LOCK = Path(".snakemake/t5repro.lock")


def acquire(path: Path = LOCK) -> TextIO:
    """Take the lock; it is held until the returned file is closed or the process ends.

    Raises:
        StorageError: another process holds it; says which.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise storage_error(path, error) from error
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
    return handle


@contextlib.contextmanager
def held(path: Path = LOCK) -> Iterator[None]:
    """Hold the lock in this block.

    Raises:
        StorageError: another process holds it.
    """
    with acquire(path):
        yield
