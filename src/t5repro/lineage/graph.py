"""Artifacts and the jobs between them, from manifests and records.

A manifest lists the inputs and outputs of its job with their SHA-256. An output of one job that is
an input of another one, by hash, is a link between them. An input that no job wrote is either a raw
file or a broken link. The record of a job, if it exists, adds code and environment.

The graph is kept in plain dictionaries and rebuilt for each question: 100,000 artifacts load in
seconds.
"""

import difflib
import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.artifacts import MANIFEST
from t5repro.config.withdrawn import FILES, PAGES
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.record import Record, read_records
from t5repro.lineage.store import RESULTS, Store
from t5repro.strict_json import parse_json

DATA = "data"  # the rule whose outputs are the raw files
WITHDRAWN_LISTS = frozenset(path.as_posix() for path in (FILES, PAGES))
SHA256 = re.compile("[0-9a-f]{64}")
MIN_HASH_CHARS = 6  # shorter starts of a hash are taken for names alone
MAX_NAMES_COMPARED = 5000  # by difflib, which is slow
MAX_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file with the content that a manifest recorded."""

    path: str
    sha256: str
    length: int

    @property
    def key(self) -> tuple[str, str]:
        """Path and hash: two files with equal content are two artifacts."""
        return self.path, self.sha256


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a rule, from its manifest.

    Attributes:
        name: ``rule/node``, followed by the shard or task if a rule has several jobs.
        rule: the rule.
        manifest: path of the manifest.
        settings: the settings that the job received.
        inputs: the files that it read.
        outputs: the files that it wrote; the manifest is the last one.
        counters: its counters.
        record: its record; None if it has none that can be read.
    """

    name: str
    rule: str
    manifest: str
    settings: Mapping[str, Any]
    inputs: tuple[Artifact, ...]
    outputs: tuple[Artifact, ...]
    counters: Mapping[str, Any]
    record: Record | None = None


class Graph:
    """All jobs of a state and the artifacts between them.

    Args:
        jobs: the jobs, in any order; their names are unique.

    Attributes:
        jobs: name -> job, sorted by name.
        producer: key of an output -> name of the job that wrote it.
        consumers: key of an artifact -> names of the jobs that read it.
        by_hash: SHA-256 -> artifacts.
        by_path: path -> artifacts; more than one if manifests disagree.
        broken: (job, input) for inputs that no job wrote with this content. Lists of withdrawn
            sources are none of them: git keeps them, and they change after jobs have read them.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.producer: dict[tuple[str, str], str] = {}
        self.consumers: dict[tuple[str, str], list[str]] = {}
        self.by_hash: dict[str, list[Artifact]] = {}
        self.by_path: dict[str, list[Artifact]] = {}
        self.broken: list[tuple[str, Artifact]] = []
        self.jobs = {job.name: job for job in sorted(jobs, key=lambda job: job.name)}
        # A raw file of one run can be a result of another: its producer is the job that wrote it.
        for job in sorted(self.jobs.values(), key=lambda job: job.rule == DATA):
            for output in job.outputs:
                self._add(output)
                # The first one stays: rules of results come before `data` in this order.
                self.producer.setdefault(output.key, job.name)
        # Links need all outputs, so inputs come in a second pass.
        for job in self.jobs.values():
            for artifact in job.inputs:
                source = self.source_of(artifact)
                if source is None:
                    if artifact.path not in WITHDRAWN_LISTS:
                        self.broken.append((job.name, artifact))
                    self._add(artifact)
                    source = artifact
                self.consumers.setdefault(source.key, []).append(job.name)

    def _add(self, artifact: Artifact) -> None:
        self.by_hash.setdefault(artifact.sha256, []).append(artifact)
        self.by_path.setdefault(artifact.path, []).append(artifact)

    def source_of(self, artifact: Artifact) -> Artifact | None:
        """Return the output that an input is: the same file, else one with the same content."""
        if artifact.key in self.producer:
            return artifact
        # A copy elsewhere, such as an imported checkpoint, is linked by its content.
        candidates = self.by_hash.get(artifact.sha256, ())
        return next((output for output in candidates if output.key in self.producer), None)

    def job_of(self, artifact: Artifact) -> Job | None:
        """Return the job that wrote an artifact; None if no job did."""
        source = self.source_of(artifact)
        return None if source is None else self.jobs[self.producer[source.key]]

    def before(self, job: Job) -> list[Job]:
        """Return the jobs that wrote what a job read, each once, in the order it read them."""
        earlier_jobs = {}
        for artifact in job.inputs:
            earlier = self.job_of(artifact)
            # An output with the content of an input would make a job depend on itself.
            if earlier is not None and earlier.name != job.name:
                earlier_jobs[earlier.name] = earlier
        return list(earlier_jobs.values())

    def after(self, artifacts: Iterable[Artifact]) -> list[Job]:
        """Return every job that depends on one of the artifacts, in order of distance."""
        dependents: dict[str, Job] = {}
        queue = deque(artifacts)
        visited = {artifact.key for artifact in queue}
        while queue:
            for name in self.consumers.get(queue.popleft().key, ()):
                # Breadth first: the first visit is at the shortest distance.
                if name in dependents:
                    continue
                dependents[name] = self.jobs[name]
                for output in self.jobs[name].outputs:
                    if output.key not in visited:
                        visited.add(output.key)
                        queue.append(output)
        return list(dependents.values())

    def ordered(self) -> list[Job]:
        """Return all jobs, each after its dependencies; jobs without an order by name.

        Raises:
            LineageError: jobs depend on each other in a circle.
        """
        return topological_order(self, self.jobs.values())

    def find(self, query: str) -> Artifact:
        """Return the artifact with a path, the end of a path, or the start of a hash.

        Raises:
            LineageError: no artifact matches, or several with different content.
        """
        self.check_not_empty()
        # A whole path wins, even if other paths end in it.
        if query in self.by_path:
            artifacts = self.by_path[query]
            # If manifests disagree, the content that a job wrote is meant, not one that a job read.
            outputs = [artifact for artifact in artifacts if artifact.key in self.producer]
            return (outputs or artifacts)[0]
        matches = {
            artifact.key: artifact
            for path, artifacts in self.by_path.items()
            for artifact in artifacts
            if path.endswith("/" + query)
            or (len(query) >= MIN_HASH_CHARS and artifact.sha256.startswith(query.lower()))
        }
        paths = sorted({path for path, _ in matches})
        if not paths:
            raise LineageError(
                f"{query}: no manifest below {RESULTS}/ names such a file{self._nearest(query)}"
            )
        # Several paths with one content are no ambiguity: their provenance is the same.
        if len(paths) > 1 and len({sha256 for _, sha256 in matches}) > 1:
            raise LineageError(
                f"{query}: {len(paths)} files match, among them "
                f"{', '.join(paths[:MAX_NAMES_SHOWN])}; name one"
            )
        return next(iter(matches.values()))

    def check_not_empty(self) -> None:
        """Check that there is a job: a question in a wrong folder must not look answered.

        Raises:
            LineageError: there is none.
        """
        if not self.jobs:
            raise LineageError(
                f"{RESULTS}/ contains no manifest; run snakemake, or dvc pull, first, or go to the "
                "folder of a run"
            )

    def _nearest(self, query: str) -> str:
        """Return a hint with similar paths, for an error message; empty if there are none."""
        file_name = query.rsplit("/", 1)[-1]
        paths = [path for path in self.by_path if file_name and file_name in path][:3]
        if not paths:
            candidates = list(self.by_path)[:MAX_NAMES_COMPARED]
            paths = difflib.get_close_matches(query, candidates, n=1, cutoff=0.6)
        return f"; nearest: {', '.join(paths)}" if paths else ""


def topological_order(graph: Graph, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs so that each follows its dependencies among them.

    Raises:
        LineageError: jobs depend on each other in a circle.
    """
    selection = {job.name: job for job in jobs}
    unmet = {
        name: {earlier.name for earlier in graph.before(job)} & selection.keys()
        for name, job in selection.items()
    }
    dependents: dict[str, list[str]] = {name: [] for name in selection}
    for name, dependencies in unmet.items():
        for dependency in dependencies:
            dependents[dependency].append(name)
    ready = deque(sorted(name for name, dependencies in unmet.items() if not dependencies))
    ordered: list[Job] = []
    while ready:
        name = ready.popleft()
        ordered.append(selection[name])
        for dependent in sorted(dependents[name]):
            # Kahn's algorithm; names in order make the result independent of the order of files.
            unmet[dependent].discard(name)
            if not unmet[dependent]:
                ready.append(dependent)
    if len(ordered) < len(selection):
        circle = sorted(selection.keys() - {job.name for job in ordered})
        raise LineageError(
            f"manifests name each other in a circle: {', '.join(circle[:MAX_NAMES_SHOWN])}; "
            "one of them was altered: run t5repro verify"
        )
    return ordered


def load_graph(store: Store) -> Graph:
    """Read all manifests and records of a state.

    Raises:
        ArtifactError: a manifest cannot be read.
    """
    return Graph(read_jobs(store, read_records(store)))


def read_jobs(
    store: Store, records: Mapping[str, Record], faults: list[tuple[str, str]] | None = None
) -> Iterator[Job]:
    """Yield the job of each manifest.

    Args:
        store: the state.
        records: job -> its record.
        faults: receives (path, message) of unreadable manifests; without it they raise.

    Raises:
        ArtifactError: a manifest cannot be read, and `faults` is None.
    """
    # From the files and not from a list: a removed or added job shows.
    for path in store.names(RESULTS, MANIFEST):
        data = store.read(path)
        try:
            yield parse_manifest(path, data, records)
        except ArtifactError as error:
            if faults is None:
                raise
            faults.append((path, str(error)))


def parse_manifest(path: str, data: bytes, records: Mapping[str, Record]) -> Job:
    """Return the job that a manifest describes.

    Raises:
        ArtifactError: it is not a manifest.
    """
    try:
        values = parse_json(data)
        rule, name = values["rule"], job_name(path)
        manifest = Artifact(path, hashlib.sha256(data).hexdigest(), len(data))
        inputs = tuple(_artifact(entry) for entry in values["inputs"])
        outputs = (*(_artifact(entry) for entry in values["outputs"]), manifest)
        settings, counters = values["settings"], values["counters"]
        if not (
            isinstance(rule, str) and isinstance(settings, dict) and isinstance(counters, dict)
        ):
            raise ValueError("rule must be text; settings and counters must be mappings")
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{path} is not a manifest ({type(error).__name__}: {error}); rerun the stage that "
            "writes it"
        ) from error
    return Job(name, rule, path, settings, inputs, outputs, counters, records.get(name))


def _artifact(entry: Mapping[str, Any]) -> Artifact:
    path, sha256, length = entry["path"], entry["sha256"], entry["bytes"]
    if not isinstance(path, str) or not isinstance(length, int):
        raise ValueError(f"path {path!r} must be text and its bytes {length!r} a number")
    if "\n" in path:  # it would print lines of its own in answers
        raise ValueError(f"the path {path!r} has a line break")
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
        raise ValueError(f"{path}: {sha256!r} is not a SHA-256")
    return Artifact(path, sha256, length)


def job_name(manifest: str) -> str:
    """Return the job of a manifest: its path without ``results`` and ``manifest.json``."""
    name = manifest.removeprefix(f"{RESULTS}/").removesuffix(MANIFEST)
    return name.rstrip("/.")
