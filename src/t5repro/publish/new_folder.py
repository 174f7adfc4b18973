"""A folder that is complete or absent."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from t5repro.errors import StorageError, storage_error


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder of the same name; rename it if the block succeeds.

    Raises:
        StorageError: the folder exists, so that a reader could see half of it; or it cannot be
            written.
    """
    if folder.exists():
        raise StorageError(f"{folder} exists; name a new folder, or remove this one")
    scratch = folder.with_name(f".writing-{folder.name}")
    temporary = scratch / folder.name  # signatures contain the name
    try:
        shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(folder)
    except OSError as error:
        raise storage_error(folder, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
