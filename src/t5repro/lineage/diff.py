"""Where two runs first diverge, and the cause: input, setting, code, environment or chance.

Jobs of equal name are compared in the order of the chain. A job diverges if its outputs differ and
something that it received differs as well: that is the cause. If only outputs of earlier jobs
differ, the job follows them and is listed as a follower. Code and environment are known from
records, code also from `dvc.lock`. The stage is called not deterministic only if all facts are
recorded on both sides and agree; otherwise the answer names those that are not known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.lineage.dvc_lock import Lock
from t5repro.lineage.graph import DATA, Artifact, Graph, Job, load_graph
from t5repro.lineage.job_code import locked_code, recorded_bytes, recorded_definitions
from t5repro.lineage.store import RESULTS, open_store
from t5repro.lineage.trace import leaves_of

INPUT, SETTING, CODE, ENVIRONMENT = "input", "setting", "code", "environment"
NONDETERMINISM, UNKNOWN, ABSENT = "nondeterminism", "unknown", "only on one side"
# Facts of a record, by their place in it. All of them must agree before chance is the cause.
MACHINE_FACTS = (
    "python",
    "interpreter",
    "system",
    "processor",
    "processors",
    "instruction_sets",
    "libraries",
    "locks",
    "packages",
    "altered",
    "variables",
    "search_path",
    "start_files",
)
END_FACTS = ("foreign", "shared_libraries", "forged_byte_code")
MAX_CAUSES_SHOWN = 12
MAX_FOLLOWERS_SHOWN = 8
MAX_VALUE_CHARS = 80


@dataclass(frozen=True)
class Side:
    """One of two runs."""

    name: str
    graph: Graph
    lock: Lock


@dataclass(frozen=True)
class Execution:
    """A job in one of two runs."""

    job: Job
    side: Side

    @property
    def raw_inputs(self) -> dict[str, str]:
        """Path without the run -> SHA-256 of the raw files that the job read."""
        if self.job.rule == DATA:
            return self.outputs
        return {path: sha256 for path, sha256 in self.inputs.items() if path not in self.job_inputs}

    @property
    def inputs(self) -> dict[str, str]:
        """Path without the run -> SHA-256 of all that the job read."""
        return _hashes(self.job.inputs)

    @property
    def job_inputs(self) -> set[str]:
        """Paths without the run of the inputs that another job wrote."""
        return {
            _without_run(artifact.path)
            for artifact in self.job.inputs
            if (writer := self.side.graph.job_of(artifact)) is not None and writer.rule != DATA
        }

    @property
    def outputs(self) -> dict[str, str]:
        """Path without the run -> SHA-256; without the manifest, which only repeats the others."""
        return _hashes(output for output in self.job.outputs if output.path != self.job.manifest)

    @property
    def settings(self) -> dict[str, str]:
        """Dotted name -> JSON text of the settings that the job received."""
        leaves = dict(leaves_of(self.job.settings))
        if self.job.rule == DATA:
            leaves.pop("data.sources", None)  # a list of all files; the raw inputs name the one
        return leaves

    @property
    def codes(self) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """Path -> hash of the code, by definitions, bytes and `dvc.lock`; empty if unknown."""
        return (
            recorded_definitions(self.job.record),
            recorded_bytes(self.job.record),
            self._locked_code,
        )

    @property
    def _locked_code(self) -> dict[str, str]:
        _, _, node, *_ = (*self.job.name.split("/"), "", "")
        rule = self.job.rule
        for stage in (rule, f"{rule}-{node}", f"{rule}_{node}"):
            if stage in self.side.lock.stages:
                return locked_code(self.side.lock.stages[stage])
        return {}

    @property
    def environment(self) -> dict[str, Any]:
        """Fact -> value of the environment that ran the job, of all facts that are recorded."""
        machine, end = self._start.get("machine") or {}, self.job.record.get("end") or {}
        facts = {name: machine.get(name) for name in (*MACHINE_FACTS, "installed")}
        facts |= {name: end.get(name) for name in (*END_FACTS, "devices")}
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def code_besides(self) -> dict[str, Any]:
        """Rule files and imported files outside of the closure, of those that are recorded."""
        end = self.job.record.get("end") or {}
        facts = {"rule files": self._start.get("workflow"), "imported files": end.get("imported")}
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def unknown(self) -> list[str]:
        """What the record does not contain, of all that must agree before chance is the cause."""
        closure = [] if any(self.codes) else ["code"]
        besides = [
            name for name in ("rule files", "imported files") if name not in self.code_besides
        ]
        environment = self.environment
        facts = [name for name in (*MACHINE_FACTS, *END_FACTS) if name not in environment]
        if len(facts) == len(MACHINE_FACTS) + len(END_FACTS):
            facts = ["environment"]
        return closure + besides + [name.replace("_", " ") for name in facts]

    @property
    def _start(self) -> dict[str, Any]:
        return self.job.record.get("start") or {}


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
    """A job whose outputs differ, and not only because an earlier job's outputs do.

    Attributes:
        job: its name without the run, which may differ.
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
    """Return one of two runs.

    Args:
        root: the checkout.
        state: a git revision or a folder with results.

    Raises:
        LineageError: it is neither.
        ArtifactError: DVC's cache does not have a manifest of the revision.
    """
    store = open_store(root, state)
    return Side(state, load_graph(store), store.lock())


def compare(a: Side, b: Side) -> Difference:
    """Return where two runs diverge, and why."""
    first_jobs, second_jobs = _executions(a), _executions(b)
    divergences: list[Divergence] = []
    followers: list[str] = []
    harmless: list[Divergence] = []
    equal = 0
    # A job of one run only keeps its position in the order of that run.
    for name in dict.fromkeys([*first_jobs, *second_jobs]):
        if name not in first_jobs or name not in second_jobs:
            presence = (
                "present" if name in jobs else "absent" for jobs in (first_jobs, second_jobs)
            )
            divergences.append(Divergence(name, (Cause(ABSENT, name, *presence),), ()))
            continue
        first, second = first_jobs[name], second_jobs[name]
        outputs = tuple(_differing(first.outputs, second.outputs))
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
            divergences.append(Divergence(name, (_unexplained(first, second),), outputs))
    return Difference(a.name, b.name, tuple(divergences), tuple(followers), tuple(harmless), equal)


def _executions(side: Side) -> dict[str, Execution]:
    """Return name without the run -> job, in the order of the chain."""
    jobs = side.graph.ordered()
    return {job.name.partition("/")[2] or job.name: Execution(job, side) for job in jobs}


def _hashes(artifacts: Iterable[Artifact]) -> dict[str, str]:
    return {_without_run(artifact.path): artifact.sha256 for artifact in artifacts}


def _without_run(path: str) -> str:
    folder, _, below = path.partition("/")
    return below.partition("/")[2] if folder == RESULTS else path


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    names = first.keys() | second.keys()
    return sorted(name for name in names if first.get(name) != second.get(name))


def _follows(first: Execution, second: Execution) -> bool:
    """Return whether an input differs that an earlier job wrote."""
    differing = set(_differing(first.inputs, second.inputs))
    return bool(differing & (first.job_inputs | second.job_inputs))


def _causes(first: Execution, second: Execution) -> list[Cause]:
    """Return the differences in settings, raw inputs, code and environment."""
    job_inputs = first.job_inputs | second.job_inputs  # raw in one run, built in the other
    raw = (
        {path: sha256 for path, sha256 in execution.raw_inputs.items() if path not in job_inputs}
        for execution in (first, second)
    )
    causes = _unequal(SETTING, first.settings, second.settings) + _unequal(INPUT, *raw)
    # An unknown side is not a difference: the first kind of hash that both sides have counts.
    codes = next((pair for pair in zip(first.codes, second.codes, strict=True) if all(pair)), None)
    if codes is not None:
        causes += _unequal(CODE, *codes)
    # A fact that only one side recorded is no difference.
    for name in sorted(first.code_besides.keys() & second.code_besides.keys()):
        files = (first.code_besides[name], second.code_besides[name])
        causes += _unequal(CODE, *(dict(leaves_of(side)) for side in files))
    common = first.environment.keys() & second.environment.keys()
    environments = (
        dict(leaves_of({name: side.environment[name] for name in common}))
        for side in (first, second)
    )
    return causes + _unequal(ENVIRONMENT, *environments)


def _unexplained(first: Execution, second: Execution) -> Cause:
    """Return the cause of different outputs if no recorded fact differs."""
    unknown = list(dict.fromkeys([*first.unknown, *second.unknown]))
    if unknown:
        text = f"all that was recorded agrees; not recorded on both sides: {', '.join(unknown)}"
        return Cause(UNKNOWN, text, None, None)
    text = (
        "inputs, settings, code, packages, interpreter, variables, loaded libraries and "
        "processor agree"
    )
    return Cause(NONDETERMINISM, text, None, None)


def _unequal(kind: str, first: Mapping[str, str], second: Mapping[str, str]) -> list[Cause]:
    return [
        Cause(kind, name, _truncated(first.get(name)), _truncated(second.get(name)))
        for name in _differing(first, second)
    ]


def _truncated(value: str | None) -> str | None:
    if value is None or len(value) <= MAX_VALUE_CHARS:
        return value
    return value[: MAX_VALUE_CHARS - 1] + "…"
