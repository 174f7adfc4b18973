"""Compares the files of rebuilt jobs with those of the checkout, and with `dvc.lock`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from t5repro.config.reproducibility import EXACT
from t5repro.lineage.dvc_lock import LOCK_FILE, TrackedPath, folder_md5, read_lock
from t5repro.lineage.graph import Job
from t5repro.lineage.hashes import Hasher, hash_file
from t5repro.lineage.tolerance import files_agree, reproducibility_of
from t5repro.lineage.verify_lock import folder_hashes

SAME, WITHIN, DIFFERENT, ABSENT = "same bytes", "within tolerance", "different", "not built"


@dataclass(frozen=True)
class FileOutcome:
    """The comparison of one rebuilt file.

    Attributes:
        path: the file.
        job: the job that writes it.
        promise: how closely the job is repeated, as `reproducibility_of` says.
        result: one of the constants above.
        detail: hashes or distance.
    """

    path: str
    job: str
    promise: str
    result: str
    detail: str

    @property
    def agrees(self) -> bool:
        """Whether the file came out as its stage promises."""
        return self.result in (SAME, WITHIN)


def compare_outputs(root: Path, clone: Path, job: Job) -> Iterator[FileOutcome]:
    """Compare every output of a job with the file in the checkout."""
    promise = reproducibility_of(job)
    for artifact in job.outputs:
        path, rebuilt = artifact.path, clone / artifact.path
        if not rebuilt.is_file():
            message = "the rebuilt job does not write it"
            yield FileOutcome(path, job.name, promise, ABSENT, message)
            continue
        sha256 = hash_file(rebuilt).sha256
        if sha256 == artifact.sha256:
            yield FileOutcome(path, job.name, promise, SAME, sha256[:12])
        # A tolerance needs both files; hashes cannot say how far numbers are apart.
        elif promise != EXACT and (root / path).is_file():
            agrees, distance = files_agree(root / path, rebuilt)
            yield FileOutcome(path, job.name, promise, WITHIN if agrees else DIFFERENT, distance)
        else:
            detail = f"rebuilt {sha256[:12]}, here {artifact.sha256[:12]}"
            yield FileOutcome(path, job.name, promise, DIFFERENT, detail)


def compare_with_lock(root: Path, clone: Path, jobs: Sequence[Job]) -> Iterator[FileOutcome]:
    """Compare the outputs of exact jobs with `dvc.lock`, which may be forged with the results."""
    # A forger of results may have written their hashes into the manifests as well.
    writers: dict[str, str] = {}
    rebuilt: dict[str, str] = {}
    for job in jobs:
        if reproducibility_of(job) == EXACT:
            for artifact in job.outputs:
                if (clone / artifact.path).is_file():
                    writers[artifact.path] = job.name
                    rebuilt[artifact.path] = hash_file(clone / artifact.path).md5
    hasher = Hasher(root)
    for tracked in read_lock(root).outputs:
        path = next((path for path in rebuilt if _contains(tracked, path)), None)
        if path is None:
            continue  # nothing of it was rebuilt
        md5 = _folder_md5(root, tracked, rebuilt, hasher) if tracked.is_folder else rebuilt[path]
        if md5 != tracked.md5:
            detail = f"rebuilt md5 {md5[:12]}, {LOCK_FILE} says {tracked.md5[:12]}"
            yield FileOutcome(tracked.path, writers[path], EXACT, DIFFERENT, detail)


def _contains(tracked: TrackedPath, path: str) -> bool:
    return path == tracked.path or (tracked.is_folder and path.startswith(f"{tracked.path}/"))


def _folder_md5(root: Path, folder: TrackedPath, rebuilt: dict[str, str], hasher: Hasher) -> str:
    """Return the hash of a folder with the rebuilt files in place of those in the checkout."""
    hashes = folder_hashes(root, folder.path, hasher)
    return folder_md5(
        {name: rebuilt.get(f"{folder.path}/{name}", md5) for name, md5 in hashes.items()}
    )
