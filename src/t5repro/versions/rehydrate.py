"""Tell Snakemake what is up to date after DVC or git brought the files.

Snakemake believes its own notes in `.snakemake/metadata`; a clone has none, an older revision has
the newer run's. For every stage that is just as `dvc.lock` says, the notes are written anew with
the hashes of its inputs. No file of the project is touched. Stages that differ get no note, so
Snakemake judges them itself.

`rehydrate_if_needed` is what the Snakefile calls: it costs a look at file dates unless something
else than a job changed a stage's folder.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import read_json, write_json
from t5repro.versions import dvc_pipeline
from t5repro.versions.lockfile import LOCK, Hasher, Locked, read_lock
from t5repro.versions.snakemake_graph import (
    NOT_STAGES,
    PLANNING,
    RUN_FILE,
    planned,
    stage_name,
    stages_of,
)

KNOWN = Path(".snakemake/t5repro-known.json")
SNAKEMAKE_RECORD_FORMAT = 6


def rehydrate(run_file: Path = RUN_FILE) -> list[str]:
    """Write Snakemake's notes for every stage that is as locked; return their names.

    Raises:
        ArtifactError: this Snakemake keeps notes in a form that is not known here.
    """
    lock, clean = read_lock(), clean_stages()
    with planned(run_file) as workflow:
        _check_format()
        names = {stage.name for stage in stages_of(workflow)} & clean
        hasher = Hasher()
        for job in workflow.dag.jobs:
            if job.rule.name not in NOT_STAGES and stage_name(job) in names:
                _write_note(workflow.persistence, job, lock[stage_name(job)], hasher)
    remember(lock, names)
    return sorted(names)


def clean_stages() -> set[str]:
    """Return the stages whose command, settings, inputs, code and outputs are as locked."""
    from dvc.repo import Repo

    with Repo() as repo:
        changed = repo.status()
        return {stage.name for stage in repo.index.stages if hasattr(stage, "name")} - set(changed)


def _check_format() -> None:
    from snakemake.persistence import RECORD_FORMAT_VERSION

    if RECORD_FORMAT_VERSION != SNAKEMAKE_RECORD_FORMAT:
        raise ArtifactError(
            f"Snakemake's notes have format {RECORD_FORMAT_VERSION}, known is "
            f"{SNAKEMAKE_RECORD_FORMAT}; install the version in pyproject.toml"
        )


def _write_note(persistence: Any, job: Any, locked: Locked, hasher: Hasher) -> None:
    """Write what Snakemake itself would have noted after running this job."""
    from snakemake.persistence import MetadataRecord

    checksums = {}
    for path in map(str, job.input):
        known = locked.deps.get(path)
        if known is None and (found := hasher.of(path)):
            known = found.md5
        if known is not None:
            checksums[path] = f"md5:{known}"
    for output in job.output:
        when = Path(output).stat().st_mtime
        note = MetadataRecord(
            rule=job.rule.name,
            input=persistence._input(job),
            log=persistence._log(job),
            shellcmd=job.shellcmd,
            params=persistence._params(job),
            code=persistence._code(job.rule),
            record_format_version=SNAKEMAKE_RECORD_FORMAT,
            conda_env=persistence._conda_env(job),
            container_img_url=job.container_img_url,
            software_stack_hash=persistence._software_stack_hash(job),
            job_hash=hash(job),
            starttime=when,
            endtime=when,
            incomplete=False,
            input_checksums=checksums,
        )
        key = persistence._get_key(output)
        persistence._write_record(key, note)
        persistence._unmark_incomplete(key)


def rehydrate_if_needed() -> None:
    """Rehydrate if DVC or git changed a stage's folder since it was last looked at."""
    if PLANNING in os.environ or "DVC_STAGE" in os.environ or not LOCK.is_file():
        return
    if not needed(read_lock()):
        return
    environment = {**os.environ, PLANNING: "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "t5repro", "rehydrate", "--run-file", str(versioned_run_file())],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        print(f"not rehydrated: {ran.stderr.strip()}", file=sys.stderr)


def versioned_run_file() -> Path | None:
    """Return the run file that `dvc.yaml` was made for; None without `dvc.yaml`."""
    if not dvc_pipeline.PIPELINE.is_file():
        return None
    return Path(dvc_pipeline.read_pipeline()["stages"][dvc_pipeline.SETTINGS_STAGE]["deps"][0])


def needed(lock: dict[str, Locked]) -> bool:
    """Tell whether a stage's folder or lock entry changed since they were last compared."""
    known = read_json(KNOWN) if KNOWN.is_file() else {}
    for name, locked in lock.items():
        if not any(Path(folder).is_dir() for folder in locked.outs):
            continue
        was = known.get(name, {})
        if was.get("clean") and was["outs"] == _look(locked, locked.outs):
            continue
        if was.get("outs") != _look(locked, locked.outs) or was["deps"] != _look(
            locked, locked.deps
        ):
            return True
    return False


def remember(lock: dict[str, Locked], clean: Iterable[str]) -> None:
    """Note how folders and inputs look now, and which stages are as locked."""
    clean = set(clean)
    write_json(
        KNOWN,
        {
            name: {
                "clean": name in clean,
                "outs": _look(locked, locked.outs),
                "deps": _look(locked, locked.deps),
            }
            for name, locked in lock.items()
        },
    )


def _look(locked: Locked, paths: Iterable[str]) -> str:
    """Return a hash of a lock entry and of the sizes and dates of files."""
    seen: list[Any] = [repr(locked)]
    for name in sorted(paths):
        place = Path(name)
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in files:
            if path.is_file():
                facts = path.stat()
                seen.append((path.as_posix(), facts.st_size, facts.st_mtime_ns))
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()
