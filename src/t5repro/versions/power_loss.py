"""After a loss of power the next run moves damaged results aside and builds them again.

Files are flushed before they get their names, but not every disk does what it is told: the newest
may be empty, cut, or full of zeros. A run notes when it begins, and in which boot of the machine;
it deletes the note when all is on the disk. A run that finds the note of another boot compares
everything written since then with the manifests, and records with their format.
"""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST
from t5repro.errors import ArtifactError
from t5repro.files import read_json, write_json
from t5repro.lineage.graph import DATA, job_name
from t5repro.lineage.input_hashes import differing_files, manifest_of, written_files
from t5repro.lineage.record import read_record, record_of_job
from t5repro.lineage.run_lock import run_lock
from t5repro.lineage.store import RESULTS, files_below
from t5repro.progress import announce

NOTE = Path(".snakemake/t5repro.boot.json")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
DAMAGED = Path("work/damaged")
CLOCK_SECONDS = 60.0  # by which file times may be before that of the note
MAX_NAMES_SHOWN = 3


def note_begin() -> None:
    """Note that a run writes results, unless an earlier run has noted so in this boot."""
    if _is_of_another_boot():
        write_json(NOTE, {"boot": _boot(), "since": time.time()})


def note_end() -> None:
    """Flush everything that the run wrote, and delete the note."""
    os.sync()
    NOTE.unlink(missing_ok=True)


def set_damaged_aside() -> None:
    """Move what a loss of power has damaged to `work/damaged`, so that this run builds it again.

    Raises:
        StorageError: another run is at work.
    """
    if not NOTE.exists() or not _is_of_another_boot():
        return
    with run_lock():
        since = _read_note().get("since", 0.0) - CLOCK_SECONDS
        faults = {job: fault for job in _manifests() if (fault := _fault(job, since))}
        for manifest in faults:
            _move_job(manifest)
        NOTE.unlink()
    if faults:
        shown = [*list(faults.values())[:MAX_NAMES_SHOWN], *["…"][: len(faults) > MAX_NAMES_SHOWN]]
        announce(
            f"after a loss of power {len(faults)} jobs have damaged files ({', '.join(shown)}); "
            f"they are in {DAMAGED}/ now, and this run makes them again"
        )


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:  # not Linux
        return ""


def _read_note() -> Mapping[str, Any]:
    try:
        values = read_json(NOTE)
    except ArtifactError:  # absent, or damaged itself
        return {}
    is_note = isinstance(values, dict) and isinstance(values.get("since"), float)
    return values if is_note else {}


def _is_of_another_boot() -> bool:
    return _boot() != "" and _read_note().get("boot") != _boot()


def _manifests() -> list[Path]:
    return [Path(path) for path in files_below(RESULTS) if path.endswith(MANIFEST)]


def _fault(manifest: Path, since: float) -> str:
    """Return a file of a job that is not as the job wrote it; empty if there is none."""
    files = list(_files_of(manifest))
    if all(path.stat().st_mtime < since for path in files):
        return ""
    job = job_name(manifest.as_posix())
    record = Path(record_of_job(job))
    try:
        files_of_job = list(written_files(manifest))
        if record.is_file():
            read_record(record)
    except (ArtifactError, UnicodeDecodeError):
        return manifest.as_posix()
    if job.split("/")[1] == DATA:
        return ""  # raw files are the user's: their rules name them, or fetch them again
    return next((file.path.as_posix() for file, _ in differing_files(files_of_job)), "")


def _files_of(manifest: Path) -> Iterator[Path]:
    """Yield the files of a job: in its folder, except files of other jobs, and its record."""
    for name in files_below(manifest.parent):
        owner = manifest_of(path := Path(name))
        if owner == manifest or (owner.parent != manifest.parent and not owner.exists()):
            yield path
    record = Path(record_of_job(job_name(manifest.as_posix())))
    if record.is_file():
        yield record


def _move_job(manifest: Path) -> None:
    for path in list(_files_of(manifest)):  # whole before the manifest is away
        target = DAMAGED / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)  # of an earlier loss of power it takes the place
