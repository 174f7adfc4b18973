"""What every standard document is made from: the jobs of one run, as manifests and records say.

Nothing is read from the clock or the machine: equal results and records give equal documents. A
time, a commit or a library is told only where the record belongs to just this manifest; what is not
known stays absent. Folders of the machine, users and credentials are replaced as in records.

To add a standard: a module beside this one with a function from `Run` to the document, and an entry
in `commands`.
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
    """The jobs of one run, or those on the way to one artifact, and what they read and wrote.

    Attributes:
        name: of the run, as below ``results/``.
        root: the checkout.
        jobs: each after those it depends on. The job that records the raw files reads them.
    """

    name: str
    root: Path
    jobs: tuple[Job, ...]

    def artifacts(self) -> list[Artifact]:
        """Return every artifact once, by path."""
        found = {item.key: item for job in self.jobs for item in (*job.inputs, *job.outputs)}
        return [found[key] for key in sorted(found)]

    def producers(self) -> dict[tuple[str, str], Job]:
        """Return the job behind each artifact that a job wrote."""
        return {item.key: job for job in self.jobs for item in job.outputs}

    def of_rule(self, *rules: str) -> list[Job]:
        """Return the jobs of some rules."""
        return [job for job in self.jobs if job.rule in rules]

    def published(self) -> str:
        """Return when the last job ended.

        Raises:
            LineageError: a job has no record.
        """
        return max((self.ended(job) for job in self.jobs), key=datetime.fromisoformat)

    def started(self, job: Job) -> str:
        """Return when a job started; raises LineageError without a record."""
        return str(self._recorded(job)["start"]["at"])

    def ended(self, job: Job) -> str:
        """Return when a job ended; raises LineageError without a record."""
        return str(self._recorded(job)["end"]["at"])

    def _recorded(self, job: Job) -> Mapping[str, Any]:
        if not job.record:
            raise LineageError(
                f"{job.name}: no record of the run that wrote {job.manifest}, and this format "
                "needs times; restore records/ with git checkout, or rerun the job"
            )
        return job.record


def read_run(root: Path, run: str | None = None, artifact: str | None = None) -> Run:
    """Read the jobs of a run.

    Args:
        root: the checkout.
        run: name below ``results/``; needed where there are several and no `artifact`.
        artifact: leave out what it was not made from; named as for `trace`.

    Raises:
        LineageError: there is no such run or artifact, or no run was named among several.
        ArtifactError: a manifest cannot be read.
    """
    store = Folder(root)
    graph = load_graph(store)
    if artifact is not None:
        found = trace(graph, store, artifact)
        if not found.jobs:
            raise LineageError(f"{artifact}: no job wrote it; name a file below results/")
        jobs = [replace(job, inputs=found.inputs[job.name]) for job in found.jobs]
        run = run_of(found.jobs[-1])
    else:
        run = _chosen(graph, run)
        jobs = [job for job in graph.ordered() if run_of(job) == run]
    return Run(run, root, tuple(_shown(job) for job in jobs))


def _chosen(graph: Graph, run: str | None) -> str:
    known = sorted({run_of(job) for job in graph.jobs.values()})
    if not known:
        raise LineageError("results/ holds no manifest; run snakemake, or dvc pull, first")
    if run is None and len(known) > 1:
        raise LineageError(f"results/ holds several runs; add --run and one of {', '.join(known)}")
    if run is not None and run not in known:
        raise LineageError(f"--run {run}: no such run; results/ holds {', '.join(known)}")
    return run or known[0]


def run_of(job: Job) -> str:
    """Return the run that a job belongs to."""
    return job.name.split("/", 1)[0]


def _shown(job: Job) -> Job:
    inputs, outputs = job.inputs, job.outputs
    if job.rule == DATA:  # it records what it found; it makes nothing but its manifest
        inputs = (*inputs, *(item for item in outputs if item.path != job.manifest))
        outputs = tuple(item for item in outputs if item.path == job.manifest)
    return replace(
        job,
        settings=redact(dict(job.settings)),
        inputs=_public_files(inputs),
        outputs=_public_files(outputs),
        record=redact(dict(job.record)) if _belongs(job) else {},
    )


def _public_files(items: Iterable[Artifact]) -> tuple[Artifact, ...]:
    return tuple(replace(item, path=redact_path(Path(item.path))) for item in items)


def _belongs(job: Job) -> bool:
    """Whether the record tells of the run that wrote this very manifest."""
    own = next(item.sha256 for item in job.outputs if item.path == job.manifest)
    written = (job.record.get("end") or {}).get("outputs") or []
    return any(item["path"] == job.manifest and item["sha256"] == own for item in written)


def start_of(job: Job) -> Mapping[str, Any]:
    """Return the first half of a job's record; empty without one."""
    return job.record.get("start") or {}


def machine_of(job: Job) -> Mapping[str, Any]:
    """Return what a job ran on; empty without a record."""
    return start_of(job).get("machine") or {}


def libraries_of(run: Run) -> dict[str, list[str]]:
    """Return library -> versions that jobs of a run had, in order."""
    found: dict[str, set[str]] = {}
    for job in run.jobs:
        for name, version in (machine_of(job).get("libraries") or {}).items():
            found.setdefault(name, set()).add(version)
    return {name: sorted(found[name]) for name in sorted(found)}


def stable_uuid(*words: str) -> str:
    """Return the UUID that these words always have."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, NAMESPACE + "\n".join(words)))


def run_uuid(run: Run) -> str:
    """Return the UUID of a run: of its jobs' manifests and of when they ran."""
    words = [f"{job.name} {manifest_hash(job)} {start_of(job).get('at')}" for job in run.jobs]
    return stable_uuid(run.name, *words)


def manifest_hash(job: Job) -> str:
    """Return the SHA-256 of a job's manifest."""
    return next(item.sha256 for item in job.outputs if item.path == job.manifest)


def code_hash(job: Job) -> str:
    """Return one SHA-256 over the source files of a job; empty without a record."""
    code = start_of(job).get("code")
    return hashlib.sha256(compact(code).encode()).hexdigest() if code else ""


def compact(value: Any) -> str:
    """Return JSON on one line with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def pretty(value: Any) -> str:
    """Return JSON with sorted keys, as documents are written."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def media_type(path: str) -> str:
    """Return the media type of a file by its name."""
    return MEDIA_TYPES.get(PurePosixPath(path).suffix, OTHER_MEDIA_TYPE)


def check_files(run: Run, items: Iterable[Artifact]) -> None:
    """Check that files still have the content that manifests name.

    Raises:
        LineageError: one is missing, was altered, or lies outside the checkout.
    """
    hasher = Hasher(run.root)
    for item in items:
        fault = fault_of(hasher, item.path, item.sha256)
        if fault:
            raise LineageError(
                f"{item.path} {fault}, so nothing can vouch for it; run t5repro verify"
            )


def fault_of(hasher: Hasher, path: str, sha256: str) -> str:
    """Return what is wrong with a file, in words; empty if it is as it should be."""
    if not inside(path):
        return "lies outside the checkout"
    found = hasher.of(path)
    if found is None:
        return "is missing"
    if found.sha256 != sha256:
        return f"was altered: its SHA-256 is {found.sha256[:12]}, not {sha256[:12]}"
    return ""


def inside(path: str) -> bool:
    """Whether a path names a place below the checkout."""
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts and not is_hidden(path)


def is_hidden(path: str) -> bool:
    """Whether a path has a hash in the place of a folder of the machine."""
    return path.startswith(HIDDEN_PREFIX)
