"""The facts of a run behind every standard document, from manifests and records.

Nothing is read from the clock or the machine: equal results and records give equal documents.
Times, commits and libraries appear only if the record belongs to this very manifest; unknown facts
are absent. Folders of the machine, users and credentials are redacted as in records.

To add a standard, write a module in this package with a function from `Run` to the document, and
add an entry in `commands`.
"""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from t5repro.errors import LineageError
from t5repro.lineage.graph import DATA, Artifact, Graph, Job, load_graph
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.record import End, Record, known_facts, record_of, record_of_job
from t5repro.lineage.redaction import HIDDEN_PREFIX, redact, redact_path
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import trace

NAMESPACE = "urn:t5repro:"
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".wet": "application/warc",
    ".yaml": "application/yaml",
}
OTHER_MEDIA_TYPE = "application/octet-stream"


@dataclass(frozen=True)
class Run:
    """The jobs of one run, or those behind one artifact, with their inputs and outputs.

    Attributes:
        name: of the run, as below ``results/``.
        root: the checkout.
        jobs: in the order of their dependencies. Raw files are inputs of the job that records them.
    """

    name: str
    root: Path
    jobs: tuple[Job, ...]

    def artifacts(self) -> list[Artifact]:
        """Return every artifact once, by path."""
        # Several jobs read an artifact: its key is path and hash.
        by_key = {
            artifact.key: artifact for job in self.jobs for artifact in (*job.inputs, *job.outputs)
        }
        return [by_key[key] for key in sorted(by_key)]

    def producers(self) -> dict[tuple[str, str], Job]:
        """Return artifact key -> the job that wrote it."""
        return {artifact.key: job for job in self.jobs for artifact in job.outputs}

    def of_rule(self, *rules: str) -> list[Job]:
        """Return the jobs of some rules."""
        return [job for job in self.jobs if job.rule in rules]

    def published(self) -> str:
        """Return the time at which the last job ended.

        Raises:
            LineageError: a job has no record.
        """
        return max((self.ended(job) for job in self.jobs), key=datetime.fromisoformat)

    def started(self, job: Job) -> str:
        """Return the time at which a job started; raises LineageError without a record."""
        return self._recorded(job).start.at

    def ended(self, job: Job) -> str:
        """Return the time at which a job ended; raises LineageError without a record."""
        return self._ended(job).at

    def _ended(self, job: Job) -> End:
        record = self._recorded(job)
        if record.end is None:
            raise LineageError(f"{job.name}: its record has no end; rerun the job")
        return record.end

    def _recorded(self, job: Job) -> Record:
        if job.record is None:
            raise LineageError(
                f"{job.name}: no record of the run that wrote {job.manifest}, and this format "
                "needs times; restore records/ with git checkout, or rerun the job"
            )
        return job.record


def read_run(root: Path, run: str | None = None, artifact: str | None = None) -> Run:
    """Read the jobs of a run.

    Args:
        root: the checkout.
        run: name below ``results/``; required if there are several and no `artifact`.
        artifact: restricts the run to the provenance of this artifact; named as for `trace`.

    Raises:
        LineageError: the run or artifact does not exist, or the name is missing where several runs
            exist.
        ArtifactError: a manifest cannot be read.
    """
    store = Folder(root)
    graph = load_graph(store)
    if artifact is not None:
        chain = trace(graph, store, artifact)
        if not chain.jobs:
            raise LineageError(f"{artifact}: no job wrote it; name a file below results/")
        # Inputs that the artifact does not depend on are left out.
        jobs = [replace(job, inputs=chain.inputs[job.name]) for job in chain.jobs]
        run = run_of(chain.jobs[-1])
    else:
        run = _run_name(graph, run)
        jobs = [job for job in graph.ordered() if run_of(job) == run]
    return Run(run, root, tuple(_redacted(job) for job in jobs))


def _run_name(graph: Graph, run: str | None) -> str:
    graph.check_not_empty()
    runs = sorted({run_of(job) for job in graph.jobs.values()})
    if run is None and len(runs) > 1:
        raise LineageError(
            f"results/ contains several runs; add --run and one of {', '.join(runs)}"
        )
    if run is not None and run not in runs:
        raise LineageError(f"--run {run}: no such run; results/ contains {', '.join(runs)}")
    return run or runs[0]


def run_of(job: Job) -> str:
    """Return the run that a job belongs to."""
    return job.name.split("/", 1)[0]


def _redacted(job: Job) -> Job:
    inputs, outputs = job.inputs, job.outputs
    if job.rule == DATA:  # raw files are recorded as its outputs, but it writes only its manifest
        inputs = (*inputs, *(artifact for artifact in outputs if artifact.path != job.manifest))
        outputs = tuple(artifact for artifact in outputs if artifact.path == job.manifest)
    return replace(
        job,
        settings=redact(dict(job.settings)),
        inputs=_public_files(inputs),
        outputs=_public_files(outputs),
        # A record of an earlier execution would state wrong times and hashes.
        record=_redacted_record(job),
    )


def _public_files(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    return tuple(replace(artifact, path=redact_path(Path(artifact.path))) for artifact in artifacts)


def _redacted_record(job: Job) -> Record | None:
    """Return the record of a job; None if it is not of the job that wrote this very manifest."""
    end = job.record.end if job.record else None
    if job.record is None or end is None:
        return None
    files = {file.path: file.sha256 for file in end.outputs}
    if files.get(job.manifest) != manifest_hash(job):
        return None
    return record_of(redact(job.record.to_json()), record_of_job(job.name))


def start_of(job: Job) -> Mapping[str, Any]:
    """Return the first half of a job's record by name; empty without one."""
    if job.record is None:
        return {}
    return {**known_facts(job.record.start), "machine": known_facts(job.record.start.machine)}


def machine_of(job: Job) -> Mapping[str, Any]:
    """Return the machine of a job by name; empty without a record."""
    return known_facts(job.record.start.machine) if job.record else {}


def libraries_of(run: Run) -> dict[str, list[str]]:
    """Return library -> its versions in the jobs of a run, sorted."""
    versions: dict[str, set[str]] = {}
    for job in run.jobs:
        for name, version in machine_of(job).get("libraries", {}).items():
            versions.setdefault(name, set()).add(version)
    return {name: sorted(versions[name]) for name in sorted(versions)}


def stable_uuid(*names: str) -> str:
    """Return a UUID that is a function of these names."""
    # Version 5, by name: exporting twice gives the same document.
    return str(uuid.uuid5(uuid.NAMESPACE_URL, NAMESPACE + "\n".join(names)))


def run_uuid(run: Run) -> str:
    """Return the UUID of a run: a function of its jobs' manifests and times."""
    # Times make two executions with equal bytes two runs.
    jobs = [f"{job.name} {manifest_hash(job)} {start_of(job).get('at')}" for job in run.jobs]
    return stable_uuid(run.name, *jobs)


def manifest_hash(job: Job) -> str:
    """Return the SHA-256 of a job's manifest."""
    return next(artifact.sha256 for artifact in job.outputs if artifact.path == job.manifest)


def code_hash(job: Job) -> str:
    """Return one SHA-256 over the source files of a job; empty without a record."""
    code = start_of(job).get("code")
    return hashlib.sha256(compact(code).encode()).hexdigest() if code else ""


def compact(value: Any) -> str:
    """Return JSON on one line with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def pretty(value: Any) -> str:
    """Return indented JSON with sorted keys, the format of documents."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def media_type(path: str) -> str:
    """Return the media type of a file by its name."""
    return MEDIA_TYPES.get(PurePosixPath(path).suffix, OTHER_MEDIA_TYPE)


def check_files(run: Run, artifacts: Iterable[Artifact]) -> None:
    """Check that files still have the hashes of their manifests.

    Raises:
        LineageError: one is missing, was altered, or is outside the checkout.
    """
    hasher = Hasher(run.root)
    for artifact in artifacts:
        fault = fault_of(hasher, artifact.path, artifact.sha256)
        if fault:
            raise LineageError(
                f"{artifact.path} {fault}, so a document cannot attest it; run t5repro verify"
            )


def fault_of(hasher: Hasher, path: str, sha256: str) -> str:
    """Return the fault of a file as the end of a sentence; empty if it has this hash."""
    if not inside(path):
        return "is outside the checkout"
    actual = hasher.of(path)
    if actual is None:
        return "is missing"
    if actual.sha256 != sha256:
        return f"was altered: its SHA-256 is {actual.sha256[:12]}, not {sha256[:12]}"
    return ""


def inside(path: str) -> bool:
    """Whether a path is inside the checkout."""
    pure = PurePosixPath(path)
    # A manifest is input: it could name any file of the machine.
    return not pure.is_absolute() and ".." not in pure.parts and not is_hidden(path)


def is_hidden(path: str) -> bool:
    """Whether a hash replaces the folder of a path."""
    return path.startswith(HIDDEN_PREFIX)
