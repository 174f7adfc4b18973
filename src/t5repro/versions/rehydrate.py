"""Writes Snakemake's metadata for stages that DVC or git has restored.

Snakemake decides by its own metadata in `.snakemake/metadata` what is up to date. A clone has none,
and after `git checkout` it describes a newer run. For every stage that agrees with `dvc.lock`, the
metadata is written again with the hashes of its inputs. Files of the project are not changed.
A stage with outputs as locked, but not its code, settings or inputs, gets metadata with
other parameters, so Snakemake runs it again: without metadata it would compare the times of files,
which in a clone say nothing. Other stages get none, and Snakemake decides by itself.

`rehydrate_if_needed` is called by the Snakefile: it compares file times only, unless anything but a
job changed the folder of a stage.
"""

import base64
import binascii
import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError
from t5repro.files import read_json, write_json
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock, LockedStage, read_lock
from t5repro.lineage.facts import JobFacts, differences, facts_of_lock, settings_of_params
from t5repro.lineage.hashes import Hasher
from t5repro.plan.run_plan import RunPlan
from t5repro.versions import dvc_pipeline
from t5repro.versions.snakemake_graph import (
    PLANNING,
    RUN_FILE,
    UNVERSIONED_RULES,
    PlannedStage,
    planned,
    stage_name,
    stages_of_plan,
)

SNAPSHOT = Path(".snakemake/t5repro-known.json")
METADATA = Path(".snakemake/metadata")  # of each output a file; its name is the path in base 64
SNAKEMAKE_RECORD_FORMAT = 6
STALE = "another code, setting or input than in dvc.lock"  # in place of the parameters


def rehydrate(run_file: Path = RUN_FILE) -> list[str]:
    """Write Snakemake's metadata for the stages with locked outputs; return those that agree.

    Raises:
        ArtifactError: this version of Snakemake has another format of metadata.
    """
    lock, (clean, stale) = read_lock(), stages_with_locked_outputs()
    plan = RunPlan.of_run_file(run_file)
    settings, stages = plan.settings, stages_of_plan(plan)
    with planned(run_file) as workflow:
        _check_format()
        names = {
            stage.name
            for stage in stages
            if stage.name in clean and _has_locked_settings(settings, stage, lock)
        }
        stale |= clean - names
        hasher, persistence = Hasher(deep=True), workflow.persistence
        for job in workflow.dag.jobs:
            name = "" if job.rule.name in UNVERSIONED_RULES else stage_name(job)
            if name in names or (name in stale and not _is_current(persistence, job, hasher)):
                params = persistence._params(job) if name in names else [STALE]
                _write_metadata(persistence, job, lock.stages[name], hasher, params)
    save_snapshot(lock, names, stages)
    return sorted(names)


def stages_with_locked_outputs() -> tuple[set[str], set[str]]:
    """Return the stages that are as locked, and the stages with only their outputs as locked."""
    from dvc.repo import Repo

    with Repo() as repo:
        changes = repo.status()
        clean = {stage.name for stage in repo.index.stages if hasattr(stage, "name")} - set(changes)
    stale = {
        name
        for name, differences in changes.items()
        if not any("changed outs" in difference for difference in differences)
    }
    return clean, stale


def _has_locked_settings(settings: Settings, stage: PlannedStage, lock: Lock) -> bool:
    """Return whether a stage's settings are as locked.

    DVC compares `configs/resolved`, which an edit of the run file changes only with the next
    `dvc repro` or seal. Metadata for the edited settings would hide the edit from Snakemake.
    """
    current = JobFacts(settings=settings_of_params(dvc_pipeline.leaves_of(settings, stage)))
    return not differences(facts_of_lock(lock.stages[stage.name], stage.name), current, "settings")


def _is_current(persistence: Any, job: Any, hasher: Hasher) -> bool:
    """Return whether Snakemake ran a job here with the present code and parameters."""
    code = str(job.input.get("code"))
    hashes = hasher.of(code)
    current = {f"md5:{hashes.md5}", f"sha256:{hashes.sha256}"} if hashes else set()
    return (
        persistence.input_checksums(job, code) <= current
        and persistence.has_metadata(job)
        and not persistence.params_changed(job)
    )


def _check_format() -> None:
    from snakemake.persistence import RECORD_FORMAT_VERSION

    if RECORD_FORMAT_VERSION != SNAKEMAKE_RECORD_FORMAT:
        raise ArtifactError(
            f"Snakemake's metadata has format {RECORD_FORMAT_VERSION}, supported is "
            f"{SNAKEMAKE_RECORD_FORMAT}; install the version in pyproject.toml"
        )


def _write_metadata(
    persistence: Any, job: Any, locked: LockedStage, hasher: Hasher, params: list[Any]
) -> None:
    """Write the metadata that Snakemake itself writes after running this job.

    It is built by the same private methods, so that Snakemake finds every field equal when it
    compares; there is no public way to write it (upstream issue 2210). `Persistence.finished`
    itself does nothing unless jobs are executed, and would hash every input again.
    """
    from snakemake.persistence import MetadataRecord

    checksums = {}
    for path in map(str, job.input):
        # In the lock a manifest of another stage is a dependency on its folder, so it is hashed.
        md5 = locked.deps.get(path) or hasher.md5(path)
        if md5 is not None:
            checksums[path] = f"md5:{md5}"
    for output in job.output:
        mtime = Path(output).stat().st_mtime
        metadata = MetadataRecord(
            rule=job.rule.name,
            input=persistence._input(job),
            log=persistence._log(job),
            shellcmd=job.shellcmd,
            params=params,
            code=persistence._code(job.rule),
            record_format_version=SNAKEMAKE_RECORD_FORMAT,
            conda_env=persistence._conda_env(job),
            container_img_url=job.container_img_url,
            software_stack_hash=persistence._software_stack_hash(job),
            job_hash=_job_hash(job),
            # As after a run; a later time would make dependents look out of date.
            starttime=mtime,
            endtime=mtime,
            incomplete=False,
            input_checksums=checksums,
        )
        key = persistence._get_key(output)
        persistence._write_record(key, metadata)
        # A run that was killed leaves a mark, which would force the job although the file is whole.
        persistence._unmark_incomplete(key)


def _job_hash(job: Any) -> int:
    """Return a number that the outputs of a job share and no other job has.

    Snakemake's own is the place of the job in memory, with which equal runs write other bytes.
    """
    names = "\n".join(map(str, job.output))
    return int.from_bytes(hashlib.sha256(names.encode()).digest()[:6])


def rehydrate_if_needed() -> None:
    """Rehydrate if DVC or git changed the folder of a stage since the last snapshot."""
    if PLANNING in os.environ or "DVC_STAGE" in os.environ or not Path(LOCK_FILE).is_file():
        return
    if not needed(read_lock()):
        return
    # In a process of its own, because planning inside the Snakefile would recurse.
    versioned = dvc_pipeline.versioned_run() or dvc_pipeline.VersionedRun()
    process = subprocess.run(
        [
            sys.executable,
            "-m",
            "t5repro",
            "dvc",
            "rehydrate",
            "--run-file",
            str(versioned.run_file),
        ],
        env={**os.environ, PLANNING: "1"},
        stdout=subprocess.DEVNULL,  # its errors are shown, and that it waits for a job
        check=False,
    )
    if process.returncode:  # Snakemake may still run; at worst it repeats jobs
        print("not rehydrated: finished jobs may run again", file=sys.stderr)


def needed(lock: Lock) -> bool:
    """Return whether a stage changed since the last snapshot."""
    snapshot = read_json(SNAPSHOT) if SNAPSHOT.is_file() else {}
    for name, locked in lock.stages.items():
        if name == dvc_pipeline.SETTINGS_STAGE:
            continue  # not a rule; Snakemake compares settings and code by itself
        if not any(Path(folder).is_dir() for folder in locked.outs):
            continue
        stage = snapshot.get(name, {})
        if stage.get("outs") != _fingerprint(locked, locked.outs):
            return True
        # The metadata of a clean stage stands for its inputs; Snakemake compares them itself.
        if not stage["clean"] and stage["deps"] != _fingerprint(locked, locked.deps):
            return True
    return False


def save_snapshot(lock: Lock, clean: Iterable[str], stages: Iterable[PlannedStage]) -> None:
    """Save sizes and times of outputs and inputs, and which stages agree with the lock.

    A stage without Snakemake's metadata of every output is left out, so the next plan rehydrates
    it: in a clone whose results were restored, `seal` finds them as locked, and Snakemake knows
    nothing of them.

    Args:
        lock: the lock.
        clean: names of the stages that agree with it.
        stages: the planned ones, which declare their outputs.
    """
    clean_names, recorded = set(clean), _paths_with_metadata()
    declared = {
        stage.name: {path for job in stage.jobs for path in job.outputs} for stage in stages
    }
    snapshot = {
        name: {
            "clean": name in clean_names,
            "outs": _fingerprint(locked, locked.outs),
            "deps": _fingerprint(locked, locked.deps),
        }
        for name, locked in lock.stages.items()
        if _is_known(locked, declared.get(name, ()), recorded)
    }
    write_json(SNAPSHOT, snapshot)


def _is_known(locked: LockedStage, declared: Iterable[str], with_metadata: set[str]) -> bool:
    """Return whether Snakemake has metadata of every output of a stage.

    Of a stage that is not planned only the locked folders or files are known.
    """
    return with_metadata.issuperset(declared) and all(
        any(path == out or path.startswith(f"{out}/") for path in with_metadata)
        for out in locked.outs
    )


def _paths_with_metadata() -> set[str]:
    paths = set()
    for file in METADATA.rglob("*"):
        if not file.is_dir():
            # Snakemake divides a long name into folders that begin with "@".
            parts = (part.removeprefix("@") for part in file.relative_to(METADATA).parts)
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):  # not Snakemake's
                paths.add(base64.urlsafe_b64decode("".join(parts)).decode())
    return paths


def _fingerprint(locked: LockedStage, paths: Iterable[str]) -> str:
    """Return a hash of a lock entry and of the sizes and times of files."""
    facts: list[Any] = [repr(locked)]
    for name in sorted(paths):
        path = Path(name)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                status = file.stat()
                facts.append((file.as_posix(), status.st_size, status.st_mtime_ns))
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
