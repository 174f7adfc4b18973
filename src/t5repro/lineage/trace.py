"""The whole way from an artifact back to the raw files.

A score is named by its file and its task: ``results/demo/evaluate_score/baseline/
scores.json#glue_sst2``. Then only what that task needed is followed through prediction; a
fine-tuned model has seen every task of its mixture, so from there on all of them belong.
"""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from t5repro.errors import ArtifactError, LineageError
from t5repro.lineage.graph import DATA, Artifact, Graph, Job, order
from t5repro.lineage.store import Store

SCORED = ("evaluate_predict", "evaluate_score")  # rules that treat each task on its own
SHOWN_LIBRARIES = ("tensorflow", "keras", "sentencepiece", "pyarrow")


@dataclass(frozen=True)
class Trace:
    """An artifact and everything that it came from.

    Attributes:
        artifact: what was asked about.
        part: the task of a score; empty for a whole file.
        value: what the file says of that task.
        jobs: the jobs on the way, each after those it depends on.
        inputs: job -> the inputs that belong to the way.
        raw: files where the way begins, by path.
        broken: (job, input) where no job wrote what the job read, and the input is not raw.
    """

    artifact: Artifact
    part: str
    value: Any
    jobs: tuple[Job, ...]
    inputs: Mapping[str, tuple[Artifact, ...]]
    raw: tuple[Artifact, ...]
    broken: tuple[tuple[str, Artifact], ...]


def trace(graph: Graph, store: Store, wanted: str) -> Trace:
    """Follow an artifact back to the raw files.

    Args:
        graph: of the state.
        store: where the state's files are; read for the value of a score.
        wanted: a path, the end of one, or the start of a SHA-256; ``#task`` behind a score file.

    Raises:
        LineageError: no artifact or no such task.
    """
    name, _, part = wanted.partition("#")
    artifact = graph.find(name)
    value, others = _part(store, artifact, part) if part else (None, frozenset())
    inputs: dict[str, tuple[Artifact, ...]] = {}
    raw: dict[str, Artifact] = {}
    broken: list[tuple[str, Artifact]] = []
    first = graph.job_of(artifact)
    queue = deque([] if first is None else [first])
    if first is None or first.rule == DATA:
        raw[artifact.path] = artifact
    while queue:
        job = queue.popleft()
        if job.name in inputs:
            continue
        chosen = job.inputs
        if job.rule in SCORED and others:
            chosen = tuple(item for item in chosen if not _belongs(item, others))
        inputs[job.name] = chosen
        for item in chosen:
            earlier = graph.job_of(item)
            if earlier is None:
                raw[item.path] = item
                broken.append((job.name, item))
            elif earlier.rule == DATA:
                raw[item.path] = item
                queue.append(earlier)
            elif earlier.name != job.name:
                queue.append(earlier)
    jobs = order(graph, [graph.jobs[name] for name in inputs])
    return Trace(
        artifact,
        part,
        value,
        tuple(jobs),
        inputs,
        tuple(raw[path] for path in sorted(raw)),
        tuple(broken),
    )


def _part(store: Store, artifact: Artifact, part: str) -> tuple[Any, frozenset[str]]:
    """Return what a score file says of a task, and the names of the other tasks."""
    try:
        scores = json.loads(store.read(artifact.path))["tasks"]
        known = sorted(scores)
    except (ValueError, KeyError, TypeError) as error:
        raise LineageError(
            f"{artifact.path}#{part}: the file has no scores by task; leave #{part} out"
        ) from error
    except ArtifactError:
        raise
    if part not in scores:
        raise LineageError(f"{artifact.path}#{part}: no such task; the file scores {known}")
    return scores[part], frozenset(known) - {part}


def _belongs(item: Artifact, others: frozenset[str]) -> bool:
    """Whether a file is of one of the other tasks alone: it or its folder is named after it."""
    path = PurePosixPath(item.path)
    return path.stem in others or path.parent.name in others


def to_json(found: Trace) -> dict[str, Any]:
    """Return a trace as plain JSON values."""
    return {
        "artifact": artifact_json(found.artifact),
        "part": found.part or None,
        "value": found.value,
        "steps": [
            {
                "job": job.name,
                "rule": job.rule,
                "settings": job.settings,
                "inputs": [artifact_json(item) for item in found.inputs[job.name]],
                "outputs": [artifact_json(item) for item in job.outputs],
                "record": job.record or None,
            }
            for job in reversed(found.jobs)
        ],
        "raw": [artifact_json(item) for item in found.raw],
        "broken": [{"job": name, **artifact_json(item)} for name, item in found.broken],
    }


def artifact_json(item: Artifact) -> dict[str, Any]:
    """Return an artifact as plain JSON values."""
    return {"path": item.path, "sha256": item.sha256, "bytes": item.length}


def to_text(found: Trace, graph: Graph) -> str:
    """Return a trace as a tree; a job that is reached twice is written out once."""
    about = found.artifact
    lines = [f"{about.path}{'#' + found.part if found.part else ''}  {about.sha256[:12]}"]
    if found.part:
        lines.append(f"  says {json.dumps(_scores_only(found.value))}")
    first = graph.job_of(about)
    written: set[str] = set()
    if first is not None and first.name in found.inputs:
        _write_job(first, found, graph, "", written, lines)
    lines.append(f"raw files: {len(found.raw)}")
    lines += [f"  {item.path}  {item.sha256[:12]}  {item.length:,} bytes" for item in found.raw]
    for name, item in found.broken:
        lines.append(f"  {item.path}: read by {name}, and no job or raw file has this content")
    return "\n".join(lines) + "\n"


def _scores_only(value: Any) -> Any:
    if isinstance(value, Mapping) and "metrics" in value:
        return value["metrics"]
    return value


def _write_job(
    job: Job, found: Trace, graph: Graph, indent: str, written: set[str], lines: list[str]
) -> None:
    seen = job.name in written
    lines.append(f"{indent}└─ {job.name}{'  (above)' if seen else ''}")
    if seen:
        return
    written.add(job.name)
    inner = indent + "     "
    lines += [inner + line for line in job_lines(job, found)]
    earlier = {}
    for item in found.inputs[job.name]:
        source = graph.job_of(item)
        if source is not None and source.name != job.name:
            earlier[source.name] = source
    for source in earlier.values():
        _write_job(source, found, graph, indent + "   ", written, lines)


def job_lines(job: Job, found: Trace) -> list[str]:
    """Return what a step shows: its rule, settings, code, environment and files."""
    lines = [f"settings  {short_settings(job.settings)}"]
    lines += [f"{name:<8}  {value}" for name, value in record_facts(job.record).items()]
    chosen = found.inputs[job.name]
    lines.append(f"read      {_files(chosen)}")
    lines.append(f"wrote     {_files([item for item in job.outputs if item.path != job.manifest])}")
    return lines


def _files(items: Any) -> str:
    shown = ", ".join(f"{PurePosixPath(item.path).name} {item.sha256[:8]}" for item in items[:4])
    return f"{shown}{f' and {len(items) - 4} more' if len(items) > 4 else ''}" or "nothing"


def short_settings(settings: Mapping[str, Any]) -> str:
    """Return the settings on one line, cut where they are long."""
    text = ", ".join(f"{name}={value}" for name, value in leaves_of(settings))
    return text if len(text) <= 150 else text[:150] + " …"


def leaves_of(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return dotted names and JSON text of the leaves of nested mappings."""
    if not isinstance(values, Mapping):
        return [(prefix, json.dumps(values, sort_keys=True, ensure_ascii=False))]
    found: list[tuple[str, str]] = []
    for name in sorted(values):
        found += leaves_of(values[name], f"{prefix}.{name}" if prefix else str(name))
    return found


def record_facts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what a record says of code and environment, in words; nothing is made up."""
    start, end = record.get("start") or {}, record.get("end") or {}
    machine = start.get("machine") or {}
    facts = {"code": _code(start), "machine": "not recorded"}
    if machine:
        libraries = machine.get("libraries", {})
        shown = [f"{name} {libraries[name]}" for name in SHOWN_LIBRARIES if name in libraries]
        words = (machine.get("python"), *shown, machine.get("processor"), machine.get("system"))
        facts["machine"] = ", ".join(str(word) for word in words if word)
    if end:
        facts["ran"] = f"{start.get('at')}, {end.get('seconds')} s, attempt {start.get('attempt')}"
    return facts


def _code(start: Mapping[str, Any]) -> str:
    if not start.get("code"):
        return "not recorded"
    commit = str(start.get("commit") or "no commit")[:12]
    changed = " with uncommitted changes" if start.get("uncommitted") else ""
    return f"{len(start['code'])} files of {commit}{changed}"
