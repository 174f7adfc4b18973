"""Checks that every file of a working tree agrees with manifests, records and `dvc.lock`.

Each file is checked against all that recorded its hash: the manifest and the record of the job that
wrote it, the manifests of the jobs that read it, and `dvc.lock` or `data.dvc`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yaml import YAMLError

from t5repro.errors import ArtifactError
from t5repro.files import TEMPORARY_PREFIX
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
    CODE,
    DRIFTED,
    EXTRA,
    LINK,
    MISSING,
    UNSEALED,
    Finding,
    Verdict,
    chain_of,
    make_verdict,
)
from t5repro.lineage.graph import DATA, Artifact, Graph, read_jobs, read_records
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.job_code import is_reworded, locked_code, recorded_bytes
from t5repro.lineage.store import RECORDS, RESULTS, Folder, files_below
from t5repro.lineage.verify_other_code import check_other_code


def verify_tree(root: Path, *, deep: bool = False) -> Verdict:
    """Check the working tree.

    Args:
        root: the checkout.
        deep: read every byte, without cached hashes.

    Raises:
        LineageError: `dvc.lock` is not in DVC's format.
    """
    store = Folder(root)
    lock = store.lock()
    faults: list[tuple[str, str]] = []  # an unreadable manifest must not hide other findings
    graph = Graph(read_jobs(store, read_records(store), faults))
    hasher = Hasher(root, deep=deep)
    outputs = recorded_outputs(graph)
    findings = [Finding(ALTERED, path, "", message) for path, message in faults]
    findings += _check_files(graph, outputs, hasher)
    findings += check_links(graph)
    findings += _check_lock(root, lock, hasher, {finding.path for finding in findings}, graph)
    findings += _check_extra(root, outputs, lock)
    findings += _check_records(root)
    findings += _check_record_hashes(graph, hasher)
    findings += _check_recorded_code(root, graph, hasher)
    findings += check_other_code(root, graph)
    findings += _check_locked_code(lock, hasher)
    findings += _check_pipeline(root, lock)
    if not lock.stages:
        message = "absent: manifests without a record cannot be checked; seal the results"
        findings.append(Finding(UNSEALED, LOCK_FILE, "", message))
    hasher.save()
    return make_verdict(findings, graph, len(outputs), hasher.read_files, lock)


def recorded_outputs(graph: Graph) -> dict[str, tuple[Artifact, str]]:
    """Return path -> artifact as its manifest recorded it, and the job that wrote it."""
    outputs: dict[str, tuple[Artifact, str]] = {}
    for job in graph.jobs.values():
        for artifact in job.outputs:
            if artifact.path != job.manifest:
                outputs.setdefault(artifact.path, (artifact, job.name))
    # Manifests come second: a manifest that a job lists as an ordinary output was hashed by it.
    for job in graph.jobs.values():
        outputs.setdefault(job.manifest, (job.outputs[-1], job.name))
    return outputs


def _check_files(
    graph: Graph, outputs: Mapping[str, tuple[Artifact, str]], hasher: Hasher
) -> Iterator[Finding]:
    """Check every output against the manifest of its job."""
    for path, (artifact, job) in outputs.items():
        if path == graph.jobs[job].manifest:
            continue  # it cannot contain its own hash; readers, records and the lock have it
        sha256 = hasher.sha256(path)
        cure = "dvc checkout or a rerun restores it"
        if sha256 is None:
            yield Finding(MISSING, path, job, f"{job} wrote it; {cure}")
        elif sha256 != artifact.sha256:
            message = f"sha256 {sha256[:12]}, {job} wrote {artifact.sha256[:12]}; {cure}"
            yield Finding(ALTERED, path, job, message)


def check_links(graph: Graph) -> Iterator[Finding]:
    """Report inputs that no job wrote: a stage was rerun and a later one was not."""
    has_raw_files = any(job.rule == DATA for job in graph.jobs.values())
    for reader, artifact in graph.broken:
        outputs = [
            output
            for output in graph.by_path.get(artifact.path, ())
            if output.key in graph.producer
        ]
        if outputs:
            writer = graph.producer[outputs[0].key]
            yield Finding(
                LINK,
                artifact.path,
                writer,
                f"{reader} read {artifact.sha256[:12]}, {writer} says {outputs[0].sha256[:12]}; "
                f"rerun {reader}, or one was altered",
            )
        elif has_raw_files:  # without the manifest of `data` every raw file would be reported
            message = f"{reader} read {artifact.sha256[:12]}, which is no output and no raw file"
            yield Finding(LINK, artifact.path, reader, message)


def _check_lock(
    root: Path, lock: Lock, hasher: Hasher, reported_paths: set[str], graph: Graph
) -> Iterator[Finding]:
    """Check every tracked file and folder against `dvc.lock` and `data.dvc`."""
    writers = {artifact.path: name for name, job in graph.jobs.items() for artifact in job.outputs}
    for tracked in lock.cached_outputs:
        if tracked.is_folder:
            yield from _check_folder(root, tracked, hasher, reported_paths, writers)
            continue
        md5 = hasher.md5(tracked.path)
        job = writers.get(tracked.path, tracked.stage)
        if md5 is None:
            message = f"{tracked.source} tracks it; run dvc checkout"
            yield Finding(MISSING, tracked.path, job, message)
        elif md5 != tracked.md5:
            message = (
                f"md5 {md5[:12]}, {tracked.source} says {tracked.md5[:12]}; run dvc checkout, or "
                "seal the results of a run"
            )
            yield Finding(ALTERED, tracked.path, job, message)


def _check_folder(
    root: Path,
    folder: TrackedPath,
    hasher: Hasher,
    reported_paths: set[str],
    writers: Mapping[str, str],
) -> Iterator[Finding]:
    """Check a tracked folder; the cache is read only if its hash differs."""
    actual = folder_hashes(root, folder.path, hasher)
    if folder_md5(actual) == folder.md5:
        return
    try:
        expected = folder_files(root, folder)
    except ArtifactError as error:
        # Without the list no file can be named, unless manifests have named one already.
        if not any(path.startswith(f"{folder.path}/") for path in reported_paths):
            message = f"its hash is not the one in {folder.source}; to name the file: {error}"
            yield Finding(ALTERED, folder.path, folder.stage, message)
        return
    for name in sorted(actual.keys() | expected.keys()):
        path = f"{folder.path}/{name}"
        job = writers.get(path, folder.stage)
        if name not in actual:
            message = f"{folder.source} tracks it; run dvc checkout"
            yield Finding(MISSING, path, job, message)
        elif name not in expected:
            yield Finding(EXTRA, path, job, f"{folder.source} does not track it; delete it")
        elif actual[name] != expected[name]:
            message = (
                f"md5 {actual[name][:12]}, {folder.source} says {expected[name][:12]}; "
                "run dvc checkout"
            )
            yield Finding(ALTERED, path, job, message)


def folder_hashes(root: Path, folder: str, hasher: Hasher) -> dict[str, str]:
    """Return relative path -> MD5 of the files in a folder of the checkout."""
    hashes = {}
    for path in files_below(root / folder):
        name = Path(path).relative_to(root).as_posix()
        if (md5 := hasher.md5(name)) is not None:
            hashes[name.removeprefix(f"{folder}/")] = md5
    return hashes


def _check_extra(root: Path, outputs: Mapping[str, Any], lock: Lock) -> Iterator[Finding]:
    """Report files among the results that no manifest lists."""
    tracked_paths = {tracked.path for tracked in lock.outputs}
    for path in files_below(root / RESULTS):
        name = Path(path).relative_to(root).as_posix()
        file_name = name.rsplit("/", 1)[-1]
        # Hidden files belong to tools such as Snakemake; temporary ones start with a dot as well.
        if name in outputs or name in tracked_paths:
            continue
        if file_name.startswith(TEMPORARY_PREFIX):
            yield Finding(EXTRA, name, "", "temporary file of a job that was killed; delete it")
        elif not file_name.startswith("."):
            yield Finding(EXTRA, name, "", "no manifest lists it; delete it")


def _check_records(root: Path) -> Iterator[Finding]:
    """Report records that are not JSON."""
    for path in files_below(root / RECORDS):
        if not path.endswith(".json"):
            continue
        try:
            json.loads(Path(path).read_bytes())
        except ValueError as error:
            name = Path(path).relative_to(root).as_posix()
            yield Finding(ALTERED, name, "", f"not JSON ({error}); restore it with git checkout")


def _check_record_hashes(graph: Graph, hasher: Hasher) -> Iterator[Finding]:
    """Check the outputs of a job, its manifest included, against its record."""
    for name, job in graph.jobs.items():
        for output in (job.record.get("end") or {}).get("outputs", []):
            path, expected, actual = output["path"], output["sha256"], hasher.sha256(output["path"])
            if actual is not None and actual != expected:
                message = (
                    f"sha256 {actual[:12]}, the record of {name} says {expected[:12]}; "
                    "dvc checkout or a rerun restores it"
                )
                yield Finding(ALTERED, path, name, message)


def _check_recorded_code(root: Path, graph: Graph, hasher: Hasher) -> Iterator[Finding]:
    """Report code that differs from the code in the record of its job."""
    for job in chain_of(graph):
        for name, expected in sorted(recorded_bytes(job.record).items()):
            actual = hasher.sha256(name)
            if actual != expected and not is_reworded(root / name, name, job.record):
                message = (
                    f"{job.name} ran {expected[:12]}, it is {_short(actual)} now; rerun the job"
                )
                yield Finding(CODE, name, job.name, message)


def _check_locked_code(lock: Lock, hasher: Hasher) -> Iterator[Finding]:
    """Report code that differs from the dependencies in `dvc.lock`."""
    for stage, entry in lock.stages.items():
        for name, expected in sorted(locked_code(entry).items()):
            actual = hasher.md5(name)
            if actual != expected:
                message = (
                    f"stage {stage} ran md5 {expected[:12]}, it is {_short(actual)} now; "
                    "rerun the stage"
                )
                yield Finding(CODE, name, stage, message)


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "absent"


def _check_pipeline(root: Path, lock: Lock) -> Iterator[Finding]:
    """Check `dvc.yaml` against the stages in `dvc.lock`."""
    if not lock.stages:
        return
    path = root / PIPELINE_FILE
    if not path.is_file():
        message = f"{LOCK_FILE} has stages of it; restore it with git checkout"
        yield Finding(MISSING, PIPELINE_FILE, "", message)
        return
    try:
        stages = parse_yaml(path.read_bytes())["stages"]
        shapes = {name: _pipeline_shape(entry) for name, entry in stages.items()}
    except (ValueError, KeyError, TypeError, AttributeError, YAMLError) as error:
        message = f"not in DVC's format ({error}); generate it again"
        yield Finding(ALTERED, PIPELINE_FILE, "", message)
        return
    for name, entry in lock.stages.items():
        if name not in shapes:
            message = f"{LOCK_FILE} has a stage {name} that it lacks"
            yield Finding(DRIFTED, PIPELINE_FILE, name, message)
        elif shapes[name] != _locked_shape(entry):
            message = (
                f"command, inputs or outputs of stage {name} differ from {LOCK_FILE}; generate it "
                "again, or run the stage"
            )
            yield Finding(DRIFTED, PIPELINE_FILE, name, message)


Shape = tuple[str, list[str], list[str]]  # command, dependencies and outputs of a stage


def _locked_shape(entry: LockedStage) -> Shape:
    return str(entry.cmd).strip(), sorted(entry.deps), sorted(entry.outs)


def _pipeline_shape(entry: Mapping[str, Any]) -> Shape:
    outputs = (output for kind in ("outs", "metrics", "plots") for output in entry.get(kind, []))
    return (
        str(entry.get("cmd", "")).strip(),
        sorted(_path_of(dep) for dep in entry.get("deps", [])),
        sorted(_path_of(output) for output in outputs),
    )


def _path_of(entry: Any) -> str:
    """Return the path of a dependency or output, which is a text or a mapping from it to flags."""
    return str(next(iter(entry))) if isinstance(entry, Mapping) else str(entry)
