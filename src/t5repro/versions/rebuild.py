"""Rebuilds jobs in a clean clone and compares: evidence that results come from this code.

The clone has the committed code and nothing else. The inputs of the selected jobs are copied into
it, checked against their manifests, and Snakemake may run the selected rules only. Every file is
compared with the one in the checkout and with `dvc.lock`: byte for byte if its stage is exact,
else within `lineage.tolerance`, as after training on a GPU or TPU.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import LineageError
from t5repro.lineage.facts import facts_of_job, facts_of_record, unlike_packages
from t5repro.lineage.git import git
from t5repro.lineage.graph import DATA, Graph, Job, load_graph, topological_order
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.record import read_record
from t5repro.lineage.store import Folder
from t5repro.randomness import stream
from t5repro.versions.clean_environment import CleanEnvironment, scrubbed_variables
from t5repro.versions.rebuilt_files import FileOutcome, compare_outputs, compare_with_lock

LOG_LINES = 15


@dataclass(frozen=True)
class Invocation:
    """The Snakemake options of the run to rebuild."""

    profile: str = "local"
    configfiles: tuple[Path, ...] = ()
    config: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the profile and the run files as arguments of Snakemake."""
        arguments = ["--profile", self.profile]
        if self.configfiles:
            arguments += ["--configfile", *map(str, self.configfiles)]
        return arguments


@dataclass(frozen=True)
class Rebuild:
    """The result of a rebuild.

    Attributes:
        commit: of the clone.
        seed: of the random sample; None without one.
        outcomes: one per file.
        notes: warnings for the reader, such as uncommitted changes.
    """

    commit: str
    seed: int | None
    outcomes: tuple[FileOutcome, ...]
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every file came out as its stage promises."""
        return all(outcome.agrees for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "holds": self.holds,
            "commit": self.commit,
            "seed": self.seed,
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """Return the result as human-readable text."""
        sample = "" if self.seed is None else f"; repeat the sample with --seed {self.seed}"
        lines = [f"rebuilt at {self.commit[:12]}{sample}"]
        lines += [
            f"{outcome.result:<16}  {outcome.path}  {outcome.detail}" for outcome in self.outcomes
        ]
        lines += [f"note: {line}" for line in self.notes]
        wrong = [outcome for outcome in self.outcomes if not outcome.agrees]
        if wrong:
            lines.append(
                f"{len(wrong)} of {len(self.outcomes)} files are not the result of this code and "
                f"these inputs; first {wrong[0].path}"
            )
        else:
            lines.append(f"{len(self.outcomes)} files are the result of this code and these inputs")
        return "\n".join(lines) + "\n"


def rebuild(
    root: Path,
    stage: str | None,
    *,
    sample: int | None = None,
    seed: int | None = None,
    run: Invocation | None = None,
    clean: CleanEnvironment | None = None,
) -> Rebuild:
    """Rebuild jobs in a clean clone and compare.

    Args:
        root: the checkout.
        stage: a rule, ``rule/node``, or ``run/rule/node``; None with `sample`.
        sample: number of jobs to select at random.
        seed: of the sample; if absent, an unpredictable one is used.
        run: the Snakemake options of the run.
        clean: the environment to make for a clean rebuild; the one in use if absent.

    Raises:
        LineageError: no such stage, packages cannot be installed, or Snakemake failed.
    """
    root = root.resolve()
    graph = load_graph(Folder(root))
    jobs, seed = _select(graph, stage, sample, seed)
    notes = _notes(root)
    with tempfile.TemporaryDirectory(prefix="t5repro-rebuild-") as folder:
        clone = Path(folder) / "clone"
        # --no-hardlinks: the clone must not share files with the checkout that it checks.
        git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(clone))
        commit = git(clone, "rev-parse", "HEAD").decode().strip()
        if clean is None:
            notes += _copy_inputs(root, clone, graph, jobs)
            _run_snakemake(clone, jobs, run or Invocation())
        else:
            _link_raw_data(root, clone, graph)
            python = clean.make(clone, Path(folder) / "environment")
            home = Path(folder) / "home"
            home.mkdir()
            _run_snakemake_clean(clone, jobs, run or Invocation(), python, home)
            jobs = [*_earlier_jobs(graph, jobs), *jobs]
            notes += _unlike_packages(root, clone, jobs)
        outcomes = [outcome for job in jobs for outcome in compare_outputs(root, clone, job)]
        outcomes += compare_with_lock(root, clone, jobs)
    return Rebuild(commit, seed, tuple(outcomes), tuple(notes))


def _select(
    graph: Graph, stage: str | None, sample: int | None, seed: int | None
) -> tuple[list[Job], int | None]:
    """Return the jobs to build, in the order of the chain, and the seed of the sample."""
    # Exactly one of the two: a stage and a sample would contradict each other.
    if stage is not None and sample is not None:
        raise LineageError(f"name a stage or --sample N, not both: {stage!r}, {sample}")
    if stage is None and sample is None:
        raise LineageError("name a stage, such as t5repro rebuild --clean vocab, or --sample N")
    candidates = [job for job in graph.ordered() if job.rule != DATA]
    if stage is not None:
        jobs = [job for job in candidates if _is_of_stage(job, stage.strip("/"))]
        if not jobs:
            rules = sorted({job.rule for job in candidates})
            raise LineageError(f"{stage!r}: no such job in results/; rules are {rules}")
        return jobs, None
    if sample is None or sample < 1:
        raise LineageError(f"--sample is {sample}; it must be 1 or more")
    if seed is None:
        # Unpredictable, so that nobody can prepare only the jobs that will be checked.
        seed = int.from_bytes(os.urandom(4), "big")
    positions = stream(seed, "rebuild").permutation(len(candidates))[:sample]
    return [candidates[position] for position in sorted(positions.tolist())], seed


def _is_of_stage(job: Job, stage: str) -> bool:
    """Return whether a stage is the rule of a job, or the start of its name at a slash."""
    name_in_run = job.name.partition("/")[2]
    return stage == job.rule or any(
        name == stage or name.startswith(stage + "/") for name in (name_in_run, job.name)
    )


def _notes(root: Path) -> list[str]:
    output = git(root, "status", "--porcelain", "--untracked-files=no")
    count = len(output.decode().splitlines())
    return [f"{count} uncommitted changes are not in the clone"] if count else []


def _copy_inputs(root: Path, clone: Path, graph: Graph, jobs: Sequence[Job]) -> list[str]:
    """Copy the outputs of all earlier jobs into the clone; return a note for each altered one.

    Snakemake's own metadata is not copied. Without it Snakemake decides by time, and the copies are
    all newer than the missing outputs.
    """
    notes: list[str] = []
    for job in _earlier_jobs(graph, jobs, with_data=True):
        for artifact in job.outputs:
            if job.rule == DATA and artifact.path != job.manifest:
                continue  # the folder of raw files is linked as a whole
            notes += _copy(root / artifact.path, clone / artifact.path, artifact.sha256)
    _link_raw_data(root, clone, graph)
    return notes


def _link_raw_data(root: Path, clone: Path, graph: Graph) -> None:
    for job in graph.jobs.values():
        if job.rule == DATA:
            folder = Path(job.settings["data"]["folder"])
            # An absolute folder is found by the clone as it is.
            if not folder.is_absolute() and ".." not in folder.parts:
                target = clone / folder
                if not target.exists():
                    # A link, because a crawl may be too large to copy; jobs only read it.
                    target.symlink_to(root / folder, target_is_directory=True)


def _earlier_jobs(graph: Graph, jobs: Sequence[Job], *, with_data: bool = False) -> list[Job]:
    """Return the jobs that some jobs depend on, without these, in the order of the chain."""
    selection = {job.name for job in jobs}
    earlier_jobs = [
        job
        for job in _dependencies(graph, jobs)
        if job.name not in selection and (with_data or job.rule != DATA)
    ]
    return topological_order(graph, earlier_jobs)


def _dependencies(graph: Graph, jobs: Iterable[Job]) -> list[Job]:
    """Return all jobs that some jobs depend on."""
    dependencies: dict[str, Job] = {}
    queue = list(jobs)
    # Marked when they are found: two ways to a job would follow it twice.
    while queue:
        for earlier in graph.before(queue.pop()):
            if earlier.name not in dependencies:
                dependencies[earlier.name] = earlier
                queue.append(earlier)
    return list(dependencies.values())


def _copy(source: Path, target: Path, sha256: str) -> list[str]:
    if not source.is_file():
        raise LineageError(f"{source} is missing; restore it with dvc pull")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    # A note and no error: the outputs show whether it matters.
    if hash_file(target).sha256 == sha256:
        return []
    return [f"the input {source.name} differs from its manifest: run t5repro verify"]


def _run_snakemake(clone: Path, jobs: Sequence[Job], run: Invocation) -> None:
    """Run the selected jobs, and no other rule, in the clone."""
    rules = {name for job in jobs for name in _rules_in_snakefile(job)}
    # Every other rule must find its outputs in place: one that runs would hide a missing input.
    options = ["--allowed-rules", *sorted(rules), "--force"]
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        # The installed package is that of the checkout; the clone must run its own.
        "PYTHONPATH": str(clone / "src"),
    }
    _snakemake(clone, jobs, run, Path(sys.executable), options, variables)


def _run_snakemake_clean(
    clone: Path, jobs: Sequence[Job], run: Invocation, python: Path, home: Path
) -> None:
    """Run the selected jobs, and all that they depend on, in the clone."""
    _snakemake(clone, jobs, run, python, [], scrubbed_variables(python, home))


def _snakemake(
    clone: Path,
    jobs: Sequence[Job],
    run: Invocation,
    python: Path,
    options: Sequence[str],
    variables: Mapping[str, str],
) -> None:
    # Targets come first: --quiet and --config take all words that follow.
    command = [str(python), "-m", "snakemake", *(job.manifest for job in jobs)]
    command += [*run.arguments(), "--nolock", *options, "--quiet"]
    if run.config:
        command += ["--config", *run.config]
    process = subprocess.run(
        command,
        cwd=clone,
        env={
            **variables,
            "PYTHONHASHSEED": "0",  # as in the Makefile
            "DVC_STAGE": "rebuild",  # the Snakefile then neither rehydrates nor seals
        },
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if process.returncode:
        log = "\n".join(process.stdout.splitlines()[-LOG_LINES:])
        raise LineageError(f"snakemake failed in the clone; its last lines:\n{log}")


def _rules_in_snakefile(job: Job) -> tuple[str, ...]:
    """Return the possible names of the job's rule in the Snakefile.

    It has one rule for each task, and one for each node with other files than the first node.
    """
    node = job.name.rsplit("/", 1)[-1]
    return (f"tasks_{node}",) if job.rule == "tasks" else (job.rule, f"{job.rule}-{node}")


def _unlike_packages(root: Path, clone: Path, jobs: Iterable[Job]) -> list[str]:
    """Return a note for each package that a job of the checkout ran with other files."""
    notes: dict[str, str] = {}
    for job in jobs:
        rebuilt = Path("records", f"{job.name}.json")
        if not (clone / rebuilt).is_file():
            continue  # the job did not run in the clone
        facts, clean = facts_of_job(job), facts_of_record(read_record(clone / rebuilt))
        for name in unlike_packages(facts, clean):
            text = f"{job.name} ran with other files of {name} than the lock installs"
            notes.setdefault(name, text)
    return [notes[name] for name in sorted(notes)]
