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
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from t5repro.artifacts import SCORES
from t5repro.errors import ArtifactError
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock, LockedStage
from t5repro.lineage.findings import CONTRADICTED, UNLOCKED, Finding, differing
from t5repro.lineage.graph import DATA, Graph, Job
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.record import Record, RecordedFile, numbers_in, seeds_in
from t5repro.lineage.record_index import stage_of_path, stages_by_folder
from t5repro.lineage.redaction import HIDDEN_PREFIX, same_value
from t5repro.lineage.sealed_records import RESEAL, RecordCheck
from t5repro.lineage.sources import closure_path, closure_text
from t5repro.lineage.store import RECORDS, Store

MAX_FAULTS_SHOWN = 3
CLOCK_SECONDS = 60.0  # by which a clock may be corrected while a job runs
CURE = "restore it with git checkout, or rerun the job"


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
    for name, record in check.records.items():
        if name in check.altered:
            continue
        job = graph.jobs.get(name)
        path = f"{RECORDS}/{name}.json"
        faults = [*_faults_of_path(name, record), *_faults_of_times(record)]
        faults += check.commits.faults(record) if check.commits else []
        if job is not None:
            faults += _faults_of_state(record)
            if job.manifest not in altered_manifests:
                faults += _faults_of_files(job, record, graph, hasher)
                faults += _faults_of_settings(job, record)
                faults += _faults_of_numbers(job, record, store)
            stage = stage_of_path(job.manifest, folders)
            if stage and not any(job.manifest.startswith(f"{folder}/") for folder in unlike_lock):
                own, of_lock = _faults_of_lock(lock.stages[stage], stage, record, job, hasher)
                faults += own
                if of_lock:
                    message = f"stage {stage}: {shortened(of_lock)}; {RESEAL}"
                    yield Finding(CONTRADICTED, LOCK_FILE, name, message)
        if faults:
            yield Finding(CONTRADICTED, path, name, f"{shortened(faults)}; {CURE}")
        for library, version, locked in check.commits.unlocked(record) if check.commits else ():
            message = f"{name} ran with {library} {version}; the package locks have {locked}"
            yield Finding(UNLOCKED, path, name, message)


def shortened(faults: list[str]) -> str:
    """Return some faults as one text."""
    more = len(faults) - MAX_FAULTS_SHOWN
    return "; ".join([*faults[:MAX_FAULTS_SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _faults_of_path(name: str, record: Record) -> Iterator[str]:
    said = "/".join(filter(None, (record.run, record.rule, record.node)))
    # The log, and so the record, of a job of `tasks_glue_cola` is named by the rule of the table.
    if said != name:
        yield f"says it is of {said}"


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
    if span < 0 or not 0 <= record.end.seconds <= span + CLOCK_SECONDS:
        yield f"{record.end.seconds} s from {record.start.at} to {record.end.at}"


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
    elif other := sorted(record.start.closure.keys() - record.start.code.keys()):
        yield f"reached code in {other[0]}, which it did not run"


def _faults_of_files(
    job: Job, record: Record, graph: Graph, hasher: Hasher | None
) -> Iterator[str]:
    if record.end is None or not record.end.ok:
        return
    inputs = {artifact.path: artifact for artifact in job.inputs}
    outputs = {artifact.path: artifact for artifact in job.outputs}
    if job.rule == DATA:  # its manifest lists the raw files as outputs, but the rule reads them
        inputs = {path: file for path, file in outputs.items() if path != job.manifest}
        outputs = {job.manifest: outputs[job.manifest]}
    recorded_inputs = {file.path: file for file in record.end.inputs}
    recorded_outputs = {file.path: file for file in record.end.outputs}
    yield from _unlike_manifest("read", inputs, recorded_inputs)
    yield from _unlike_manifest("wrote", outputs, recorded_outputs)
    for path in sorted(recorded_outputs.keys() - outputs.keys()):
        if not path.startswith(HIDDEN_PREFIX):
            yield f"wrote {path}, which its manifest does not list"
    for path in sorted(recorded_inputs.keys() - inputs.keys()):
        written = {output.sha256 for output in graph.by_path.get(path, ())}
        if not written and hasher is not None and (actual := hasher.sha256(path)) is not None:
            written = {actual}
        if written and (sha256 := recorded_inputs[path].sha256) not in written:
            said, other = differing(sha256, min(written))
            yield f"read {path} {said}, which is {other}"


def _unlike_manifest(
    verb: str, listed: Mapping[str, Any], recorded: Mapping[str, RecordedFile]
) -> Iterator[str]:
    hidden = any(path.startswith(HIDDEN_PREFIX) for path in recorded)
    for path, artifact in listed.items():
        file = recorded.get(path)
        if file is None:
            if not hidden:  # a file outside the checkout is recorded by a hash of its folder
                yield f"does not say that it {verb} {path}"
        elif file.sha256 != artifact.sha256:
            said, other = differing(file.sha256, artifact.sha256)
            yield f"{verb} {path} {said}, the manifest says {other}"
        elif file.bytes != artifact.length:
            yield f"{verb} {file.bytes} bytes of {path}, the manifest says {artifact.length}"


def _faults_of_settings(job: Job, record: Record) -> Iterator[str]:
    settings, listed = record.start.settings, received_settings(job)
    if not same_value(settings, listed):
        name = _first_difference(settings, listed)
        yield f"setting {name} is not the one in the manifest"
    if record.start.seeds != dict(seeds_in(settings)):
        yield f"seeds {record.start.seeds}, its settings have {dict(seeds_in(settings))}"


def received_settings(job: Job) -> Mapping[str, Any]:
    """Return the settings in a manifest, without the defaults that the job did not receive."""
    if job.rule != "report":
        return job.settings
    from t5repro.config.stage_settings import received  # imports all settings, which takes longer

    try:
        return received(job.rule, dict(job.settings))
    except (KeyError, TypeError, AttributeError):  # an altered manifest
        return job.settings


def _first_difference(recorded: Any, value: Any, prefix: str = "") -> str:
    """Return the dotted name of the first setting that differs."""
    if not (isinstance(recorded, Mapping) and isinstance(value, Mapping)):
        return prefix
    for name in sorted(recorded.keys() | value.keys()):
        dotted = f"{prefix}.{name}" if prefix else str(name)
        if name not in recorded or name not in value:
            return dotted
        if not same_value(recorded[name], value[name]):
            return _first_difference(recorded[name], value[name], dotted)
    return prefix


def _faults_of_numbers(job: Job, record: Record, store: Store) -> Iterator[str]:
    if record.end is None or not record.end.ok:
        return
    expected = dict(numbers_in(job.counters))
    for output in job.outputs:
        if output.path.rsplit("/", 1)[-1] != SCORES:
            continue
        try:
            data = store.read(output.path)
            if hashlib.sha256(data).hexdigest() != output.sha256:
                return  # reported as altered
            expected |= numbers_in({"tasks": json.loads(data).get("tasks", {})})
        except (ArtifactError, ValueError, AttributeError):
            return
    numbers = record.end.numbers
    for name in sorted(numbers.keys() | expected.keys()):
        if str(numbers.get(name)) != str(expected.get(name)) and numbers.get(name) != expected.get(
            name
        ):
            yield f"{name} is {numbers.get(name)}, its files say {expected.get(name)}"
            return


def _faults_of_lock(
    stage: LockedStage, name: str, record: Record, job: Job, hasher: Hasher | None
) -> tuple[list[str], list[str]]:
    """Return how a record, and how the entry of a stage in the lock, contradicts the other.

    The lock is to blame if manifest or code agree with the record.
    """
    own, of_lock = [], []
    for leaf, value in stage.params.items():
        dotted = leaf.removeprefix(f"{name}.")
        if _same_leaf(_leaf(record.start.settings, dotted), value):
            continue
        if _same_leaf(_leaf(job.settings, dotted), value):
            own.append(f"setting {dotted} is not the one in {LOCK_FILE}")
        else:
            of_lock.append(f"setting {dotted} is not the one that {job.name} recorded")
    code = closure_path(record.rule).as_posix()
    if code in stage.deps:
        text = closure_text(dict(sorted(record.start.closure.items())))
        md5 = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        if md5 != stage.deps[code] and (hasher is None or hasher.md5(code) != md5):
            own.append(f"code is not {code} of {LOCK_FILE}")
    return own, of_lock


def _leaf(values: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        if not isinstance(values, Mapping) or name not in values:
            return None
        values = values[name]
    return values


def _same_leaf(recorded: Any, value: Any) -> bool:
    """Compare a setting with `dvc.lock`, where lists and mappings are JSON text."""
    if isinstance(recorded, list | dict) or recorded is None:
        try:
            return same_value(recorded, json.loads(value))
        except (TypeError, ValueError):
            return False
    return same_value(recorded, value)
