"""A folder of Cloud Storage that receives copies of checkpoints."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from t5repro.errors import StorageError
from t5repro.files import HASH_BLOCK_BYTES, atomic_path


class CloudCopy:
    """A folder of Cloud Storage, or of any file system that TensorFlow reads, such as `file://`.

    Names of files are relative to the folder and may contain subfolders.

    Args:
        address: the folder, with its scheme.

    Raises:
        StorageError: (each method) the folder cannot be read or written.
    """

    def __init__(self, address: str) -> None:
        import tensorflow as tf  # which reads gs:// without a further package

        self._address = address
        self._files: Any = tf.io.gfile
        self._errors: Any = tf.errors

    def names(self, subfolder: str = "") -> list[str]:
        """Return the names of the files and folders in the folder, or in a subfolder."""
        address = self._address_of(subfolder) if subfolder else self._address
        with self._storage_errors():
            # Listing hides why a folder cannot be read; creating it does not.
            self._files.makedirs(self._address)
            if not self._files.isdir(address):
                return []
            return [name.rstrip("/") for name in self._files.listdir(address)]

    def push(self, path: Path, name: str) -> None:
        """Copy a local file to `name`; an object of Cloud Storage is whole or absent."""
        with self._storage_errors():
            self._files.copy(str(path), self._address_of(name), overwrite=True)

    def fetch(self, path: Path, name: str) -> None:
        """Copy `name` to a local path, atomically."""
        with atomic_path(path) as temporary, self._storage_errors():
            self._files.copy(self._address_of(name), str(temporary), overwrite=True)

    def differ(self, name: str, target: str) -> bool:
        """Return whether two files exist with different contents."""
        first, second = self._address_of(name), self._address_of(target)
        with self._storage_errors():
            if not (self._files.exists(first) and self._files.exists(second)):
                return False
            if self._files.stat(first).length != self._files.stat(second).length:
                return True
            with (
                self._files.GFile(first, "rb") as name_file,
                self._files.GFile(second, "rb") as target_file,
            ):
                while block := name_file.read(HASH_BLOCK_BYTES):
                    if block != target_file.read(HASH_BLOCK_BYTES):
                        return True
        return False

    def move(self, name: str, target: str) -> None:
        """Move a file if it exists; at every moment one of the two names is whole."""
        with self._storage_errors():
            if not self._files.exists(self._address_of(name)):
                return
            self._files.makedirs(self._address_of(target).rpartition("/")[0])
            self._files.rename(self._address_of(name), self._address_of(target), overwrite=True)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with self._storage_errors(), contextlib.suppress(self._errors.NotFoundError):
            self._files.remove(self._address_of(name))

    def _address_of(self, name: str) -> str:
        return f"{self._address}/{name}"

    @contextlib.contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors.OpError as error:
            raise StorageError(
                f"{self._address} cannot be read or written ({error.message}); check "
                "devices.cloud_folder and the credentials of this machine"
            ) from error


def cloud_address(cloud_folder: str, path: Path) -> str:
    """Return the address of a local folder's copy: ``gs://bucket/t5`` and ``work/demo`` joined."""
    return f"{cloud_folder.rstrip('/')}/{path.as_posix().lstrip('/')}"
