"""Where two runs part first, and whether an input, a setting, code, environment or chance did it.

Jobs of equal name are held beside each other in the order of the chain. A job parts when its
outputs differ. If the job that wrote a differing input parts as well, this one only follows; what
is named is where nothing before it differs. There, what differs is the cause; if nothing differs
that was recorded, the stage is not deterministic. Code and environment are known from records,
or, for code, from `dvc.lock`; where they are not, the answer says so and does not guess.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t5repro.lineage.graph import DATA, Graph, Job, load_graph
from t5repro.lineage.store import Lock, open_store
from t5repro.lineage.trace import leaves_of

INPUT, SETTING, CODE, ENVIRONMENT = "input", "setting", "code", "environment"
NONDETERMINISM, UNKNOWN, ABSENT = "nondeterminism", "unknown", "only on one side"
MACHINE_FACTS = ("python", "processor", "system", "libraries", "locks")


@dataclass(frozen=True)
class Side:
    """One of two runs."""

    name: str
    graph: Graph
    lock: Lock


@dataclass(frozen=True)
class Cause:
    """One thing that differs.

    Attributes:
        kind: one of the words above.
        what: the file, setting or fact.
        a: what the first run has.
        b: what the second has.
    """

    kind: str
    what: str
    a: str | None
    b: str | None


@dataclass(frozen=True)
class Parting:
    """A job whose outputs differ while nothing before it does.

    Attributes:
        job: its name without the run, which may be called otherwise.
        causes: what differs.
        outputs: files that differ.
    """

    job: str
    causes: tuple[Cause, ...]
    outputs: tuple[str, ...]

    @property
    def kinds(self) -> list[str]:
        """The kinds of its causes, each once."""
        return list(dict.fromkeys(cause.kind for cause in self.causes))


@dataclass(frozen=True)
class Difference:
    """What two runs differ in.

    Attributes:
        a: name of the first.
        b: name of the second.
        partings: where they part, the first one first.
        followers: jobs that differ only because those do.
        harmless: differences that changed no output.
        equal: jobs with equal outputs.
    """

    a: str
    b: str
    partings: tuple[Parting, ...]
    followers: tuple[str, ...]
    harmless: tuple[Parting, ...]
    equal: int

    def to_json(self) -> dict[str, Any]:
        """Return the difference as plain JSON values."""
        partings = [{**asdict(item), "kinds": item.kinds} for item in self.partings]
        return {
            "a": self.a,
            "b": self.b,
            "first": partings[0] if partings else None,
            "partings": partings,
            "followers": list(self.followers),
            "harmless": [asdict(item) for item in self.harmless],
            "equal": self.equal,
        }

    def to_text(self) -> str:
        """Return the difference for a person."""
        if not self.partings:
            lines = [f"{self.a} and {self.b} agree: {self.equal} jobs with equal outputs"]
        else:
            lines = [f"{self.a} and {self.b} part first at {self.partings[0].job}"]
        for item in self.partings:
            lines += _lines(item, ", ".join(item.kinds))
        if self.followers:
            shown = ", ".join(self.followers[:8])
            more = f" and {len(self.followers) - 8} more" if len(self.followers) > 8 else ""
            lines.append(f"differ only because of that: {shown}{more}")
        for item in self.harmless:
            lines += _lines(item, "no output differs")
        return "\n".join(lines) + "\n"


def _lines(item: Parting, words: str) -> list[str]:
    lines = [f"{item.job}: {words}"]
    lines += [f"  {c.kind}  {c.what}: {c.a} | {c.b}" for c in item.causes[:12]]
    if len(item.causes) > 12:
        lines.append(f"  and {len(item.causes) - 12} more (--json lists all)")
    if item.outputs:
        lines.append(f"  differing: {', '.join(item.outputs)}")
    return lines


def load_side(root: Path, place: str) -> Side:
    """Return one of two runs.

    Args:
        root: the checkout.
        place: a git revision or a folder with results.

    Raises:
        LineageError: it is neither.
        ArtifactError: DVC's cache lacks a manifest of the revision.
    """
    store = open_store(root, place)
    return Side(place, load_graph(store), store.lock())


def compare(a: Side, b: Side) -> Difference:
    """Return where two runs part, and why."""
    ours, theirs = _jobs(a.graph), _jobs(b.graph)
    # What one side lacks comes at its place on the side that has it.
    ordered = list(dict.fromkeys([*_names(a.graph), *_names(b.graph)]))
    differing = {name: _differing(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()}
    partings: list[Parting] = []
    followers: list[str] = []
    harmless: list[Parting] = []
    for name in ordered:
        if name not in ours or name not in theirs:
            missing = Cause(ABSENT, name, *(_said(name in side) for side in (ours, theirs)))
            partings.append(Parting(name, (missing,), ()))
            continue
        causes = _causes(a, b, ours[name], theirs[name])
        if not differing[name]:
            if causes:
                harmless.append(Parting(name, tuple(causes), ()))
            continue
        if not causes and _follows(a.graph, ours[name], b.graph, theirs[name]):
            followers.append(name)
        else:
            if not causes:
                causes = [_chance(a, b, ours[name], theirs[name])]
            partings.append(Parting(name, tuple(causes), tuple(differing[name])))
    equal = sum(not files for files in differing.values())
    return Difference(a.name, b.name, tuple(partings), tuple(followers), tuple(harmless), equal)


def _said(there: bool) -> str:
    return "has it" if there else "has it not"


def _jobs(graph: Graph) -> dict[str, Job]:
    return {_short(job): job for job in graph.jobs.values()}


def _names(graph: Graph) -> list[str]:
    return [_short(job) for job in graph.ordered()]


def _short(job: Job) -> str:
    return job.name.partition("/")[2] or job.name


def _contents(items: Iterable[Any], *, besides: str = "") -> dict[str, str]:
    """Return the path without the run -> SHA-256."""
    return {_place(item.path): item.sha256 for item in items if item.path != besides}


def _place(path: str) -> str:
    words = path.split("/")
    return "/".join(words[2:]) if words[0] == "results" else path


def _differing(a: Job, b: Job) -> list[str]:
    """Return outputs that differ; the manifest only repeats what they and the inputs are."""
    ours, theirs = (
        _contents(a.outputs, besides=a.manifest),
        _contents(b.outputs, besides=b.manifest),
    )
    return sorted(
        name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)
    )


def _follows(graph_a: Graph, a: Job, graph_b: Graph, b: Job) -> bool:
    """Whether an input differs that another job made: then the reason lies before this job."""
    ours, theirs = _contents(a.inputs), _contents(b.inputs)
    made = {
        _place(i.path)
        for g, j in ((graph_a, a), (graph_b, b))
        for i in j.inputs
        if (source := g.job_of(i)) is not None and source.rule != DATA
    }
    return any(
        ours.get(name) != theirs.get(name) and name in made for name in ours.keys() | theirs.keys()
    )


def _causes(a: Side, b: Side, ours: Job, theirs: Job) -> list[Cause]:
    """Return what differs at a job itself: settings, raw inputs, code, environment."""
    return [
        *_settings(ours, theirs),
        *_inputs(a.graph, ours, b.graph, theirs),
        *_code(a, b, ours, theirs),
        *_environment(ours, theirs),
    ]


def _settings(ours: Job, theirs: Job) -> list[Cause]:
    skipped = "data.sources" if ours.rule == DATA else "\0"  # the files say it better
    a = {n: v for n, v in leaves_of(ours.settings) if n != skipped}
    b = {n: v for n, v in leaves_of(theirs.settings) if n != skipped}
    return _unequal(SETTING, a, b)


def _inputs(graph_a: Graph, ours: Job, graph_b: Graph, theirs: Job) -> list[Cause]:
    """Return raw inputs that differ; those that a job made are that job's matter."""
    if ours.rule == DATA:
        return _unequal(
            INPUT,
            _contents(ours.outputs, besides=ours.manifest),
            _contents(theirs.outputs, besides=theirs.manifest),
        )
    a = _contents(ours.inputs)
    b = _contents(theirs.inputs)
    made = {
        _place(item.path)
        for graph, job in ((graph_a, ours), (graph_b, theirs))
        for item in job.inputs
        if (source := graph.job_of(item)) is not None and source.rule != DATA
    }
    return _unequal(
        INPUT,
        {name: sha for name, sha in a.items() if name not in made},
        {name: sha for name, sha in b.items() if name not in made},
    )


def _code(a: Side, b: Side, ours: Job, theirs: Job) -> list[Cause]:
    ran_a, ran_b = _recorded_code(ours), _recorded_code(theirs)
    if not (ran_a and ran_b):  # the lock names the code of a stage as what it depends on
        ran_a, ran_b = _locked_code(a.lock, ours), _locked_code(b.lock, theirs)
    return _unequal(CODE, ran_a, ran_b) if ran_a and ran_b else []


def _recorded_code(job: Job) -> dict[str, str]:
    return dict((job.record.get("start") or {}).get("code") or {})


def _locked_code(lock: Lock, job: Job) -> dict[str, str]:
    _, _, node, *_ = (*job.name.split("/"), "", "")
    for stage in (job.rule, f"{job.rule}-{node}", f"{job.rule}_{node}"):
        if found := lock.dependencies(stage):
            return {name: md5 for name, md5 in found.items() if name.endswith(".py")}
    return {}


def _environment(ours: Job, theirs: Job) -> list[Cause]:
    a, b = _machine(ours), _machine(theirs)
    return _unequal(ENVIRONMENT, a, b) if a and b else []


def _machine(job: Job) -> dict[str, str]:
    machine = (job.record.get("start") or {}).get("machine") or {}
    facts = {name: machine[name] for name in MACHINE_FACTS if machine.get(name)}
    devices = (job.record.get("end") or {}).get("devices")
    return dict(leaves_of({**facts, **({"devices": devices} if devices else {})}))


def _chance(a: Side, b: Side, ours: Job, theirs: Job) -> Cause:
    """Return what is left when nothing that is known differs."""
    unknown = [
        word
        for word, known in (
            (
                "code",
                (_recorded_code(ours) or _locked_code(a.lock, ours))
                and (_recorded_code(theirs) or _locked_code(b.lock, theirs)),
            ),
            ("environment", _machine(ours) and _machine(theirs)),
        )
        if not known
    ]
    if unknown:
        what = f"inputs and settings agree; {' and '.join(unknown)} were not recorded on both sides"
        return Cause(UNKNOWN, what, None, None)
    return Cause(NONDETERMINISM, "inputs, settings, code and environment agree", None, None)


def _unequal(kind: str, a: Mapping[str, str], b: Mapping[str, str]) -> list[Cause]:
    names: Sequence[str] = sorted(a.keys() | b.keys())
    return [
        Cause(kind, name, _cut(a.get(name)), _cut(b.get(name)))
        for name in names
        if a.get(name) != b.get(name)
    ]


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= 80 else value[:79] + "…"
