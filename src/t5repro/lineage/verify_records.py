"""Checks records: each against the index of its run, each field against what else attests it.

| field | attested by |
|---|---|
| run, rule, node | the path of the record |
| settings, seeds | the manifest; `dvc.lock` |
| commit, code, package locks | git, if the tree was clean |
| hashes of the code's syntax trees | `dvc.lock` |
| inputs, outputs | the manifest, and the manifests of the jobs that wrote the inputs |
| numbers | counters of the manifest, and scores |
| libraries | the package locks at the commit |
| times | each other, and the time of the commit |

Processor, devices and the exact times are attested by a signature only (`signatures`).
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime

from t5repro.artifacts import SCORES
from t5repro.errors import ArtifactError
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.facts import (
    Difference,
    JobFacts,
    differences,
    facts_of_lock,
    facts_of_manifest,
    facts_of_record,
)
from t5repro.lineage.findings import CONTRADICTED, UNCOMMITTED, UNLOCKED, Finding
from t5repro.lineage.graph import Graph, Job
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.record import RESTORE, Record, numbers_in, record_of_job, seeds_in
from t5repro.lineage.record_index import stage_of_path, stages_by_folder
from t5repro.lineage.redaction import HIDDEN_PREFIX
from t5repro.lineage.sealed_records import RESEAL, RecordCheck
from t5repro.lineage.store import RECORDS, Store
from t5repro.strict_json import parse_json

MAX_FAULTS_SHOWN = 3
CLOCK_SECONDS = 60.0  # by which a clock may be corrected while a job runs
CURE = f"{RESTORE}, or rerun the job"


def check_fields(
    store: Store,
    graph: Graph,
    lock: Lock,
    check: RecordCheck,
    altered_manifests: Collection[str],
    unlike_lock: Collection[str],
    hasher: Hasher | None = None,
) -> Iterator[Finding]:
    """Report fields of records that contradict what else attests them, one finding per record.

    Args:
        store: the state.
        graph: its jobs.
        lock: of the state.
        check: its records; altered ones are reported already.
        altered_manifests: paths of manifests that attest nothing.
        unlike_lock: folders that differ from the lock, which then attests nothing of their jobs.
        hasher: of the checkout, for inputs that no job wrote; None for a revision.
    """
    folders = stages_by_folder(lock)
    lost_commits = _lost_commits(check)
    # Altered records are reported against the index already; their fields prove nothing.
    for name, record in check.intact.items():
        job = graph.jobs.get(name)
        path = record_of_job(name)
        faults = [*_faults_of_path(name, record), *_faults_of_times(record)]
        if check.commits and record.start.commit not in lost_commits:
            faults += check.commits.faults(record)
        if job is not None:
            facts, manifest_facts = facts_of_record(record), facts_of_manifest(job)
            faults += _faults_of_state(record)
            # Else an intact record would be blamed for a manifest that somebody edited.
            if job.manifest not in altered_manifests:
                faults += _unlike_manifest(job, record, facts, manifest_facts, graph, hasher)
                faults += _unlike_numbers(job, facts, manifest_facts, store)
            stage = stage_of_path(job.manifest, folders)
            if stage and not any(job.manifest.startswith(f"{folder}/") for folder in unlike_lock):
                locked = facts_of_lock(lock.stages[stage], stage)
                own, of_lock = _unlike_lock(facts, manifest_facts, locked, hasher)
                faults += own
                if of_lock:
                    message = f"stage {stage}: {shortened(of_lock)}; {RESEAL}"
                    yield Finding(CONTRADICTED, LOCK_FILE, name, message)
        # One finding per record: a forged one would otherwise fill the terminal.
        if faults:
            yield Finding(CONTRADICTED, path, name, f"{shortened(faults)}; {CURE}")
        for library, version, versions in check.commits.unlocked(record) if check.commits else ():
            message = f"{name} ran with {library} {version}; the package locks have {versions}"
            yield Finding(UNLOCKED, path, name, message)
    yield from _check_history(check)
    for commit, jobs in lost_commits.items():
        message = (
            f"{len(jobs)} records name commit {commit[:12]}, which is not in this repository: "
            "forged, never pushed (git fetch --all), or of the repository that this copy of the "
            "project was taken from; verify a clone of that one, or rerun the jobs"
        )
        yield Finding(CONTRADICTED, record_of_job(jobs[0]), jobs[0], message)


def _lost_commits(check: RecordCheck) -> dict[str, list[str]]:
    """Return commit -> its jobs, of the commits that git lacks and several records name."""
    jobs: dict[str, list[str]] = {}
    for name, record in check.intact.items():
        if check.commits and check.commits.is_missing(record):
            jobs.setdefault(str(record.start.commit), []).append(name)
    return {commit: names for commit, names in jobs.items() if len(names) > 1}


def _check_history(check: RecordCheck) -> Iterator[Finding]:
    """Warn of records with commits that no clone of this history has."""
    outside = check.commits.outside if check.commits else frozenset()
    jobs = [name for name, record in check.intact.items() if record.start.commit in outside]
    if jobs:
        message = (
            f"{len(jobs)} name commits outside the history of HEAD, {', '.join(sorted(outside))}: "
            "it was rewritten, or the jobs ran on another branch; a tag on each keeps them"
        )
        yield Finding(UNCOMMITTED, RECORDS, jobs[0], message)


def shortened(faults: list[str]) -> str:
    """Return some faults as one text."""
    more = len(faults) - MAX_FAULTS_SHOWN
    return "; ".join([*faults[:MAX_FAULTS_SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _faults_of_path(name: str, record: Record) -> Iterator[str]:
    # The log, and so the record, of a job of `tasks_glue_cola` is named by the rule of the table.
    if record.job != name:
        yield f"says it is of {record.job}"


def _faults_of_times(record: Record) -> Iterator[str]:
    start = _time(record.start.at)
    if start is None:
        yield f"starts at {record.start.at!r}, which is no time"
    if record.start.attempt < 1:
        yield f"attempt {record.start.attempt}"
    if record.end is None or start is None:
        return
    end = _time(record.end.at)
    if end is None:
        yield f"ends at {record.end.at!r}, which is no time"
        return
    span = (end - start).total_seconds()
    # The seconds are of a monotonic clock, the times of one that may be corrected meanwhile.
    if span < 0 or not 0 <= record.end.seconds <= span + CLOCK_SECONDS:
        yield f"{record.end.seconds} s from {record.start.at} to {record.end.at}"
    if (record.end.cpu_seconds or 0) < 0:
        yield f"{record.end.cpu_seconds} s of processor time"


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def _faults_of_state(record: Record) -> Iterator[str]:
    """Yield why a job that a manifest is of cannot have written it."""
    if record.end is None:
        yield "has no end: the job was killed, or its end was removed"
    elif not record.end.ok or record.end.error:
        yield f"the job failed ({record.end.error or 'ok is false'}), but its manifest is there"
    elif record.end.code_changed:
        yield f"code changed while the job ran: {', '.join(record.end.code_changed[:2])}"
    if not record.start.code:
        yield "names no source file"
    elif unread := sorted((record.start.closure or {}).keys() - record.start.code.keys()):
        yield f"reached code in {unread[0]}, which it did not run"


def _unlike_manifest(
    job: Job,
    record: Record,
    facts: JobFacts,
    manifest_facts: JobFacts,
    graph: Graph,
    hasher: Hasher | None,
) -> Iterator[str]:
    """Yield the settings and files that a record and the manifest of its job tell differently."""
    seeds = dict(seeds_in(record.start.settings))
    if record.start.seeds != seeds:
        yield f"seeds {record.start.seeds}, its settings have {seeds}"
    files = (*record.end.inputs, *record.end.outputs) if record.end and record.end.ok else ()
    # A file outside the checkout is recorded by a hash of its folder.
    is_hidden = any(file.path.startswith(HIDDEN_PREFIX) for file in files)
    compared = ("settings", "inputs", "outputs") if files else ("settings",)
    for difference in differences(facts, manifest_facts, *compared):
        is_file = difference.fact != "settings"
        if is_file and is_hidden and None in (difference.first, difference.second):
            continue
        if difference.fact == "inputs" and difference.second is None:
            yield from _unlike_writer(difference, graph, hasher)
        else:
            yield difference.text("here", "in the manifest")
    sizes = {artifact.path: artifact.length for artifact in (*job.inputs, *job.outputs)}
    for file in files:
        if (size := sizes.get(file.path, file.bytes)) != file.bytes:
            yield f"{file.path} has {file.bytes} bytes here, {size} in the manifest"


def _unlike_writer(difference: Difference, graph: Graph, hasher: Hasher | None) -> Iterator[str]:
    """Compare an input that the manifest does not list with its writer, else with the checkout."""
    # A rule may read files that its manifest names only by the manifest of their job.
    writer_hashes = {output.sha256 for output in graph.by_path.get(difference.name, ())}
    if not writer_hashes and hasher is not None and (actual := hasher.sha256(difference.name)):
        writer_hashes = {actual}
    if writer_hashes and difference.first not in writer_hashes:
        yield replace(difference, second=min(writer_hashes)).text("here", "by its writer")


def _unlike_numbers(
    job: Job, facts: JobFacts, manifest_facts: JobFacts, store: Store
) -> Iterator[str]:
    """Yield the first number that a record and the files of its job tell differently."""
    numbers = dict(manifest_facts.numbers or {})
    for output in job.outputs:
        if output.path.rsplit("/", 1)[-1] != SCORES:
            continue
        try:
            data = store.read(output.path)
            # Numbers of an altered file would blame the record.
            if hashlib.sha256(data).hexdigest() != output.sha256:
                return  # reported as altered
            numbers |= numbers_in({"tasks": parse_json(data).get("tasks", {})})
        except (ArtifactError, ValueError, AttributeError):
            return
    for difference in differences(facts, replace(manifest_facts, numbers=numbers), "numbers")[:1]:
        yield difference.text("here", "in its files")


def _unlike_lock(
    facts: JobFacts, manifest_facts: JobFacts, locked: JobFacts, hasher: Hasher | None
) -> tuple[list[str], list[str]]:
    """Return how a record, and how the entry of a stage in the lock, contradicts the other.

    The lock is to blame if manifest or code agree with the record.
    """
    own: list[str] = []
    of_lock: list[str] = []
    unlike_manifest = {
        difference.name for difference in differences(manifest_facts, locked, "settings")
    }
    for difference in differences(facts, locked, "settings"):
        if difference.second is None:  # a setting that DVC does not track
            continue
        is_of_lock = difference.name in unlike_manifest
        (of_lock if is_of_lock else own).append(difference.text("in the record", f"in {LOCK_FILE}"))
    for difference in differences(facts, locked, "locked_code"):
        md5 = difference.first
        if None not in (md5, difference.second) and (
            hasher is None or hasher.md5(difference.name) != md5
        ):
            own.append(difference.text("in the record", f"in {LOCK_FILE}"))
    return own, of_lock
