"""The checkpoints of an unfinished training: from which to resume, which to set aside, copies.

A checkpoint is a safetensors file in the work folder, written under a temporary name and renamed
(`files.atomic_path`). With `devices.cloud_folder` each one is
copied there too, and a new machine starts by fetching the files its own disk lacks, because a
preempted TPU VM loses its disk. Everything else is local: ids are memory-mapped, results are files
of the graph (`docs/run_on_tpu.md`).

A training resumes from checkpoints of its own fingerprint. Checkpoints of another fingerprint are
set aside, never deleted: an edit of a setting or of the code must not cost weeks of training. They
move to ``set-aside/other-<differing parts>-<8 hex digits of their fingerprint>/`` in the work
folder, and in the cloud alike (`set_aside.py`). If the edit is undone, training resumes from them.
"""

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import STEP_PREFIX, WEIGHTS, step_folder
from t5repro.errors import ArtifactError
from t5repro.files import TEMPORARY_PREFIX, atomic_path
from t5repro.model.checkpoints import LOOP_SECTION, Arrays, read_arrays, save_state, save_weights
from t5repro.train.cloud import CloudCopy
from t5repro.train.fingerprint import Fingerprint
from t5repro.train.set_aside import SetAside

NEWEST_KEPT = 2  # the second one replaces a newest checkpoint that turns out to be damaged
CHECKPOINT_NAME = re.compile(r"^step-(\d{9})\.safetensors$")
WEIGHTS_NAME = re.compile(r"^kept-(\d{9})\.safetensors$")  # weights that the stage will export
HEX_DIGITS = 8  # of a fingerprint, in the name of a folder


@dataclass(frozen=True)
class Checkpoint:
    """A readable checkpoint.

    Attributes:
        path: the file, in the work folder or set aside.
        fingerprint: of the training that wrote it.
    """

    path: Path
    fingerprint: Fingerprint

    @property
    def step(self) -> int:
        """Steps of the training that it contains."""
        return step_of(self.path.name)


class CheckpointManager:
    """The checkpoints in a work folder; the newest `NEWEST_KEPT` are kept.

    Args:
        folder: the work folder.
        fingerprint: of the training that runs.
        log: prints a line.
        kept_steps: the stage exports the weights of these steps in addition to the last.
        cloud: receives copies of the files; if absent, they are local only.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: Fingerprint,
        *,
        log: Callable[[str], None],
        kept_steps: tuple[int, ...] = (),
        cloud: CloudCopy | None = None,
    ) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        self._log = log
        self._kept_steps = frozenset(kept_steps)
        self._cloud = cloud
        self._set_aside = SetAside(folder, cloud)

    # Saving

    def save(self, step: int, model: Any, loop_arrays: Arrays) -> None:
        """Write the checkpoint after `step` steps and remove the oldest."""
        if step in self._kept_steps:  # first, so that no checkpoint lacks its kept weights
            save_weights(self.kept_weights(step), model.network, model.objective.columns)
            self._push(self.kept_weights(step))
        path = self._folder / f"step-{step:09d}.safetensors"
        arrays = {**self._fingerprint.as_arrays(), **loop_arrays}
        save_state(path, model.network, model.optimizer, arrays)
        self._push(path)
        # Files of later steps are damaged or lack kept weights; training will replace them.
        reached = [name for name in self._checkpoint_names() if step_of(name) <= step]
        for name in reached[NEWEST_KEPT:]:
            self._remove(name)

    def kept_weights(self, step: int) -> Path:
        """Return the path of a kept step's weights until the training ends."""
        return self._folder / f"kept-{step:09d}.safetensors"

    def export_kept(self, folder: Path) -> list[Path]:
        """Copy the kept weights to ``step-<n>/weights.safetensors`` in `folder`; return them."""
        exported = {
            folder / step_folder(step) / WEIGHTS: self.kept_weights(step)
            for step in sorted(self._kept_steps)
        }
        for stale in set(folder.glob(f"{STEP_PREFIX}*/{WEIGHTS}")) - set(exported):
            stale.unlink()  # of other settings
            with contextlib.suppress(OSError):
                stale.parent.rmdir()
        for target, source in exported.items():
            with atomic_path(target) as temporary:
                shutil.copyfile(source, temporary)
        return list(exported)

    def remove(self) -> None:
        """Remove the checkpoints that are not set aside, and the folder if it is empty then."""
        for name in dict.fromkeys([*self._names(), *self._cloud_names()]):
            self._remove(name)
        for path in self._folder.glob(f"{TEMPORARY_PREFIX}*"):
            path.unlink()
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    # Resuming

    def resumable(self, *, changed: bool) -> Iterator[Checkpoint]:
        """Set aside the checkpoints of other fingerprints; yield those to resume from.

        The newest first, including those set aside earlier; a damaged one is logged and skipped.

        Args:
            changed: yield checkpoints of other fingerprints too.
        """
        self._fetch()
        checkpoints: dict[str, Checkpoint | None] = {
            checkpoint.path.name: checkpoint for checkpoint in self._set_aside_changed()
        }
        digits = "" if changed else self._fingerprint.value[:HEX_DIGITS]
        own_weights = self._own_weights()
        for names in (set(self._names()), *self._set_aside.groups(digits)):
            lacking = self._kept_steps - {
                step_of(name)
                for name in (*names, *own_weights)
                if WEIGHTS_NAME.match(Path(name).name)
            }
            first_lacking = min(lacking, default=None)
            for name in names:
                if not CHECKPOINT_NAME.match(Path(name).name):
                    continue
                # The weights of an earlier step cannot be exported without training it again.
                if first_lacking is not None and step_of(name) >= first_lacking:
                    checkpoints.pop(name, None)
                elif "/" in name:
                    checkpoints[name] = None  # read below, once its turn comes
        # At equal steps the work folder, whose names have no slash, comes first.
        for name in sorted(checkpoints, key=lambda name: (-step_of(name), name.count("/"), name)):
            checkpoint = checkpoints[name] or self._read(self._set_aside.fetch(name))
            if checkpoint is not None and (changed or not self.differing_parts(checkpoint)):
                yield checkpoint

    def differing_parts(self, checkpoint: Checkpoint) -> tuple[str, ...]:
        """Return the parts of the fingerprint that differ from the running training's."""
        return checkpoint.fingerprint.differing_parts(self._fingerprint)

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Prepare the work folder for training from a checkpoint that is set aside.

        The checkpoint itself stays where it is; the kept weights up to its step are copied.
        """
        source = checkpoint.path.parent
        own_weights = {Path(name).name: name for name in self._own_weights()}
        if source != self._folder and (names := self._names()):  # of a shorter attempt
            self._set_aside.move(names, f"superseded-{self._fingerprint.value[:HEX_DIGITS]}")
        for step in sorted(step for step in self._kept_steps if step <= checkpoint.step):
            target = self.kept_weights(step)
            if target.exists():
                continue
            name = (source / target.name).relative_to(self._folder).as_posix()
            if not self._set_aside.contains(name):
                name = own_weights[target.name]
            with atomic_path(target) as temporary:
                shutil.copyfile(self._set_aside.fetch(name), temporary)
            self._push(target)

    def _own_weights(self) -> list[str]:
        """Return the kept weights of this fingerprint that are set aside.

        After a killed move with a cause that was undone, they are there and the checkpoints are in
        the work folder.
        """
        groups = self._set_aside.groups(self._fingerprint.value[:HEX_DIGITS])
        return [name for names in groups for name in names if WEIGHTS_NAME.match(Path(name).name)]

    def _set_aside_changed(self) -> list[Checkpoint]:
        """Move the checkpoints of other fingerprints; return the checkpoints of this one."""
        checkpoints = [self._read(self._folder / name) for name in self._checkpoint_names()]
        readable = [checkpoint for checkpoint in checkpoints if checkpoint is not None]
        unchanged = [checkpoint for checkpoint in readable if not self.differing_parts(checkpoint)]
        groups: dict[str, list[str]] = {}
        for checkpoint in readable:
            if differing := self.differing_parts(checkpoint):
                digits = checkpoint.fingerprint.value[:HEX_DIGITS]
                groups.setdefault(f"other-{'-'.join(differing)}-{digits}", [])
                groups[f"other-{'-'.join(differing)}-{digits}"].append(checkpoint.path.name)
        if groups and not unchanged:
            # Kept weights and damaged files record no fingerprint and belong to the newest. They
            # move first: after a kill the checkpoints that remain take the others to one folder.
            grouped = {name for names in groups.values() for name in names}
            newest = next(iter(groups.values()))
            newest[:0] = [name for name in self._names() if name not in grouped]
        for group, names in groups.items():
            folder = self._set_aside.move(names, group)
            self._log(
                f"{len(names)} checkpoint files set aside in {folder}: written with other "
                f"{', '.join(group.split('-')[1:-1])}; the option --resume-changed (setting "
                "run.resume_changed) resumes from them and records it"
            )
        return unchanged

    def _read(self, path: Path) -> Checkpoint | None:
        """Return the checkpoint in a file, or log the fault if the file is damaged."""
        try:
            return Checkpoint(
                path, Fingerprint.from_arrays(read_arrays(path, section=LOOP_SECTION))
            )
        except ArtifactError as error:
            self._log(f"{error}; trying the checkpoint before it")
            return None

    def _fetch(self) -> None:
        """Copy the files of the work folder that this disk lacks from the cloud."""
        for name in self._cloud_names():
            if self._cloud is not None and not (self._folder / name).exists():
                self._cloud.fetch(self._folder / name, name)

    def _cloud_names(self) -> list[str]:
        """Return the names of checkpoints and kept weights in the cloud, not those set aside."""
        return [] if self._cloud is None else list(filter(_is_file_of_ours, self._cloud.names()))

    def _names(self) -> list[str]:
        """Return the names of checkpoints and kept weights in the work folder, newest first."""
        if not self._folder.is_dir():
            return []
        names = filter(_is_file_of_ours, (path.name for path in self._folder.iterdir()))
        return sorted(names, reverse=True)

    def _checkpoint_names(self) -> list[str]:
        """Return the names of the checkpoints in the work folder, newest first."""
        return [name for name in self._names() if CHECKPOINT_NAME.match(name)]

    def _push(self, path: Path) -> None:
        if self._cloud is not None:
            self._cloud.push(path, path.name)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        if self._cloud is not None:
            self._cloud.remove(name)


def step_of(name: str) -> int:
    """Return the step of the checkpoint or kept weights in a file."""
    return int(Path(name).stem.rpartition("-")[2])


def _is_file_of_ours(name: str) -> bool:
    return bool(CHECKPOINT_NAME.match(name) or WEIGHTS_NAME.match(name))
