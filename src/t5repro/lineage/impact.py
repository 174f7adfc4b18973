"""What depends on an artifact: the way forward from a raw file to everything it reached."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.graph import Artifact, Graph, Job, load_graph
from t5repro.lineage.store import FROZEN, LOCK, Revision, git, object_path
from t5repro.lineage.trace import artifact_json

KINDS = {  # rule -> what a reader calls its outputs
    "c4_clean": "cleaned pages",
    "c4_dedup": "decisions on repeats",
    "c4": "corpus",
    "vocab_sample": "vocabulary",
    "vocab": "vocabulary",
    "tokens": "tokens",
    "pretrain": "weights",
    "tasks": "examples",
    "finetune": "weights",
    "evaluate_predict": "predictions",
    "evaluate_score": "scores",
    "report": "report",
}


@dataclass(frozen=True)
class Impact:
    """What some artifacts touch in one state.

    Attributes:
        state: the working tree or a revision.
        starts: what was asked about.
        jobs: every job they reached, nearest first.
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
            "starts": [artifact_json(item) for item in self.starts],
            "jobs": [job.name for job in self.jobs],
            "outputs": {
                kind: [artifact_json(item) for item in items]
                for kind, items in self.outputs.items()
            },
        }

    def to_text(self) -> str:
        """Return the impact for a person."""
        files = sum(len(items) for items in self.outputs.values())
        lines = [f"{self.state}: {len(self.jobs)} jobs and {files} files depend on"]
        lines += [f"  {item.path}  {item.sha256[:12]}" for item in self.starts]
        for kind, items in self.outputs.items():
            lines.append(f"{kind}: {len(items)}")
            lines += [f"  {item.path}  {item.sha256[:12]}" for item in items[:20]]
            if len(items) > 20:
                lines.append(f"  and {len(items) - 20} more (--json lists all)")
        return "\n".join(lines) + "\n"


def impact(graph: Graph, starts: Sequence[Artifact], *, state: str) -> Impact:
    """Return everything that depends on some artifacts.

    Args:
        graph: of the state.
        starts: where to begin; jobs that read one of them are the first.
        state: how to call it.
    """
    jobs = graph.after(starts)
    outputs: dict[str, list[Artifact]] = {}
    for job in jobs:
        kind = KINDS.get(job.rule, job.rule)
        outputs.setdefault(kind, []).extend(job.outputs)
    ranked = {kind: outputs.pop(kind) for kind in dict.fromkeys(KINDS.values()) if kind in outputs}
    return Impact(
        state,
        tuple(starts),
        tuple(jobs),
        {kind: tuple(items) for kind, items in {**ranked, **outputs}.items()},
    )


def of_revisions(root: Path, path: str) -> tuple[list[Impact], list[str]]:
    """Return what a raw file touched at every revision that tracked it.

    Args:
        root: the checkout.
        path: of the raw file.

    Returns:
        The impacts, newest revision first, and a line for each revision that cannot be read
        because DVC's cache lacks its manifests.
    """
    found: list[Impact] = []
    unread: list[str] = []
    for commit in revisions(root):
        revision = Revision(root, commit)
        try:
            graph = load_graph(revision)
            start = graph.find(path)
        except ArtifactError as error:
            unread.append(f"{commit[:12]}: {error}")
            continue
        except LineageError:
            continue  # this revision never knew the file
        found.append(impact(graph, [start], state=f"revision {commit[:12]}"))
    return found, unread


def revisions(root: Path) -> list[str]:
    """Return the revisions of all branches and tags that changed the lock, newest first."""
    return git(root, "rev-list", "--all", "--", LOCK, FROZEN).decode().split()


def objects_of(root: Path, artifacts: Iterable[str]) -> list[tuple[str, str]]:
    """Return (md5, path) of the objects that hold some paths, at any revision and in the lock here.

    Folders' lists are no text and stay out; the objects of a revision whose lists are not in the
    cache cannot be named.
    """
    wanted = set(artifacts)
    found: dict[tuple[str, str], None] = {}
    for commit in ["", *revisions(root)]:
        for name, md5 in _tracked_files(root, commit):
            if name in wanted:
                found[md5, name] = None
    return list(found)


def _tracked_files(root: Path, commit: str) -> Iterator[tuple[str, str]]:
    from t5repro.lineage.store import Folder, opened

    store = Revision(root, commit) if commit else Folder(root)
    for item in store.lock().outputs:
        try:
            yield from opened(root, (item,))
        except ArtifactError:
            continue


def in_cache(root: Path, objects: Iterable[tuple[str, str]]) -> list[Path]:
    """Return the files of DVC's cache that hold these objects now."""
    paths = dict.fromkeys(object_path(root, md5) for md5, _ in objects)
    return [path for path in paths if path.is_file()]


def remote_objects(objects: Iterable[tuple[str, str]]) -> list[str]:
    """Return the objects' names below a DVC remote."""
    return list(dict.fromkeys(f"files/md5/{md5[:2]}/{md5[2:]}" for md5, _ in objects))
