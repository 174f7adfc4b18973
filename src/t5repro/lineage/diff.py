"""Where two runs first diverge, and the cause: input, setting, code, environment or chance.

Jobs of equal name are compared in the order of the chain. A job diverges if its outputs differ and
something that it received differs as well: that is the cause. If only outputs of earlier jobs
differ, the job follows them and is listed as a follower. Code and environment are known from
records, code also from `dvc.lock`. The stage is called not deterministic only if all facts are
recorded on both sides and agree; otherwise the answer names those that are not known.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from t5repro.errors import LineageError, nearest
from t5repro.lineage.dvc_lock import Lock
from t5repro.lineage.facts import JobFacts, differences, facts_of_job, locked_code, unknown_facts
from t5repro.lineage.graph import DATA, Graph, Job, load_graph
from t5repro.lineage.store import RESULTS, Folder, open_store

INPUT, SETTING, CODE, ENVIRONMENT = "input", "setting", "code", "environment"
NONDETERMINISM, UNKNOWN, ABSENT = "nondeterminism", "unknown", "only on one side"
KINDS = {
    "settings": SETTING,
    "inputs": INPUT,
    "definitions": CODE,
    "sources": CODE,
    "locked_code": CODE,
    "rule_files": CODE,
    "imported": CODE,
    "environment": ENVIRONMENT,
}
CODES = ("definitions", "sources", "locked_code")  # the first that both sides know counts
MAX_CAUSES_SHOWN = 12
MAX_FOLLOWERS_SHOWN = 8
MAX_VALUE_CHARS = 80


@dataclass(frozen=True)
class Side:
    """One of two runs, or all runs of a checkout or revision.

    Attributes:
        name: as it was asked for.
        graph: the jobs of the checkout or revision.
        lock: of the same.
        run: the run; all of them if empty.
    """

    name: str
    graph: Graph
    lock: Lock
    run: str

    @cached_property
    def jobs(self) -> list[Job]:
        """The jobs of the side, in the order of the chain."""
        return [job for job in self.graph.ordered() if self.run in ("", _run_of(job))]

    @cached_property
    def runs(self) -> frozenset[str]:
        """The runs of the side."""
        return frozenset(map(_run_of, self.jobs))


@dataclass(frozen=True)
class Execution:
    """A job in one of two runs.

    Attributes:
        job: the job.
        facts: about it; paths are without the run, which may differ.
        job_inputs: the inputs that another job wrote.
    """

    job: Job
    facts: JobFacts
    job_inputs: frozenset[str]


@dataclass(frozen=True)
class Cause:
    """One difference between two runs of a job.

    Attributes:
        kind: one of the constants above.
        what: the file, setting or fact.
        a: its value in the first run.
        b: its value in the second run.
    """

    kind: str
    what: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Divergence:
    """A job with differing outputs, and not only because an earlier job's outputs do.

    Attributes:
        job: its name, without the run if each side is one run: its name may differ.
        causes: the differences.
        outputs: the files that differ.
    """

    job: str
    causes: tuple[Cause, ...]
    outputs: tuple[str, ...]

    @property
    def kinds(self) -> list[str]:
        """The kinds of its causes, each once."""
        return list(dict.fromkeys(cause.kind for cause in self.causes))

    def lines(self, summary: str) -> list[str]:
        """Return the divergence as lines of text."""
        lines = [f"{self.job}: {summary}"]
        for cause in self.causes[:MAX_CAUSES_SHOWN]:
            lines.append(f"  {cause.kind}  {cause.what}: {cause.a} | {cause.b}")
        if len(self.causes) > MAX_CAUSES_SHOWN:
            lines.append(f"  and {len(self.causes) - MAX_CAUSES_SHOWN} more (--json lists all)")
        if self.outputs:
            lines.append(f"  differing: {', '.join(self.outputs)}")
        return lines


@dataclass(frozen=True)
class Difference:
    """The comparison of two runs.

    Attributes:
        a: name of the first.
        b: name of the second.
        divergences: in the order of the chain.
        followers: jobs that differ only because of these.
        harmless: differences that changed no output.
        equal: number of jobs with equal outputs.
    """

    a: str
    b: str
    divergences: tuple[Divergence, ...]
    followers: tuple[str, ...]
    harmless: tuple[Divergence, ...]
    equal: int

    def to_json(self) -> dict[str, Any]:
        """Return the difference as plain JSON values."""
        divergences = [
            {**asdict(divergence), "kinds": divergence.kinds} for divergence in self.divergences
        ]
        return {
            "a": self.a,
            "b": self.b,
            "first": divergences[0] if divergences else None,
            "divergences": divergences,
            "followers": list(self.followers),
            "harmless": [asdict(divergence) for divergence in self.harmless],
            "equal": self.equal,
        }

    def to_text(self) -> str:
        """Return the difference as human-readable text."""
        if self.divergences:
            lines = [f"{self.a} and {self.b} first diverge at {self.divergences[0].job}"]
        else:
            lines = [f"{self.a} and {self.b} agree: {self.equal} jobs with equal outputs"]
        for divergence in self.divergences:
            lines += divergence.lines(", ".join(divergence.kinds))
        if self.followers:
            names = self.followers[:MAX_FOLLOWERS_SHOWN]
            more = len(self.followers) - len(names)
            suffix = f" and {more} more" if more else ""
            lines.append(f"differ only because of that: {', '.join(names)}{suffix}")
        for divergence in self.harmless:
            lines += divergence.lines("no output differs")
        return "\n".join(lines) + "\n"


def load_side(root: Path, state: str) -> Side:
    """Return one of two sides.

    Args:
        root: the checkout.
        state: a git revision, a folder with results, or the folder of a run.

    Raises:
        LineageError: it is none of these, or the run has no manifest.
        ArtifactError: DVC's cache does not have a manifest of the revision.
    """
    store = open_store(root, state)
    graph = load_graph(store)
    run = _run_in(store, Path(state)) if isinstance(store, Folder) else ""
    side = Side(state, graph, store.lock(), run)
    if run and not side.jobs:
        runs = sorted(set(map(_run_of, graph.jobs.values())))
        raise LineageError(
            f"{state}: no manifest of run {run!r}; there are {runs}{nearest(run, runs)}"
        )
    return side


def _run_in(store: Folder, folder: Path) -> str:
    """Return the run whose folder, or part of it, a folder of a checkout is; "" if of none."""
    top, *below = (*folder.resolve().relative_to(store.root).parts, "")
    return below[0] if top == RESULTS else ""


def _run_of(job: Job) -> str:
    return job.name.partition("/")[0]


def compare(a: Side, b: Side) -> Difference:
    """Return where two runs diverge, and why; of several runs those of equal names are compared."""
    if max(len(a.runs), len(b.runs)) > 1:
        first_jobs, second_jobs = (_executions(side, a.runs & b.runs) for side in (a, b))
        of_one_side = sorted(a.runs ^ b.runs)
    else:
        first_jobs, second_jobs, of_one_side = _executions(a), _executions(b), []
    divergences: list[Divergence] = []
    followers: list[str] = []
    harmless: list[Divergence] = []
    equal = 0
    # A job of one run only keeps its position in the order of that run.
    for name in dict.fromkeys([*first_jobs, *second_jobs]):
        if name not in first_jobs or name not in second_jobs:
            divergences.append(_only_on_one_side(name, first_jobs, second_jobs))
            continue
        first, second = first_jobs[name], second_jobs[name]
        outputs = tuple(
            difference.name for difference in differences(first.facts, second.facts, "outputs")
        )
        causes = _causes(first, second)
        if not outputs:
            equal += 1
            if causes:
                harmless.append(Divergence(name, tuple(causes), ()))
        elif causes:
            divergences.append(Divergence(name, tuple(causes), outputs))
        elif _follows(first, second):
            followers.append(name)
        else:
            divergences.append(
                Divergence(name, (_unexplained(first.facts, second.facts),), outputs)
            )
    # Last: what both sides have says more.
    divergences += [_only_on_one_side(run, a.runs, b.runs) for run in of_one_side]
    return Difference(a.name, b.name, tuple(divergences), tuple(followers), tuple(harmless), equal)


def _only_on_one_side(name: str, first: Collection[str], second: Collection[str]) -> Divergence:
    presence = ("present" if name in names else "absent" for names in (first, second))
    return Divergence(name, (Cause(ABSENT, name, *presence),), ())


def _executions(side: Side, runs: Collection[str] | None = None) -> dict[str, Execution]:
    """Return name -> job of some runs, or name without the run -> job, in the chain's order."""
    if runs is not None:
        return {job.name: _execution(job, side) for job in side.jobs if _run_of(job) in runs}
    return {job.name.partition("/")[2] or job.name: _execution(job, side) for job in side.jobs}


def _execution(job: Job, side: Side) -> Execution:
    facts = facts_of_job(job)
    settings, inputs, outputs = (
        dict(mapping or {}) for mapping in (facts.settings, facts.inputs, facts.outputs)
    )
    outputs.pop(job.manifest, None)  # it only repeats the others
    if job.rule == DATA:
        outputs = inputs  # the raw files of the run
        settings.pop("data.sources", None)  # a list of all files; the raw inputs name the one
    facts = replace(
        facts,
        settings=settings,
        inputs=_without_runs(inputs),
        outputs=_without_runs(outputs),
        locked_code=_locked_code(job, side.lock),
    )
    job_inputs = (
        _without_run(artifact.path)
        for artifact in job.inputs
        if (writer := side.graph.job_of(artifact)) is not None and writer.rule != DATA
    )
    return Execution(job, facts, frozenset(job_inputs))


def _locked_code(job: Job, lock: Lock) -> Mapping[str, str]:
    _, _, node, *_ = (*job.name.split("/"), "", "")
    stages = (job.rule, f"{job.rule}-{node}", f"{job.rule}_{node}")
    stage = next((lock.stages[name] for name in stages if name in lock.stages), None)
    return locked_code(stage) if stage else {}


def _without_runs(hashes: Mapping[str, str]) -> dict[str, str]:
    return {_without_run(path): sha256 for path, sha256 in hashes.items()}


def _without_run(path: str) -> str:
    folder, _, below = path.partition("/")
    return below.partition("/")[2] if folder == RESULTS else path


def _follows(first: Execution, second: Execution) -> bool:
    """Return whether an input differs that an earlier job wrote."""
    inputs = differences(first.facts, second.facts, "inputs")
    return any(difference.name in first.job_inputs | second.job_inputs for difference in inputs)


def _causes(first: Execution, second: Execution) -> list[Cause]:
    """Return the differences in settings, raw inputs, code and environment."""
    job_inputs = first.job_inputs | second.job_inputs  # raw in one run, built in the other
    compared = ("settings", "inputs", *_code(first.facts, second.facts))
    return [
        Cause(
            KINDS[difference.fact],
            difference.name,
            _value(difference.first, difference.fact),
            _value(difference.second, difference.fact),
        )
        for difference in differences(
            first.facts, second.facts, *compared, "rule_files", "imported", "environment"
        )
        if difference.fact != "inputs" or difference.name not in job_inputs
    ]


def _code(first: JobFacts, second: JobFacts) -> list[str]:
    """Return the first kind of hash of the code that both sides have."""
    return [name for name in CODES if getattr(first, name) and getattr(second, name)][:1]


def _unexplained(first: JobFacts, second: JobFacts) -> Cause:
    """Return the cause of different outputs if no recorded fact differs."""
    code = _code(first, second)
    unknown = [] if code else [CODE]
    unknown += unknown_facts(first, second, "rule_files", "imported", "environment")
    if unknown:
        text = f"all that was recorded agrees; not recorded on both sides: {', '.join(unknown)}"
        return Cause(UNKNOWN, text, None, None)
    text = (
        "inputs, settings, code, packages, interpreter, variables, loaded libraries and "
        "processor agree"
    )
    return Cause(NONDETERMINISM, text, None, None)


def _value(value: Any, fact: str) -> str | None:
    """Return a hash as it is, another value as JSON, truncated if it is long."""
    if value is None:
        return None
    is_json = fact in ("settings", "environment")
    text = json.dumps(value, sort_keys=True, ensure_ascii=False) if is_json else str(value)
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
