"""The provenance of an artifact: all jobs and raw files that it depends on.

A score is named by its file and its task: ``results/demo/evaluate_score/baseline/
scores.json#glue_sst2``. Scoring and prediction are then restricted to the files of that task. A
fine-tuned model has seen every task of its mixture, so before prediction all files count.
"""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from t5repro.errors import LineageError
from t5repro.lineage.facts import leaves
from t5repro.lineage.graph import DATA, Artifact, Graph, Job, topological_order
from t5repro.lineage.record import End, Machine, Record, Start
from t5repro.lineage.store import Store
from t5repro.strict_json import parse_json

RULES_BY_TASK = ("evaluate_predict", "evaluate_score")  # they treat each task separately
SHOWN_LIBRARIES = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-tpu",
    "jax",
    "keras",
    "sentencepiece",
    "pyarrow",
)
# The variables that change which code runs.
CODE_VARIABLES = (
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
)
NO_LINES: Mapping[str, Sequence[str]] = {}
MAX_FILES_SHOWN = 4
MAX_SETTINGS_CHARS = 150


@dataclass(frozen=True)
class Trace:
    """An artifact and its provenance.

    Attributes:
        artifact: the artifact.
        part: the task of a score; empty for a whole file.
        value: the entry of that task in the file.
        jobs: the jobs that it depends on, each after its dependencies.
        inputs: job -> the inputs that count for the artifact.
        raw: the raw files, by path.
        broken: (job, input) for inputs that are neither the output of a job nor a raw file.
    """

    artifact: Artifact
    part: str
    value: Any
    jobs: tuple[Job, ...]
    inputs: Mapping[str, tuple[Artifact, ...]]
    raw: tuple[Artifact, ...]
    broken: tuple[tuple[str, Artifact], ...]


def trace(graph: Graph, store: Store, query: str) -> Trace:
    """Follow an artifact back to the raw files.

    Args:
        graph: of the state.
        store: the state; read for the value of a score.
        query: a path, the end of one, or the start of a SHA-256; a score file may be followed by
            ``#task``.

    Raises:
        LineageError: no artifact matches, or the file does not score the task.
    """
    # A path may not contain "#", which starts the task.
    name, _, part = query.partition("#")
    artifact = graph.find(name)
    value, other_tasks = _score_of(store, artifact, part) if part else (None, frozenset())
    inputs: dict[str, tuple[Artifact, ...]] = {}
    raw: dict[str, Artifact] = {}
    last_job = graph.job_of(artifact)
    # A manifest that lost its outputs leaves a file that jobs have read and no job wrote.
    orphan = last_job is None
    broken = [pair for pair in graph.broken if orphan and pair[1].key == artifact.key]
    # The job `data` ends a path: it only records raw files, and its manifest has no inputs.
    queue = deque([] if last_job is None else [last_job])
    if not broken and (last_job is None or last_job.rule == DATA):
        raw[artifact.path] = artifact
    while queue:
        job = queue.popleft()
        if job.name in inputs:  # reached by another path already
            continue
        inputs[job.name] = _inputs_of(job, other_tasks)
        for file in inputs[job.name]:
            earlier = graph.job_of(file)
            if earlier is None:
                raw[file.path] = file
                # Lists of withdrawn sources have no job either, but git keeps them.
                if (job.name, file) in graph.broken:
                    broken.append((job.name, file))
            elif earlier.rule == DATA:
                raw[file.path] = file
                queue.append(earlier)
            # A job that names its own output as input must not be followed for ever.
            elif earlier.name != job.name:
                queue.append(earlier)
    # The search found jobs by distance; a reader needs each after its dependencies.
    jobs = topological_order(graph, [graph.jobs[name] for name in inputs])
    raw_files = tuple(raw[path] for path in sorted(raw))
    return Trace(artifact, part, value, tuple(jobs), inputs, raw_files, tuple(broken))


def _score_of(store: Store, artifact: Artifact, task: str) -> tuple[Any, frozenset[str]]:
    """Return the entry of a task in a score file, and the names of the other tasks."""
    data = store.read(artifact.path)
    try:
        scores = parse_json(data)["tasks"]
        tasks = sorted(scores)
    except (ValueError, KeyError, TypeError) as error:
        raise LineageError(
            f"{artifact.path}#{task}: the file has no scores by task; leave #{task} out"
        ) from error
    if task not in scores:
        raise LineageError(f"{artifact.path}#{task}: no such task; the file scores {tasks}")
    # The names of the other tasks, because files are excluded by them: a file of no task stays.
    return scores[task], frozenset(tasks) - {task}


def _inputs_of(job: Job, other_tasks: frozenset[str]) -> tuple[Artifact, ...]:
    """Return the inputs of a job, without the files of other tasks if it treats tasks separately.

    A file belongs to a task if the file or its folder has the name of the task.
    """
    if job.rule not in RULES_BY_TASK:
        return job.inputs
    return tuple(
        file
        for file in job.inputs
        if not {PurePosixPath(file.path).stem, PurePosixPath(file.path).parent.name} & other_tasks
    )


def to_json(trace: Trace) -> dict[str, Any]:
    """Return a trace as plain JSON values."""
    return {
        "artifact": artifact_json(trace.artifact),
        "part": trace.part or None,
        "value": trace.value,
        "steps": [
            {
                "job": job.name,
                "rule": job.rule,
                "settings": job.settings,
                "counters": job.counters,
                "inputs": [artifact_json(file) for file in trace.inputs[job.name]],
                "outputs": [artifact_json(output) for output in job.outputs],
                "record": job.record.to_json() if job.record else None,
            }
            # From the score back to the crawl, as the text prints it.
            for job in reversed(trace.jobs)
        ],
        "raw": [artifact_json(file) for file in trace.raw],
        "broken": [{"job": name, **artifact_json(file)} for name, file in trace.broken],
    }


def artifact_json(artifact: Artifact) -> dict[str, Any]:
    """Return an artifact as plain JSON values."""
    return {"path": artifact.path, "sha256": artifact.sha256, "bytes": artifact.length}


def to_text(trace: Trace, graph: Graph, evidence: Mapping[str, Sequence[str]] = NO_LINES) -> str:
    """Return a trace as a tree; a job that several others depend on is printed in full once.

    Args:
        trace: the trace.
        graph: of the state.
        evidence: job -> further lines about it.
    """
    artifact = trace.artifact
    suffix = f"#{trace.part}" if trace.part else ""
    lines = [f"{artifact.path}{suffix}  {artifact.sha256[:12]}"]
    if trace.part:
        lines.append(f"  score {json.dumps(_metrics_of(trace.value))}")
    last_job = graph.job_of(artifact)
    if last_job is not None and last_job.name in trace.inputs:
        _add_job(last_job, trace, graph, evidence, "", set(), lines)
    lines.append(f"raw files: {len(trace.raw)}")
    lines += [f"  {file.path}  {file.sha256[:12]}  {file.length:,} bytes" for file in trace.raw]
    for name, file in trace.broken:
        lines.append(f"  {file.path}: read by {name}, but no job or raw file has this content")
    return "\n".join(lines) + "\n"


def _metrics_of(value: Any) -> Any:
    if isinstance(value, Mapping) and "metrics" in value:
        return value["metrics"]
    return value


def _add_job(
    job: Job,
    trace: Trace,
    graph: Graph,
    evidence: Mapping[str, Sequence[str]],
    indent: str,
    printed_jobs: set[str],
    lines: list[str],
) -> None:
    """Append the lines of a job and of the jobs that it depends on."""
    is_printed = job.name in printed_jobs
    lines.append(f"{indent}└─ {job.name}{'  (above)' if is_printed else ''}")
    # The tree of a shared job would repeat once for each seed.
    if is_printed:
        return
    printed_jobs.add(job.name)
    further = evidence.get(job.name, ())
    lines += [f"{indent}     {line}" for line in (*job_lines(job, trace), *further)]
    earlier_jobs = {}
    for file in trace.inputs[job.name]:
        earlier = graph.job_of(file)
        if earlier is not None and earlier.name != job.name:
            earlier_jobs[earlier.name] = earlier
    for earlier in earlier_jobs.values():
        _add_job(earlier, trace, graph, evidence, indent + "   ", printed_jobs, lines)


def job_lines(job: Job, trace: Trace) -> list[str]:
    """Return the description of a job: settings, steps, code, environment and files."""
    # The manifest is the job itself; its hash adds nothing to the line.
    outputs = [output for output in job.outputs if output.path != job.manifest]
    return [
        f"settings  {short_settings(job.settings)}",
        *_steps(job),
        *(f"{name:<8}  {value}" for name, value in record_lines(job.record).items()),
        f"read      {_short_files(trace.inputs[job.name])}",
        f"wrote     {_short_files(outputs)}",
    ]


def _steps(job: Job) -> list[str]:
    """Return the line of a training's steps; none of another job."""
    steps, last = (job.counters.get(name) for name in ("steps", "optimizer_step"))
    if not isinstance(steps, int) or not isinstance(last, int):
        return []
    return [f"steps     {steps:,}, after which the optimizer counts {last:,}"]


def _short_files(files: Sequence[Artifact]) -> str:
    first_files = files[:MAX_FILES_SHOWN]
    text = ", ".join(f"{PurePosixPath(file.path).name} {file.sha256[:8]}" for file in first_files)
    more = len(files) - len(first_files)
    return f"{text}{f' and {more} more' if more else ''}" or "nothing"


def short_settings(settings: Mapping[str, Any]) -> str:
    """Return the settings on one line, truncated if they are long."""
    text = ", ".join(f"{name}={value}" for name, value in leaves_of(settings))
    return text if len(text) <= MAX_SETTINGS_CHARS else text[:MAX_SETTINGS_CHARS] + " …"


def leaves_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return dotted names and JSON text of the leaves of nested mappings."""
    return [
        (name, json.dumps(value, sort_keys=True, ensure_ascii=False))
        for name, value in leaves(values)
    ]


def record_lines(record: Record | None) -> dict[str, str]:
    """Return code, machine and time of a record, human-readable; "not recorded" if unknown."""
    if record is None:
        return {"code": "not recorded", "machine": "not recorded"}
    start, end = record.start, record.end
    lines = {"code": _code_summary(start), "machine": _machine_summary(start.machine)}
    if foreign := _foreign_code(start.machine, end):
        lines["also ran"] = ", ".join(foreign)
    if unknown := _unrecorded(start.machine, end):
        lines["unknown"] = f"not recorded: {', '.join(unknown)}"
    if end:
        lines["ran"] = f"{start.at}, {end.seconds} s, attempt {start.attempt}"
    return lines


def _foreign_code(machine: Machine, end: End | None) -> list[str]:
    """Return what ran besides this package and the installed ones, or changed them."""
    # None means not recorded, which `_unrecorded` lists; here it counts as nothing.
    files = {**(machine.start_files or {}), **((end.foreign if end else None) or {})}
    variables = machine.variables or {}
    return [
        *(f"{name} {sha256[:12]}" for name, sha256 in files.items()),
        *(f"altered {name}" for name in machine.altered or ()),
        *(f"other byte code of {name}" for name in (end.forged_byte_code if end else None) or ()),
        *(f"{name}={variables[name]}" for name in CODE_VARIABLES if name in variables),
    ]


def _unrecorded(machine: Machine, end: End | None) -> list[str]:
    """Return the facts about other code that the record does not contain."""
    names = ("packages", "variables", "search_path", "start_files")
    unknown = [name.replace("_", " ") for name in names if getattr(machine, name) is None]
    return unknown + (["foreign modules"] if end and end.foreign is None else [])


def _machine_summary(machine: Machine) -> str:
    versions = machine.libraries
    libraries = [f"{name} {versions[name]}" for name in SHOWN_LIBRARIES if name in versions]
    words = (machine.python, *libraries, machine.processor, machine.system)
    return ", ".join(filter(None, words))


def _code_summary(start: Start) -> str:
    if not start.code:
        return "not recorded"
    commit = (start.commit or "no commit")[:12]
    changes = " with uncommitted changes" if start.uncommitted else ""
    return f"{len(start.code)} files of {commit}{changes}"
