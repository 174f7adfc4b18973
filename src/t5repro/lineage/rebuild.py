"""Build jobs again in a clean clone and compare: the proof that results were not made up.

The clone has the committed code and nothing else; what the chosen jobs read is copied in from
here, checked against its manifests on the way. Snakemake may run the chosen rules only. What comes
out is held against the files here and against `dvc.lock`: bit for bit where the stage is exact,
within `compare.TOLERANCES` where it trained or decoded on a device that is not.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import LineageError
from t5repro.lineage.graph import DATA, Graph, Job, load_graph, order
from t5repro.lineage.hashes import Hasher, hash_file
from t5repro.lineage.store import LOCK, Folder, Tracked, git
from t5repro.lineage.tolerance import EXACT, TOLERANT, distance, promise_of
from t5repro.randomness import stream

SAME, WITHIN, DIFFERENT, ABSENT = "same bytes", "within tolerance", "different", "not built"
LOG_LINES = 15


@dataclass(frozen=True)
class Invocation:
    """How the run was started that is to be built again."""

    profile: str = "local"
    configfile: Path | None = None
    config: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """Return the words of Snakemake's command line."""
        words = ["--profile", self.profile]
        if self.configfile:
            words += ["--configfile", str(self.configfile)]
        return words


@dataclass(frozen=True)
class Outcome:
    """One file that was built again.

    Attributes:
        path: the file.
        job: that writes it.
        promise: ``exact`` or ``tolerance``.
        result: one of the words above.
        detail: hashes or distance, and what it was held against.
    """

    path: str
    job: str
    promise: str
    result: str
    detail: str


@dataclass(frozen=True)
class Rebuilt:
    """What rebuilding found.

    Attributes:
        commit: of the clone.
        seed: of the draw; None where nothing was drawn.
        outcomes: one a file.
        notes: what a reader must know, such as uncommitted changes.
    """

    commit: str
    seed: int | None
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every file came out as it is here, or as near as its stage promises."""
        return all(item.result in (SAME, WITHIN) for item in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """Return what was found as plain JSON values."""
        return {
            "holds": self.holds,
            "commit": self.commit,
            "seed": self.seed,
            "outcomes": [asdict(item) for item in self.outcomes],
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """Return what was found for a person."""
        drawn = "" if self.seed is None else f"; repeat the draw with --seed {self.seed}"
        lines = [f"built again at {self.commit[:12]}{drawn}"]
        lines += [f"{item.result:<16}  {item.path}  {item.detail}" for item in self.outcomes]
        lines += [f"note: {line}" for line in self.notes]
        wrong = [item for item in self.outcomes if item.result not in (SAME, WITHIN)]
        if wrong:
            lines.append(
                f"{len(wrong)} of {len(self.outcomes)} files are not what this code makes of "
                f"these inputs; first {wrong[0].path}"
            )
        else:
            lines.append(f"{len(self.outcomes)} files are what this code makes of these inputs")
        return "\n".join(lines) + "\n"


def rebuild(
    root: Path,
    stage: str | None,
    *,
    sample: int | None = None,
    seed: int | None = None,
    run: Invocation | None = None,
) -> Rebuilt:
    """Build jobs again in a clean clone and compare.

    Args:
        root: the checkout.
        stage: a rule, ``rule/node``, or ``run/rule/node``; None with `sample`.
        sample: how many jobs to draw at random.
        seed: of the draw; None: one that nobody could foresee.
        run: how the run was started.

    Raises:
        LineageError: no such stage, or Snakemake failed.
    """
    root = root.resolve()
    graph = load_graph(Folder(root))
    jobs, seed = _chosen(graph, stage, sample, seed)
    run = run or Invocation()
    notes = _notes(root)
    with tempfile.TemporaryDirectory(prefix="t5repro-rebuild-") as folder:
        clone = Path(folder) / "clone"
        git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(clone))
        commit = git(clone, "rev-parse", "HEAD").decode().strip()
        notes += _bring_inputs(root, clone, graph, jobs)
        _run(clone, jobs, run)
        outcomes = [item for job in jobs for item in _compare(root, clone, job)]
        outcomes += _against_lock(root, clone, jobs)
    return Rebuilt(commit, seed, tuple(outcomes), tuple(notes))


def _chosen(
    graph: Graph, stage: str | None, sample: int | None, seed: int | None
) -> tuple[list[Job], int | None]:
    """Return the jobs to build, in the order of the chain, and the seed of a draw."""
    if (stage is None) == (sample is None):
        raise LineageError("name a stage, or --sample N; not both")
    known = [job for job in graph.ordered() if job.rule != DATA]
    if stage is not None:
        jobs = [job for job in known if _named(job, stage.strip("/"))]
        if not jobs:
            rules = sorted({job.rule for job in known})
            raise LineageError(f"{stage!r}: no job of results/ is called so; rules are {rules}")
        return jobs, None
    if sample is None or sample < 1:
        raise LineageError(f"--sample is {sample}; it must be 1 or more")
    if seed is None:
        seed = int.from_bytes(os.urandom(4), "big")
    drawn = stream(seed, "rebuild").permutation(len(known))[:sample]
    return [known[number] for number in sorted(drawn.tolist())], seed


def _named(job: Job, stage: str) -> bool:
    """Whether a job is of a stage: its rule, or the beginning of its name in whole words."""
    short = job.name.partition("/")[2]
    return stage == job.rule or any(
        name == stage or name.startswith(stage + "/") for name in (short, job.name)
    )


def _notes(root: Path) -> list[str]:
    changed = git(root, "status", "--porcelain", "--untracked-files=no").decode().splitlines()
    return [f"{len(changed)} uncommitted changes are not in the clone"] if changed else []


def _bring_inputs(root: Path, clone: Path, graph: Graph, jobs: Sequence[Job]) -> list[str]:
    """Copy everything that was made before the jobs into the clone; check it on the way."""
    chosen = {job.name for job in jobs}
    before = {job.name: job for job in _closure(graph, jobs) if job.name not in chosen}
    notes: list[str] = []
    for job in order(graph, before.values()):
        for item in job.outputs:
            if job.rule == DATA and item.path != job.manifest:
                continue  # the folder of raw files is linked as a whole
            _copy(root / item.path, clone / item.path, item.sha256, notes)
    for job in graph.jobs.values():
        if job.rule == DATA:
            folder = Path(job.settings["data"]["folder"])
            if not folder.is_absolute() and ".." not in folder.parts:
                target = clone / folder
                if not target.exists():
                    target.symlink_to(root / folder, target_is_directory=True)
    # Records of Snakemake do not travel: without them it goes by time, and copies are all new.
    return notes


def _closure(graph: Graph, jobs: Iterable[Job]) -> list[Job]:
    found: dict[str, Job] = {}
    queue = list(jobs)
    while queue:
        for earlier in graph.before(queue.pop()):
            if earlier.name not in found:
                found[earlier.name] = earlier
                queue.append(earlier)
    return list(found.values())


def _copy(source: Path, target: Path, sha256: str, notes: list[str]) -> None:
    if not source.is_file():
        raise LineageError(f"{source} is missing; dvc pull brings it")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    if hash_file(target).sha256 != sha256:
        notes.append(f"{source.name}, which is read, is not what its manifest says: run verify")


def _run(clone: Path, jobs: Sequence[Job], run: Invocation) -> None:
    """Run the chosen jobs, and no other rule, in the clone."""
    rules = sorted({_rule_in_snakefile(job) for job in jobs})
    command = [
        sys.executable,
        "-m",
        "snakemake",
        *run.words(),
        "--nolock",
        "--quiet",
        "--allowed-rules",
        *rules,
        "--force",
        *(job.manifest for job in jobs),
    ]
    if run.config:
        command += ["--config", *run.config]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(clone / "src"),
        "PYTHONHASHSEED": "0",
        "DVC_STAGE": "rebuild",  # what runs after Snakemake elsewhere does not run here
    }
    ran = subprocess.run(
        command,
        cwd=clone,
        env=environment,
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if ran.returncode:
        last = "\n".join(ran.stdout.splitlines()[-LOG_LINES:])
        raise LineageError(f"snakemake failed in the clone; its last lines:\n{last}")


def _rule_in_snakefile(job: Job) -> str:
    """Return the rule's name; the rules of tasks are called after their task."""
    return f"tasks_{job.name.rsplit('/', 1)[-1]}" if job.rule == "tasks" else job.rule


def _compare(root: Path, clone: Path, job: Job) -> Iterable[Outcome]:
    """Hold every output of a job against the file here."""
    promise = promise_of(job)
    for item in job.outputs:
        built = clone / item.path
        if not built.is_file():
            yield Outcome(item.path, job.name, promise, ABSENT, "the rebuilt job does not write it")
            continue
        sha256 = hash_file(built).sha256
        if sha256 == item.sha256:
            yield Outcome(item.path, job.name, promise, SAME, sha256[:12])
            continue
        detail = f"built {sha256[:12]}, here {item.sha256[:12]}"
        if promise == TOLERANT and (root / item.path).is_file():
            near, words = distance(root / item.path, built)
            yield Outcome(item.path, job.name, promise, WITHIN if near else DIFFERENT, words)
        else:
            yield Outcome(item.path, job.name, promise, DIFFERENT, detail)


def _against_lock(root: Path, clone: Path, jobs: Sequence[Job]) -> Iterable[Outcome]:
    """Hold what was built against `dvc.lock`, where its stage is exact."""
    built = {
        item.path: hash_file(clone / item.path).md5
        for job in jobs
        if promise_of(job) == EXACT
        for item in job.outputs
        if (clone / item.path).is_file()
    }
    hasher = Hasher(root)
    for item in Folder(root).lock().outputs:
        inside = [path for path in built if path == item.path or _below(path, item)]
        if not inside:
            continue
        job = next(job.name for job in jobs if inside[0] in {i.path for i in job.outputs})
        found = built[item.path] if not item.is_folder else _folder(root, item, built, hasher)
        if found != item.md5:
            detail = f"built md5 {found[:12]}, {LOCK} says {item.md5[:12]}: it was not built so"
            yield Outcome(item.path, job, EXACT, DIFFERENT, detail)


def _below(path: str, item: Tracked) -> bool:
    return item.is_folder and path.startswith(f"{item.path}/")


def _folder(root: Path, item: Tracked, built: dict[str, str], hasher: Hasher) -> str:
    """Return a folder's hash with the rebuilt files in place of those here."""
    from t5repro.lineage.store import files_below, folder_md5

    hashes = {}
    for path in files_below(root / item.path):
        name = Path(path).relative_to(root).as_posix()
        found = hasher.of(name)
        hashes[name.removeprefix(f"{item.path}/")] = built.get(name) or (found.md5 if found else "")
    return folder_md5(hashes)
