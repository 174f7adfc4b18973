"""The states of an unfinished training, on this disk and, if asked for, in Cloud Storage.

A state is a safetensors file in the work folder. With `devices.cloud_folder` each one is copied
there as well, and a new machine begins by fetching what its own disk lacks: a preempted TPU VM
takes its disk along. Everything else is local: ids are memory-mapped, results are files of the
graph (`docs/run_on_tpu.md`).
"""

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from t5repro.errors import StorageError
from t5repro.files import TEMPORARY_PREFIX, atomic_path
from t5repro.model.checkpoints import Arrays, save_state, save_weights

if TYPE_CHECKING:
    from t5repro.train.callback import History

KEPT_STATES = 2
STATE_NAME = re.compile(r"^step-(\d{9})\.safetensors$")
KEPT_NAME = re.compile(r"^kept-(\d{9})\.safetensors$")  # weights that the stage hands on


class CloudCopy:
    """A folder of Cloud Storage, or of any file system that TensorFlow reads, such as `file://`.

    Args:
        address: the folder, with its scheme.

    Raises:
        StorageError: (each method) the folder cannot be read or written.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def names(self) -> list[str]:
        """Return the files in the folder, which is made if it is not there."""
        with self._reaching():
            # Listing hides why a folder cannot be read; making it does not.
            tf.io.gfile.makedirs(self._address)
            return [name.rstrip("/") for name in tf.io.gfile.listdir(self._address)]

    def push(self, path: Path) -> None:
        """Copy a local file there; an object of Cloud Storage is whole or absent."""
        with self._reaching():
            tf.io.gfile.copy(str(path), self._place(path.name), overwrite=True)

    def fetch(self, path: Path) -> None:
        """Copy a file here, atomically."""
        with atomic_path(path) as temporary, self._reaching():
            tf.io.gfile.copy(self._place(path.name), str(temporary), overwrite=True)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        with self._reaching(), contextlib.suppress(tf.errors.NotFoundError):
            tf.io.gfile.remove(self._place(name))

    def _place(self, name: str) -> str:
        return f"{self._address}/{name}"

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            raise StorageError(
                f"{self._address} cannot be read or written ({error.message}); check "
                "devices.cloud_folder and the credentials of this machine"
            ) from error


def cloud_address(cloud_folder: str, path: Path) -> str:
    """Return where a local folder has its copy: ``gs://bucket/t5`` and ``work/demo`` joined."""
    return f"{cloud_folder.rstrip('/')}/{path.as_posix().lstrip('/')}"


class StateFiles:
    """The training states in a work folder; the newest `KEPT_STATES` are kept.

    Args:
        folder: the work folder.
        others: arrays of the loop that go into every state, beside the history.
        kept_steps: steps whose weights the stage hands on beside the last ones.
        cloud: where copies of the files are; absent: nowhere.
    """

    def __init__(
        self,
        folder: Path,
        others: Arrays,
        *,
        kept_steps: tuple[int, ...] = (),
        cloud: CloudCopy | None = None,
    ) -> None:
        self._folder = folder
        self._others = others
        self._kept_steps = frozenset(kept_steps)
        self._cloud = cloud

    def fetch(self) -> None:
        """Bring what this disk lacks from the cloud."""
        if self._cloud is None:
            return
        for name in self._cloud.names():
            path = self._folder / name
            if (STATE_NAME.match(name) or KEPT_NAME.match(name)) and not path.exists():
                self._cloud.fetch(path)

    def newest_first(self) -> list[Path]:
        """Return the states, the newest first, that kept weights are there for."""
        kept = {step_of(path) for path in self._found(KEPT_NAME)}
        missing = min(self._kept_steps - kept, default=None)
        return [
            path for path in self._found(STATE_NAME) if missing is None or step_of(path) < missing
        ]

    def _found(self, name: re.Pattern[str]) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted((p for p in self._folder.iterdir() if name.match(p.name)), reverse=True)

    def save(self, step: int, model: Any, history: "History") -> None:
        """Write the state after `step` steps and remove the oldest."""
        if step in self._kept_steps:  # first, so that no state is without its kept weights
            save_weights(self.kept(step), model)
            self._push(self.kept(step))
        path = self._folder / f"step-{step:09d}.safetensors"
        save_state(path, model, model.optimizer, {**self._others, **history.as_arrays()})
        self._push(path)
        for old in self._found(STATE_NAME)[KEPT_STATES:]:
            self._remove(old)

    def kept(self, step: int) -> Path:
        """Return where the weights of a step are until the training ends."""
        return self._folder / f"kept-{step:09d}.safetensors"

    def hand_on(self, folder: Path) -> list[Path]:
        """Copy the kept weights to ``step-<n>/weights.safetensors`` below `folder`; return them."""
        places = {
            folder / f"step-{step}" / "weights.safetensors": self.kept(step)
            for step in sorted(self._kept_steps)
        }
        for stale in set(folder.glob("step-*/weights.safetensors")) - set(places):
            stale.unlink()  # of other settings
            with contextlib.suppress(OSError):
                stale.parent.rmdir()
        for place, kept in places.items():
            with atomic_path(place) as temporary:
                shutil.copyfile(kept, temporary)
        return list(places)

    def remove(self) -> None:
        """Remove all states, half-written ones too, and the folder if nothing else is in it."""
        names = [path.name for name in (STATE_NAME, KEPT_NAME) for path in self._found(name)]
        if self._cloud:
            there = self._cloud.names()
            names += [name for name in there if STATE_NAME.match(name) or KEPT_NAME.match(name)]
        for name in dict.fromkeys(names):
            self._remove(self._folder / name)
        for path in self._folder.glob(f"{TEMPORARY_PREFIX}*"):
            path.unlink()
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _push(self, path: Path) -> None:
        if self._cloud:
            self._cloud.push(path)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        if self._cloud:
            self._cloud.remove(path.name)


def step_of(path: Path) -> int:
    """Return the step that a state or kept weights are of."""
    return int(path.stem.rpartition("-")[2])
