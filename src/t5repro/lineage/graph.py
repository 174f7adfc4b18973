"""Artifacts and the jobs between them, from manifests and records.

A manifest says what its job read and wrote, with SHA-256. A link is a hash that leaves one job as
an output and enters another as an input; an input whose hash left no job is where the chain
begins, or where it is broken. A record, where there is one, adds code and environment.

Everything is held in plain dictionaries: 100,000 artifacts load in seconds, and nothing needs to
be kept between two questions.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.store import RECORDS, RESULTS, Store

MANIFEST = "manifest.json"
DATA = "data"  # the rule whose outputs are the raw inputs


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file with the content it had when a manifest named it."""

    path: str
    sha256: str
    length: int

    @property
    def key(self) -> tuple[str, str]:
        """Path and hash: two files with equal content are two artifacts."""
        return self.path, self.sha256


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a rule, as its manifest tells it.

    Attributes:
        name: ``rule/node``, with the shard or task behind it where a rule has several jobs.
        rule: the rule.
        manifest: path of the manifest.
        settings: the settings it received.
        inputs: what it read.
        outputs: what it wrote, the manifest itself included.
        counters: what it counted.
        record: what was recorded of its run; empty if nothing was.
    """

    name: str
    rule: str
    manifest: str
    settings: Mapping[str, Any]
    inputs: tuple[Artifact, ...]
    outputs: tuple[Artifact, ...]
    counters: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)


class Graph:
    """All jobs of a state and the artifacts between them.

    Args:
        jobs: the jobs, in any order; names are unique.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.jobs: dict[str, Job] = {}
        self.producer: dict[tuple[str, str], str] = {}
        self.by_hash: dict[str, list[Artifact]] = {}
        self.by_path: dict[str, list[Artifact]] = {}
        self.consumers: dict[tuple[str, str], list[str]] = {}
        for job in sorted(jobs, key=lambda job: job.name):
            self.jobs[job.name] = job
            for item in job.outputs:
                self._add(item)
                self.producer.setdefault(item.key, job.name)
        self.broken: list[tuple[str, Artifact]] = []  # inputs that no job wrote like this
        for job in self.jobs.values():
            for item in job.inputs:
                source = self.source_of(item)
                if source is None:
                    self.broken.append((job.name, item))
                    self._add(item)
                    source = item
                self.consumers.setdefault(source.key, []).append(job.name)

    def _add(self, item: Artifact) -> None:
        self.by_hash.setdefault(item.sha256, []).append(item)
        self.by_path.setdefault(item.path, []).append(item)

    def source_of(self, item: Artifact) -> Artifact | None:
        """Return the output that an input is: the same file, or else one with the same content."""
        if item.key in self.producer:
            return item
        made = [other for other in self.by_hash.get(item.sha256, ()) if other.key in self.producer]
        return made[0] if made else None

    def job_of(self, item: Artifact) -> Job | None:
        """Return the job that wrote an artifact; None for what no job wrote."""
        source = self.source_of(item)
        return None if source is None else self.jobs[self.producer[source.key]]

    def before(self, job: Job) -> list[Job]:
        """Return the jobs whose outputs a job read, each once, in the order it read them."""
        found = {}
        for item in job.inputs:
            earlier = self.job_of(item)
            if earlier is not None and earlier.name != job.name:
                found[earlier.name] = earlier
        return list(found.values())

    def after(self, items: Iterable[Artifact]) -> list[Job]:
        """Return every job that some of the artifacts reached, in order of distance."""
        reached: dict[str, Job] = {}
        queue = deque(items)
        seen = {item.key for item in queue}
        while queue:
            for name in self.consumers.get(queue.popleft().key, ()):
                if name in reached:
                    continue
                reached[name] = self.jobs[name]
                for item in self.jobs[name].outputs:
                    if item.key not in seen:
                        seen.add(item.key)
                        queue.append(item)
        return list(reached.values())

    def ordered(self) -> list[Job]:
        """Return all jobs, each after those it depends on; by name where that leaves a choice.

        Raises:
            LineageError: jobs depend on each other in a circle.
        """
        return order(self, self.jobs.values())

    def find(self, wanted: str) -> Artifact:
        """Return the artifact that a path, the end of a path, or the start of a hash names.

        Raises:
            LineageError: none or several do.
        """
        exact = self.by_path.get(wanted)
        if exact:
            made = [item for item in exact if item.key in self.producer]
            return (made or exact)[0]
        found = {
            item.key: item
            for path, items in self.by_path.items()
            for item in items
            if path.endswith("/" + wanted)
            or (len(wanted) >= 6 and item.sha256.startswith(wanted.lower()))
        }
        paths = sorted({path for path, _ in found})
        if not paths:
            raise LineageError(
                f"{wanted}: no manifest below {RESULTS}/ names such a file{self._near(wanted)}"
            )
        if len(paths) > 1 and len({sha256 for _, sha256 in found}) > 1:
            listed = ", ".join(paths[:5])
            raise LineageError(f"{wanted}: {len(paths)} files match, among them {listed}; name one")
        return next(iter(found.values()))

    def _near(self, wanted: str) -> str:
        import difflib

        last = wanted.rsplit("/", 1)[-1]
        names = [path for path in self.by_path if last and last in path][:3] or (
            difflib.get_close_matches(wanted, list(self.by_path)[:5000], n=1, cutoff=0.6)
        )
        return f"; nearest: {', '.join(names)}" if names else ""


def order(graph: Graph, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs so that each comes after those it depends on.

    Raises:
        LineageError: jobs depend on each other in a circle.
    """
    chosen = {job.name: job for job in jobs}
    before = {
        name: {item.name for item in graph.before(job)} & chosen.keys()
        for name, job in chosen.items()
    }
    after: dict[str, list[str]] = {name: [] for name in chosen}
    for name, earlier in before.items():
        for item in earlier:
            after[item].append(name)
    ready = deque(sorted(name for name, earlier in before.items() if not earlier))
    done: list[Job] = []
    while ready:
        name = ready.popleft()
        done.append(chosen[name])
        for later in sorted(after[name]):
            before[later].discard(name)
            if not before[later]:
                ready.append(later)
    if len(done) < len(chosen):
        left = sorted(chosen.keys() - {job.name for job in done})
        raise LineageError(
            f"manifests name each other in a circle: {', '.join(left[:5])}; "
            "one of them was altered: run t5repro verify"
        )
    return done


def load_graph(store: Store) -> Graph:
    """Read all manifests and records of a state.

    Raises:
        ArtifactError: a manifest cannot be read.
    """
    records = read_records(store)
    return Graph(read_jobs(store, records))


def read_jobs(
    store: Store,
    records: Mapping[str, Mapping[str, Any]],
    faults: list[tuple[str, str]] | None = None,
) -> Iterator[Job]:
    """Yield the job of each manifest.

    Args:
        store: where to read.
        records: job -> its record.
        faults: takes (path, what is wrong) of manifests that cannot be read; None: they raise.

    Raises:
        ArtifactError: a manifest cannot be read, and `faults` is None.
    """
    for path in store.names(RESULTS, MANIFEST):
        data = store.read(path)
        try:
            yield parse_manifest(path, data, records)
        except ArtifactError as error:
            if faults is None:
                raise
            faults.append((path, str(error)))


def parse_manifest(path: str, data: bytes, records: Mapping[str, Mapping[str, Any]]) -> Job:
    """Return the job that a manifest tells of.

    Raises:
        ArtifactError: it is not a manifest.
    """
    try:
        values = json.loads(data)
        rule, name = values["rule"], job_name(path)
        own = Artifact(path, hashlib.sha256(data).hexdigest(), len(data))
        inputs = tuple(_artifact(item) for item in values["inputs"])
        outputs = (*(_artifact(item) for item in values["outputs"]), own)
        settings, counters = values["settings"], values["counters"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            f"{path} is not a manifest ({type(error).__name__}: {error}); rerun the stage that "
            "writes it"
        ) from error
    return Job(name, rule, path, settings, inputs, outputs, counters, records.get(name, {}))


def _artifact(item: Mapping[str, Any]) -> Artifact:
    return Artifact(item["path"], item["sha256"], item["bytes"])


def job_name(manifest: str) -> str:
    """Return the name of a manifest's job: its path without ``results`` and ``manifest.json``."""
    name = manifest.removeprefix(f"{RESULTS}/").removesuffix(MANIFEST)
    return name.rstrip("/.")


def read_records(store: Store) -> dict[str, dict[str, Any]]:
    """Return job -> its record, for every job that has one that can be read."""
    found: dict[str, dict[str, Any]] = {}
    for path in store.names(RECORDS, ".json"):
        try:
            values = json.loads(store.read(path))
        except ValueError:
            continue  # `verify` names it
        if isinstance(values, dict):
            found[path.removeprefix(f"{RECORDS}/").removesuffix(".json")] = values
    return found
