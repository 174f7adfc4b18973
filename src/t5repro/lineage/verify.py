"""Is everything what the manifests, the records and `dvc.lock` say it is?

Each file is held against everyone who vouches for it: the manifest of the job that wrote it, the
manifests of the jobs that read it, and `dvc.lock` or `data.dvc`. Findings are ordered as the chain
runs, so the first one is the first broken link.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from yaml import YAMLError

from t5repro.errors import ArtifactError, LineageError
from t5repro.files import TEMPORARY_PREFIX
from t5repro.lineage.graph import DATA, MANIFEST, Artifact, Graph, Job, read_jobs, read_records
from t5repro.lineage.hashes import Hasher, hash_file
from t5repro.lineage.store import (
    FROZEN,
    LOCK,
    RECORDS,
    RESULTS,
    STAGES,
    Folder,
    Lock,
    Revision,
    Tracked,
    files_below,
    folder_list,
    folder_md5,
    object_path,
    parse_yaml,
)

ALTERED = "altered"
MISSING = "missing"
EXTRA = "extra"
LINK = "broken link"
CODE = "code changed"
DRIFTED = "drifted"
UNSEALED = "not sealed"
WARNINGS = {UNSEALED}  # said, and no reason to fail


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        kind: one of the words above.
        path: the file.
        job: the job it belongs to; empty if unknown.
        message: what was found, what was expected, and the cure.
    """

    kind: str
    path: str
    job: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """What verification found.

    Attributes:
        findings: in the order of the chain.
        warnings: what nobody vouches for.
        files: files that were checked.
        hashed: files whose bytes were read.
        sealed: whether there is a `dvc.lock` to hold the results against.
    """

    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    files: int
    hashed: int
    sealed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values."""
        return {
            "holds": not self.findings,
            "first": asdict(self.findings[0]) if self.findings else None,
            "findings": [asdict(item) for item in self.findings],
            "warnings": [asdict(item) for item in self.warnings],
            "files": self.files,
            "hashed": self.hashed,
            "sealed": self.sealed,
        }

    def to_text(self) -> str:
        """Return the verdict for a person."""
        lines = [f"{item.kind:<12}  {item.path}: {item.message}" for item in self.findings]
        lines += [f"{item.kind:<12}  {item.path}: {item.message}" for item in self.warnings]
        if self.findings:
            first = self.findings[0]
            lines.append(f"first broken link: {first.path} ({first.job or 'no job'}), {first.kind}")
        else:
            against = f"manifests and {LOCK}" if self.sealed else "manifests"
            lines.append(f"{self.files} files are what {against} say; {self.hashed} were read")
        return "\n".join(lines) + "\n"


def verify_tree(root: Path, *, deep: bool = False) -> Verdict:
    """Check the working tree.

    Args:
        root: the checkout.
        deep: read every byte, whatever is remembered of earlier readings.

    Raises:
        LineageError: `dvc.lock` is not what DVC writes.
    """
    store = Folder(root)
    lock = store.lock()
    faults: list[tuple[str, str]] = []
    graph = Graph(read_jobs(store, read_records(store), faults))
    hasher = Hasher(root, deep=deep)
    expected = _expected(graph)
    found = [Finding(ALTERED, path, "", message) for path, message in faults]
    found += _check_files(graph, expected, hasher)
    found += _check_links(graph)
    found += _check_lock(root, lock, hasher, {item.path for item in found}, graph)
    found += _check_extra(root, expected, lock)
    found += _check_records(root)
    found += _check_record_hashes(graph, hasher)
    found += _check_code(graph, lock, hasher)
    found += _check_stages(root, lock)
    if not any(item.stage for item in lock.outputs):
        message = "absent, so nobody vouches for manifests without a record; seal the results"
        found.append(Finding(UNSEALED, LOCK, "", message))
    hasher.remember()
    return _verdict(found, graph, len(expected), hasher.read_files, lock)


def _verdict(
    found: Iterable[Finding], graph: Graph, files: int, hashed: int, lock: Lock
) -> Verdict:
    place = {job.name: number for number, job in enumerate(_chain(graph))}
    unique = {(item.kind, item.path): item for item in reversed(list(found))}
    ranked = sorted(
        unique.values(), key=lambda item: (place.get(item.job, -1), item.path, item.kind)
    )
    return Verdict(
        tuple(item for item in ranked if item.kind not in WARNINGS),
        tuple(item for item in ranked if item.kind in WARNINGS),
        files,
        hashed,
        any(item.stage for item in lock.outputs),
    )


def _chain(graph: Graph) -> list[Job]:
    """Return the jobs in the order of the chain; by name if altered manifests make a circle."""
    try:
        return graph.ordered()
    except LineageError:
        return list(graph.jobs.values())


def _expected(graph: Graph) -> dict[str, tuple[Artifact, str]]:
    """Return path -> what its manifest says of it, and the job."""
    expected: dict[str, tuple[Artifact, str]] = {}
    for job in graph.jobs.values():
        for item in job.outputs:
            if item.path != job.manifest:
                expected.setdefault(item.path, (item, job.name))
    for job in graph.jobs.values():
        expected.setdefault(job.manifest, (job.outputs[-1], job.name))
    return expected


def _check_files(
    graph: Graph, expected: Mapping[str, tuple[Artifact, str]], hasher: Hasher
) -> Iterator[Finding]:
    """Hold every file against the manifest of the job that wrote it."""
    for path, (item, job) in expected.items():
        if path == graph.jobs[job].manifest:
            continue
        found = hasher.of(path)
        if found is None:
            yield Finding(
                MISSING, path, job, f"{job} wrote it; dvc checkout or a rerun restores it"
            )
        elif found.sha256 != item.sha256:
            yield Finding(
                ALTERED,
                path,
                job,
                f"sha256 {found.sha256[:12]}, {job} wrote {item.sha256[:12]}; "
                "dvc checkout or a rerun restores it",
            )


def _check_links(graph: Graph) -> Iterator[Finding]:
    """Name inputs that are not what any job wrote: a stage was rerun and a later one was not."""
    for name, item in graph.broken:
        made = [other for other in graph.by_path.get(item.path, ()) if other.key in graph.producer]
        if made:
            maker = graph.producer[made[0].key]
            what = f"{name} read {item.sha256[:12]}, {maker} says {made[0].sha256[:12]}"
            yield Finding(LINK, item.path, maker, f"{what}; rerun {name}, or one was altered")
        elif any(job.rule == DATA for job in graph.jobs.values()):
            yield Finding(
                LINK,
                item.path,
                name,
                f"{name} read {item.sha256[:12]}, which no job wrote and no raw file is",
            )


def _check_lock(
    root: Path, lock: Lock, hasher: Hasher, named: set[str], graph: Graph
) -> Iterator[Finding]:
    """Hold every tracked file and folder against `dvc.lock` and `data.dvc`."""
    jobs = {item.path: name for name, job in graph.jobs.items() for item in job.outputs}
    for item in lock.outputs:
        source = LOCK if item.stage else FROZEN
        if not item.is_folder:
            found = hasher.of(item.path)
            job = jobs.get(item.path, item.stage)
            if found is None:
                yield Finding(MISSING, item.path, job, f"{source} tracks it; run dvc checkout")
            elif found.md5 != item.md5:
                yield Finding(
                    ALTERED,
                    item.path,
                    job,
                    f"md5 {found.md5[:12]}, {source} says {item.md5[:12]}; run dvc checkout, "
                    "or seal what a run built",
                )
        else:
            yield from _check_folder(root, item, source, hasher, named, jobs)


def _check_folder(
    root: Path, item: Tracked, source: str, hasher: Hasher, named: set[str], jobs: Mapping[str, str]
) -> Iterator[Finding]:
    here = {}
    for path in files_below(root / item.path):
        name = Path(path).relative_to(root).as_posix()
        if (found := hasher.of(name)) is not None:
            here[name.removeprefix(f"{item.path}/")] = found.md5
    if folder_md5(here) == item.md5:
        return
    try:
        there = {entry["relpath"]: entry["md5"] for entry in folder_list(root, item)}
    except ArtifactError:
        if not any(path.startswith(f"{item.path}/") for path in named):
            yield Finding(
                ALTERED,
                item.path,
                item.stage,
                f"the folder is not the one that {source} says, and its list is not in DVC's "
                "cache, so the file cannot be named; run dvc fetch and verify again",
            )
        return
    for name in sorted(here.keys() | there.keys()):
        path = f"{item.path}/{name}"
        job = jobs.get(path, item.stage)
        if name not in here:
            yield Finding(MISSING, path, job, f"{source} tracks it; run dvc checkout")
        elif name not in there:
            yield Finding(EXTRA, path, job, f"{source} does not know it; delete it")
        elif here[name] != there[name]:
            yield Finding(
                ALTERED,
                path,
                job,
                f"md5 {here[name][:12]}, {source} says {there[name][:12]}; run dvc checkout",
            )


def _check_extra(root: Path, expected: Mapping[str, Any], lock: Lock) -> Iterator[Finding]:
    """Name files among the results that no manifest tells of."""
    tracked = {item.path for item in lock.outputs}
    for path in files_below(root / RESULTS):
        name = Path(path).relative_to(root).as_posix()
        if name in expected or name in tracked:
            continue
        if name.rsplit("/", 1)[-1].startswith(TEMPORARY_PREFIX):
            yield Finding(EXTRA, name, "", "left behind by a job that was killed; delete it")
        elif not name.rsplit("/", 1)[-1].startswith("."):
            yield Finding(EXTRA, name, "", "no manifest tells of it; delete it")


def _check_records(root: Path) -> Iterator[Finding]:
    for path in files_below(root / RECORDS):
        if not path.endswith(".json"):
            continue
        try:
            json.loads(Path(path).read_bytes())
        except ValueError as error:
            name = Path(path).relative_to(root).as_posix()
            yield Finding(ALTERED, name, "", f"not JSON ({error}); restore it with git checkout")


def _check_record_hashes(graph: Graph, hasher: Hasher) -> Iterator[Finding]:
    """Hold what a job's record says it wrote, its manifest included, against the files."""
    for name, job in graph.jobs.items():
        for item in (job.record.get("end") or {}).get("outputs", []):
            found = hasher.of(item["path"])
            if found is not None and found.sha256 != item["sha256"]:
                yield Finding(
                    ALTERED,
                    item["path"],
                    name,
                    f"sha256 {found.sha256[:12]}, the record of {name} says "
                    f"{item['sha256'][:12]}; dvc checkout or a rerun restores it",
                )


def _check_code(graph: Graph, lock: Lock, hasher: Hasher) -> Iterator[Finding]:
    """Name code that is no longer what its job ran."""
    for job in _chain(graph):
        ran = (job.record.get("start") or {}).get("code", {})
        for name, sha256 in sorted(ran.items()):
            found = hasher.of(name)
            if found is None or found.sha256 != sha256:
                now = found.sha256[:12] if found else "absent"
                yield Finding(
                    CODE, name, job.name, f"{job.name} ran {sha256[:12]}, it is {now} now; rerun it"
                )
    for stage in lock.stages:
        for name, md5 in sorted(lock.dependencies(stage).items()):
            if not name.endswith(".py"):
                continue
            found = hasher.of(name)
            if found is None or found.md5 != md5:
                now = found.md5[:12] if found else "absent"
                yield Finding(
                    CODE,
                    name,
                    stage,
                    f"stage {stage} ran md5 {md5[:12]}, it is {now} now; rerun it",
                )


def _check_stages(root: Path, lock: Lock) -> Iterator[Finding]:
    """Hold `dvc.yaml` against what `dvc.lock` says was run."""
    if not lock.stages:
        return
    path = root / STAGES
    if not path.is_file():
        yield Finding(MISSING, STAGES, "", f"{LOCK} has stages of it; restore it with git checkout")
        return
    try:
        stages = parse_yaml(path.read_bytes())["stages"]
        defined = {name: _shape(entry) for name, entry in stages.items()}
    except (ValueError, KeyError, TypeError, AttributeError, YAMLError) as error:
        yield Finding(ALTERED, STAGES, "", f"is not what DVC reads ({error}); generate it again")
        return
    for name, entry in lock.stages.items():
        if name not in defined:
            yield Finding(DRIFTED, STAGES, name, f"{LOCK} has a stage {name} that it lacks")
        elif defined[name] != _shape(entry):
            yield Finding(
                DRIFTED,
                STAGES,
                name,
                f"command, inputs or outputs of stage {name} are not those that {LOCK} recorded; "
                "generate it again, or run the stage",
            )


def _shape(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return command, dependencies and outputs of a stage, as `dvc.yaml` or `dvc.lock` has them."""
    return (
        str(entry.get("cmd", "")).strip(),
        sorted(_path(item) for item in entry.get("deps", [])),
        sorted(
            _path(item) for kind in ("outs", "metrics", "plots") for item in entry.get(kind, [])
        ),
    )


def _path(item: Any) -> str:
    if isinstance(item, Mapping):
        return str(item["path"] if "path" in item else next(iter(item)))
    return str(item)


# A revision


def verify_revision(revision: Revision, *, deep: bool = False) -> Verdict:
    """Check that DVC's cache holds what a revision tracked, unaltered.

    Args:
        revision: the git revision.
        deep: read every byte; otherwise the objects must be there and have the right size.
    """
    lock = revision.lock()
    found: list[Finding] = []
    files: dict[str, str] = {}
    for item in lock.outputs:
        source = LOCK if item.stage else FROZEN
        if not item.is_folder:
            files[item.path] = item.md5
            continue
        try:
            listed = folder_list(revision.root, item)
        except ArtifactError as error:
            found.append(Finding(MISSING, item.path, item.stage, str(error)))
            continue
        hashes = {entry["relpath"]: entry["md5"] for entry in listed}
        if folder_md5(hashes) != item.md5:
            message = f"its list in the cache is not the one that {source} names; fetch it again"
            found.append(Finding(ALTERED, item.path, item.stage, message))
        files.update((f"{item.path}/{name}", md5) for name, md5 in hashes.items())
    hashed = 0
    for name, md5 in files.items():
        path = object_path(revision.root, md5)
        if not path.is_file():
            message = f"md5 {md5[:12]} is not in DVC's cache; run dvc fetch --all-commits"
            found.append(Finding(MISSING, name, "", message))
        elif deep or name.endswith(MANIFEST):
            hashed += 1
            if hash_file(path).md5 != md5:
                message = f"its object in the cache is not {md5[:12]}; delete it and run dvc fetch"
                found.append(Finding(ALTERED, name, "", message))
    graph, faults = _graph_of(revision, found)
    found += faults
    placed = [_with_job(item, graph) for item in found]
    return _verdict(placed, graph, len(files), hashed, lock)


def _graph_of(revision: Revision, found: list[Finding]) -> tuple[Graph, list[Finding]]:
    """Return the revision's graph, and what its manifests contradict."""
    if found:
        return Graph(()), []
    faults: list[tuple[str, str]] = []
    graph = Graph(read_jobs(revision, read_records(revision), faults))
    named = [Finding(ALTERED, path, "", message) for path, message in faults]
    return graph, [*named, *_check_links(graph), *_check_sizes(revision, graph)]


def _check_sizes(revision: Revision, graph: Graph) -> Iterator[Finding]:
    for path, (item, job) in _expected(graph).items():
        md5 = revision.hashes.get(path)
        if md5 is None:
            yield Finding(MISSING, path, job, f"{job} wrote it, and {LOCK} does not track it")
        elif object_path(revision.root, md5).stat().st_size != item.length:
            yield Finding(
                ALTERED, path, job, f"{job} wrote {item.length} bytes, the cache has others"
            )


def _with_job(item: Finding, graph: Graph) -> Finding:
    made = graph.by_path.get(item.path)
    if item.job or not made or made[0].key not in graph.producer:
        return item
    return Finding(item.kind, item.path, graph.producer[made[0].key], item.message)
