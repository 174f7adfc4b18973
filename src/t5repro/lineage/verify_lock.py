"""Checks a working tree against `dvc.lock` and `data.dvc`, and the lock against `dvc.yaml`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml import YAMLError

from t5repro.errors import ArtifactError
from t5repro.files import read_file
from t5repro.lineage.dvc_cache import folder_files
from t5repro.lineage.dvc_lock import (
    LOCK_FILE,
    PIPELINE_FILE,
    Lock,
    LockedStage,
    TrackedPath,
    folder_md5,
    parse_yaml,
)
from t5repro.lineage.findings import (
    ALTERED,
    CONTRADICTED,
    DRIFTED,
    EXTRA,
    MISSING,
    Finding,
    are_lookalikes,
    differing,
)
from t5repro.lineage.graph import Graph
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.record_index import Index, index_path
from t5repro.lineage.store import files_below
from t5repro.lineage.verify_committed import Committed
from t5repro.lineage.verify_withdrawn import cure_of_raw

FETCH = "data_fetch"  # the rule that writes the raw files, which have no stage


@dataclass(frozen=True)
class TrackedFolder:
    """A tracked folder as it is now.

    Attributes:
        tracked: its entry.
        hashes: relative path -> MD5 of its files.
        md5: DVC's hash of it.
    """

    tracked: TrackedPath
    hashes: Mapping[str, str]
    md5: str

    @property
    def as_locked(self) -> bool:
        """Whether no file in it was altered, added or removed."""
        return self.md5 == self.tracked.md5


def tracked_folders(root: Path, lock: Lock, hasher: Hasher) -> list[TrackedFolder]:
    """Return every tracked folder as it is now."""
    folders = []
    for tracked in lock.cached_outputs:
        if tracked.is_folder:
            hashes = folder_hashes(root, tracked.path, hasher)
            folders.append(TrackedFolder(tracked, hashes, folder_md5(hashes)))
    return folders


def check_lock(
    root: Path,
    lock: Lock,
    folders: list[TrackedFolder],
    hasher: Hasher,
    graph: Graph,
    indexes: Mapping[str, Index],
) -> Iterator[Finding]:
    """Check every tracked file and folder; a lock that index and folder contradict is blamed."""
    writers = {artifact.path: name for name, job in graph.jobs.items() for artifact in job.outputs}
    # Run indexes repeat the hashes of folders: of three facts the odd one out is blamed.
    sealed = {
        stage: (entry.md5, index_path(run))
        for run, index in indexes.items()
        for stage, entry in index.items()
    }
    for folder in folders:
        md5, index = sealed.get(folder.tracked.stage or FETCH, ("", ""))
        if md5 and md5 != folder.tracked.md5:
            yield _unlike_index(folder, md5, index)
        # A hash that differs in a few digits was edited by hand; no other file has it by chance.
        if are_lookalikes(folder.md5, folder.tracked.md5):
            yield _altered_digits(folder)
        # A folder that agrees with its index is not to blame: the lock is, and was named above.
        elif not folder.as_locked and folder.md5 != md5:
            yield from _check_folder(root, folder, writers)
    for tracked in lock.cached_outputs:
        if tracked.is_folder:
            continue
        actual = hasher.md5(tracked.path)
        job = writers.get(tracked.path, tracked.stage)
        # A folder under the name of a file has no hash of its own to compare.
        if (root / tracked.path).is_dir():
            message = f"its hash of {tracked.path} is of a file, not of a folder; restore it"
            yield Finding(ALTERED, tracked.source, tracked.stage, f"{message} with git checkout")
        elif actual is None:
            message = f"{tracked.source} tracks it; {_cure(root, tracked)}"
            yield Finding(MISSING, tracked.path, job, message)
        elif actual != tracked.md5:
            actual_digits, locked = differing(actual, tracked.md5)
            message = (
                f"md5 {actual_digits}, {tracked.source} says {locked}; {_cure(root, tracked)}"
                + (", or seal the results of a run" if tracked.stage else "")
            )
            yield Finding(ALTERED, tracked.path, job, message)


def _cure(root: Path, tracked: TrackedPath) -> str:
    cure = "run dvc checkout"
    return cure if tracked.stage else cure_of_raw(root, cure)


def _unlike_index(folder: TrackedFolder, md5: str, index: str) -> Finding:
    """Return a finding about the lock or the index, whichever the folder contradicts."""
    tracked = folder.tracked
    locked, sealed = differing(tracked.md5, md5)
    message = f"md5 of {tracked.path} is {locked} in {tracked.source} and {sealed} in {index}; "
    if folder.as_locked:
        return Finding(
            CONTRADICTED,
            index,
            tracked.stage,
            message
            + "the folder is as locked; restore the index with git checkout, or run t5repro seal",
        )
    return Finding(
        CONTRADICTED,
        tracked.source,
        tracked.stage,
        message + f"restore {tracked.source} with git checkout, or run t5repro seal",
    )


def _altered_digits(folder: TrackedFolder) -> Finding:
    """Return a finding about a lock that has the hash of the folder but for a few digits."""
    tracked = folder.tracked
    locked, actual = differing(tracked.md5, folder.md5)
    message = (
        f"says md5 {locked} of {tracked.path}, which is {actual}; restore it with git checkout"
    )
    return Finding(ALTERED, tracked.source, tracked.stage, message)


def _check_folder(
    root: Path, folder: TrackedFolder, writers: Mapping[str, str]
) -> Iterator[Finding]:
    """Name the files of a folder that are not as locked, by its file list in DVC's cache."""
    tracked, actual = folder.tracked, folder.hashes
    cure = _cure(root, tracked)
    try:
        expected = folder_files(root, tracked)
    except ArtifactError as error:
        if not actual:
            message = f"{tracked.source} tracks it: {error}"
            yield Finding(MISSING, tracked.path, tracked.stage, message)
            return
        # Without its list in the cache the folder is known to differ, but not in which file.
        message = f"its hash is not the one in {tracked.source}; to name the file: {error}"
        yield Finding(ALTERED, tracked.path, tracked.stage, message)
        return
    # Both sides: a file may be missing, unknown or altered.
    for name in sorted(actual.keys() | expected.keys()):
        path = f"{tracked.path}/{name}"
        job = writers.get(path, tracked.stage)
        if name not in actual:
            yield Finding(MISSING, path, job, f"{tracked.source} tracks it; {cure}")
        elif name not in expected:
            yield Finding(EXTRA, path, job, f"{tracked.source} does not track it; delete it")
        elif actual[name] != expected[name]:
            actual_digits, locked = differing(actual[name], expected[name])
            message = f"md5 {actual_digits}, {tracked.source} says {locked}; {cure}"
            yield Finding(ALTERED, path, job, message)


def folder_hashes(root: Path, folder: str, hasher: Hasher) -> dict[str, str]:
    """Return relative path -> MD5 of the files in a folder of the checkout."""
    hashes = {}
    for path in files_below(root / folder):
        name = Path(path).relative_to(root).as_posix()
        if (md5 := hasher.md5(name)) is not None:
            hashes[name.removeprefix(f"{folder}/")] = md5
    return hashes


def check_pipeline(root: Path, lock: Lock, committed: Committed) -> Iterator[Finding]:
    """Check `dvc.yaml` against the stages in `dvc.lock`."""
    if not lock.stages:
        return
    path = root / PIPELINE_FILE
    if not path.exists():
        message = f"{LOCK_FILE} has stages of it; restore it with git checkout"
        yield Finding(MISSING, PIPELINE_FILE, "", message)
        return
    try:
        stages = parse_yaml(read_file(path))["stages"]
        shapes = {name: _pipeline_shape(entry) for name, entry in stages.items()}
    # Anybody may have edited it, so any shape of its content is possible.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, YAMLError) as error:
        message = f"not in DVC's format ({error}); generate it again"
        yield Finding(ALTERED, PIPELINE_FILE, "", message)
        return
    # Of the two, the one that is not as committed was altered.
    altered = LOCK_FILE if committed.attests(PIPELINE_FILE, LOCK_FILE) else PIPELINE_FILE
    unaltered = PIPELINE_FILE if altered == LOCK_FILE else LOCK_FILE
    cure = {
        PIPELINE_FILE: "generate it again, or run the stage",
        LOCK_FILE: "restore it with git checkout, or seal the results of a run",
    }[altered]
    for name, entry in lock.stages.items():
        if name not in shapes:
            message = f"{LOCK_FILE} has a stage {name} that {PIPELINE_FILE} lacks; {cure}"
            yield Finding(DRIFTED, altered, name, message)
        elif shapes[name] != _locked_shape(entry):
            message = f"command, inputs or outputs of stage {name} differ from {unaltered}; {cure}"
            yield Finding(DRIFTED, altered, name, message)


Shape = tuple[str, list[str], list[str]]  # command, dependencies and outputs of a stage


def _locked_shape(entry: LockedStage) -> Shape:
    return str(entry.cmd).strip(), sorted(entry.deps), sorted(entry.outs)


def _pipeline_shape(entry: Mapping[str, Any]) -> Shape:
    # The lock does not tell metrics and plots from other outputs.
    outputs = (output for kind in ("outs", "metrics", "plots") for output in entry.get(kind, []))
    return (
        str(entry.get("cmd", "")).strip(),
        sorted(_path_of(dep) for dep in entry.get("deps", [])),
        sorted(_path_of(output) for output in outputs),
    )


def _path_of(entry: Any) -> str:
    """Return the path of a dependency or output, which is a text or a mapping from it to flags."""
    return str(next(iter(entry))) if isinstance(entry, Mapping) else str(entry)
