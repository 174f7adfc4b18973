"""The jobs that depend on a file, by its hash: a model, or a raw file."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from t5repro.errors import ArtifactError, LineageError, T5ReproError
from t5repro.files import sha256_of
from t5repro.lineage.graph import MIN_HASH_CHARS, Artifact, Graph
from t5repro.runs.read import read_graph
from t5repro.runs.states import State

Users = frozenset[tuple[str, str]]  # place, job
HASH_START = re.compile(rf"[0-9a-f]{{{MIN_HASH_CHARS},64}}")


@dataclass(frozen=True)
class Wanted:
    """Files that runs may depend on.

    Attributes:
        name: as the user wrote it.
        hashes: their SHA-256, or the starts of them.
        path: path, or the end of one; empty if the hashes are known.
    """

    name: str
    hashes: tuple[str, ...] = ()
    path: str = ""

    def is_in(self, manifest: bytes) -> bool:
        """Return whether a manifest can name one of them; saves parsing most manifests."""
        hints = self.hashes or (self.path.rpartition("/")[2],)
        return any(hint.encode() in manifest for hint in hints)

    def matches(self, artifact: Artifact) -> bool:
        """Return whether an artifact is one of them."""
        if self.hashes:
            return artifact.sha256.startswith(self.hashes)
        return f"/{artifact.path}".endswith(f"/{self.path}")


def wanted_file(root: Path, name: str) -> Wanted:
    """Return the file that a name, the start of a SHA-256, or a path in a manifest stands for.

    Raises:
        LineageError: the name is empty.
    """
    if not name.strip("/"):
        raise LineageError(f"{name!r} is no file; name a file, or the start of its SHA-256")
    if (root / name).is_file():
        return Wanted(name, (sha256_of(root / name),))
    if HASH_START.fullmatch(name.lower()):
        return Wanted(name, (name.lower(),))
    return Wanted(name, path=name)


def users_of(states: Iterable[State], wanted: Wanted) -> Users:
    """Return the jobs of all states that depend on a file or wrote it.

    Raises:
        LineageError: no manifest of any state names it.
    """
    users: set[tuple[str, str]] = set()
    is_known = False
    for state in states:
        try:
            runs = tuple(state.runs)
        except T5ReproError:  # named with the rows
            continue
        for run in runs:
            jobs = _jobs_using(state, run, wanted)
            is_known |= jobs is not None
            users.update((state.place, job) for job in jobs or ())
    if not is_known:
        raise LineageError(
            f"{wanted.name}: no manifest of a run names such a file; t5repro runs lists the runs, "
            "and their manifests are below results/"
        )
    return frozenset(users)


def _jobs_using(state: State, run: str, wanted: Wanted) -> set[str] | None:
    """Return the jobs that depend on a file or wrote it; None if no manifest names it."""
    manifests = state.manifests(run)
    if not any(wanted.is_in(data) for data in _contents(state, manifests)):
        return None
    graph = read_graph(state.store, manifests, [])  # what cannot be read was named with the rows
    starts = [artifact for artifacts in graph.by_hash.values() for artifact in artifacts]
    starts = [artifact for artifact in starts if wanted.matches(artifact)]
    if not starts:
        return None
    return {job.name for job in graph.after(_source_artifacts(graph, starts))} | {
        graph.producer[artifact.key] for artifact in starts if artifact.key in graph.producer
    }


def _source_artifacts(graph: Graph, starts: Iterable[Artifact]) -> list[Artifact]:
    """Return each artifact as the job that wrote it names it: its readers are kept under that."""
    return [graph.source_of(artifact) or artifact for artifact in starts]


def _contents(state: State, manifests: Iterable[str]) -> Iterable[bytes]:
    for path in manifests:
        try:
            yield state.store.read(path)
        except (ArtifactError, OSError):
            continue
