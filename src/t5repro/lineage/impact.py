"""The impact of a raw file: all artifacts that depend on it, now and at earlier revisions."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import SCORES
from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.dvc_cache import OBJECTS, object_path, tracked_files
from t5repro.lineage.dvc_lock import LOCK_FILE, RAW_DATA_FILE
from t5repro.lineage.git import git
from t5repro.lineage.graph import Artifact, Graph, Job, load_graph
from t5repro.lineage.store import Folder, Revision, Store
from t5repro.lineage.trace import artifact_json
from t5repro.stages import STAGES

KINDS = {stage.name: stage.produces for stage in STAGES}  # rule -> kind of its outputs
MAX_FILES_SHOWN = 20
EMPTY_MD5 = hashlib.md5(b"", usedforsecurity=False).hexdigest()  # contains nothing of a source


@dataclass(frozen=True)
class Impact:
    """The jobs and files of one state that depend on some artifacts.

    Attributes:
        state: name of the state: the working tree or a revision.
        starts: the artifacts.
        jobs: every job that depends on them, nearest first.
        outputs: kind of output -> files.
    """

    state: str
    starts: tuple[Artifact, ...]
    jobs: tuple[Job, ...]
    outputs: Mapping[str, tuple[Artifact, ...]]

    def to_json(self) -> dict[str, Any]:
        """Return the impact as plain JSON values."""
        return {
            "state": self.state,
            "starts": [artifact_json(artifact) for artifact in self.starts],
            "jobs": [job.name for job in self.jobs],
            "outputs": {
                kind: [artifact_json(artifact) for artifact in artifacts]
                for kind, artifacts in self.outputs.items()
            },
        }

    def to_text(self) -> str:
        """Return the impact as human-readable text."""
        count = sum(len(artifacts) for artifacts in self.outputs.values())
        lines = [f"{self.state}: {len(self.jobs)} jobs and {count} files depend on"]
        lines += [_line(artifact) for artifact in self.starts]
        for kind, artifacts in self.outputs.items():
            lines.append(f"{kind}: {len(artifacts)}")
            lines += [_line(artifact) for artifact in artifacts[:MAX_FILES_SHOWN]]
            if len(artifacts) > MAX_FILES_SHOWN:
                lines.append(f"  and {len(artifacts) - MAX_FILES_SHOWN} more (--json lists all)")
        return "\n".join(lines) + "\n"


def _line(artifact: Artifact) -> str:
    return f"  {artifact.path}  {artifact.sha256[:12]}"


def impact(graph: Graph, starts: Sequence[Artifact], *, state: str) -> Impact:
    """Return everything that depends on some artifacts.

    Args:
        graph: of the state.
        starts: the artifacts.
        state: its name in the answer.
    """
    jobs = graph.after(starts)
    outputs: dict[str, list[Artifact]] = {}
    for job in jobs:
        outputs.setdefault(KINDS.get(job.rule, job.rule), []).extend(job.outputs)
    kinds = [*dict.fromkeys(KINDS.values()), *outputs]  # in the order of the rules, then others
    ordered = {kind: tuple(outputs[kind]) for kind in kinds if kind in outputs}
    return Impact(state, tuple(starts), tuple(jobs), ordered)


def scores_of(outputs: Mapping[str, Iterable[Artifact]]) -> list[str]:
    """Return the paths of score files among outputs by kind."""
    return [file.path for file in outputs.get("scores", ()) if file.path.endswith(SCORES)]


def of_revisions(root: Path, path: str) -> tuple[list[Impact], list[str]]:
    """Return the impact of a raw file at every revision that tracked it.

    Args:
        root: the checkout.
        path: of the raw file.

    Returns:
        The impacts, newest revision first, and one line for each revision that cannot be read
        because DVC's cache does not have its manifests.
    """
    impacts: list[Impact] = []
    unread: list[str] = []
    for commit in revisions(root):
        try:
            graph = load_graph(Revision(root, commit))
            start = graph.find(path)
        except ArtifactError as error:
            unread.append(f"{commit[:12]}: {error}")
        except LineageError:  # of `find`
            continue  # the revision does not track the file
        else:
            impacts.append(impact(graph, [start], state=f"revision {commit[:12]}"))
    return impacts, unread


def revisions(root: Path) -> list[str]:
    """Return the revisions of all branches and tags that changed the lock, newest first."""
    return git(root, "rev-list", "--all", "--", LOCK_FILE, RAW_DATA_FILE).decode().split()


def objects_of(root: Path, paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return (md5, path) of the objects with the content of some paths at any revision.

    The lock of the working tree counts as a revision. File lists of folders contain no text and are
    left out. Folders without a file list in the cache are skipped: the objects of their files
    are unknown.
    """
    names = set(paths)
    objects: dict[tuple[str, str], None] = {}  # an ordered set
    stores: list[Store] = [Folder(root), *(Revision(root, commit) for commit in revisions(root))]
    for store in stores:
        for name, md5 in _available_files(root, store):
            if name in names and md5 != EMPTY_MD5:
                objects[md5, name] = None
    return list(objects)


def _available_files(root: Path, store: Store) -> Iterator[tuple[str, str]]:
    for output in store.lock().cached_outputs:
        try:
            yield from tracked_files(root, [output])
        except ArtifactError:
            continue


def in_cache(root: Path, objects: Iterable[tuple[str, str]]) -> list[Path]:
    """Return the files of these objects that exist in DVC's cache."""
    paths = dict.fromkeys(object_path(root, md5) for md5, _ in objects)
    return [path for path in paths if path.is_file()]


def remote_objects(objects: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the objects below a DVC remote."""
    return list(dict.fromkeys((OBJECTS / md5[:2] / md5[2:]).as_posix() for md5, _ in objects))
