"""The rows of a run, from its manifests and the scores that they name.

A row follows hashes and not names: its settings are those of the jobs that its last job depends
on. Each run is a graph of its own, so a changed run is read again and no other.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from t5repro.artifacts import SCORES
from t5repro.errors import ArtifactError
from t5repro.lineage.facts import leaves
from t5repro.lineage.graph import WITHDRAWN_LISTS, Artifact, Graph, Job, parse_manifest
from t5repro.lineage.record import numbers_in
from t5repro.lineage.store import RESULTS, Store
from t5repro.runs.row import COUNTER, FINISHED, SCORE, STALE, UNSCORED, Row
from t5repro.runs.terms import Value
from t5repro.strict_json import parse_json

SCORING = "evaluate_score"
OF_A_ROW = ("pretrain", "finetune", "evaluate_predict", SCORING)
MAX_VALUE_CHARS = 2000  # a longer list is no setting to search: the hashes of all raw files
LARGEST = 10**300

Faults = list[tuple[str, str]]  # path, message


def read_run(store: Store, run: str, manifests: Iterable[str], faults: Faults) -> tuple[Row, ...]:
    """Return the rows of a run, sorted by experiment.

    Args:
        store: the state.
        run: its name.
        manifests: paths of its manifests.
        faults: receives the files that cannot be read.
    """
    graph = read_graph(store, manifests, faults)
    rows = [_row(store, run, graph, job, faults) for job in last_jobs(graph)]
    return tuple(sorted(rows, key=lambda row: row.job))


def read_graph(store: Store, manifests: Iterable[str], faults: Faults) -> Graph:
    """Return the jobs of some manifests; those that are none are left out and named."""
    jobs = []
    for path in manifests:
        try:
            jobs.append(parse_manifest(path, store.read(path), {}))
        except (ArtifactError, OSError) as error:
            faults.append((path, str(error)))
    return Graph(jobs)


def last_jobs(graph: Graph) -> list[Job]:
    """Return the last job of each experiment: its scores, or the last job that has finished."""
    scored = [job for job in graph.jobs.values() if job.rule == SCORING]
    last = [job for job in graph.jobs.values() if job.rule in OF_A_ROW and job.rule != SCORING]
    earlier = {name for job in (*scored, *last) for name in _before(graph, job)}
    return scored + [job for job in last if job.name not in earlier]


def _before(graph: Graph, job: Job) -> dict[str, Job]:
    """Return name -> job of all that a job depends on, in order of distance."""
    dependencies: dict[str, Job] = {}
    queue = [job]
    for current in queue:  # it grows
        for earlier in graph.before(current):
            if earlier.name not in dependencies and earlier.name != job.name:
                dependencies[earlier.name] = earlier
                queue.append(earlier)
    return dependencies


def _row(store: Store, run: str, graph: Graph, last: Job, faults: Faults) -> Row:
    jobs = [last, *_before(graph, last).values()]
    names = {job.name for job in jobs}
    is_stale = any(name in names and _is_of_run(artifact, run) for name, artifact in graph.broken)
    values: dict[str, Value] = {**_settings(jobs), **_counters(jobs)}
    state = STALE if is_stale else FINISHED if last.rule == SCORING else UNSCORED
    values |= {"run": run, "experiment": _experiment(last), "state": state}
    values["parameters"] = _parameters(values)
    # The trainings of a stale row are not all here: some inputs have been replaced.
    values |= {"flops": None, "tokens": None} if is_stale else _compute(jobs)
    scores, headlines = _scores(store, last, faults)
    values_by_key = {key: value for key, value in {**values, **scores}.items() if _is_known(value)}
    own = sorted(job.name for job in jobs if job.rule in OF_A_ROW)
    return Row(values_by_key, last.name, tuple(own), tuple(headlines))


def _is_of_run(artifact: Artifact, run: str) -> bool:
    """Return whether a job of the run should have written a file that none has written."""
    return artifact.path.startswith(f"{RESULTS}/{run}/") and artifact.path not in WITHDRAWN_LISTS


def _experiment(job: Job) -> str:
    """Return the node of a job, without its run and rule."""
    return job.name.split("/", 2)[-1]


def _settings(jobs: Sequence[Job]) -> dict[str, Value]:
    """Return path -> value of the settings of some jobs.

    The section of a rule has the settings of its own job, the others those of the job nearest to
    the scores: a fine-tuning receives the section `pretrain` too. If the fine-tunings of several
    groups disagree, the value is the list of theirs.
    """
    by_rule: dict[str, dict[str, list[Any]]] = {}
    for job in jobs:
        rule_settings = by_rule.setdefault(job.rule, {})
        for key, value in leaves(job.settings):
            values = rule_settings.setdefault(key, [])
            if value not in values:
                values.append(value)
    received = {
        key: values
        for rule_settings in reversed(by_rule.values())
        for key, values in rule_settings.items()
    }
    for rule, rule_settings in by_rule.items():
        received |= {
            key: values for key, values in rule_settings.items() if key.startswith(f"{rule}.")
        }
    return {
        key: _plain(values[0] if len(values) == 1 else values) for key, values in received.items()
    }


def _plain(value: Any) -> Value:
    """Return a number, a boolean or a text; a list as JSON, and None for a very long one."""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    too_long = isinstance(value, str) and len(value) > MAX_VALUE_CHARS
    return None if too_long else value


def _counters(jobs: Sequence[Job]) -> dict[str, Value]:
    """Return the counters of rules with one job: ``counter.pretrain.final_loss``."""
    rules = [job.rule for job in jobs]
    return {
        f"{COUNTER}{job.rule}.{name}": number
        for job in jobs
        if rules.count(job.rule) == 1
        for name, number in numbers_in(job.counters)
    }


def _is_known(value: Value) -> bool:
    """Return whether there is a value; an altered manifest may have an endless number."""
    return value is not None and (isinstance(value, str) or abs(value) < LARGEST)


def _parameters(values: Mapping[str, Value]) -> Value:
    counted = (values.get(f"{COUNTER}{rule}.parameters") for rule in ("finetune", "pretrain"))
    return next((number for number in counted if number is not None), None)


def _compute(jobs: Sequence[Job]) -> dict[str, Value]:
    """Return the operations of all trainings, and the tokens of pre-training."""
    from t5repro.runs.compute import compute_of  # imports all settings, which takes longer

    trainings = [(job.rule, compute_of(job)) for job in jobs if job.rule in OF_A_ROW[:2]]
    known_trainings = [(rule, compute) for rule, compute in trainings if compute is not None]
    if not trainings or len(known_trainings) < len(trainings):
        return {"flops": None, "tokens": None}
    tokens = [compute.tokens for rule, compute in known_trainings if rule == "pretrain"]
    return {
        "flops": sum(compute.flops for _, compute in known_trainings),
        "tokens": sum(tokens) if tokens else None,
    }


def _scores(store: Store, job: Job, faults: Faults) -> tuple[dict[str, Value], list[str]]:
    """Return the scores of a job, and the keys of the headlines among them."""
    scores: dict[str, Value] = {}
    headlines: list[str] = []
    for artifact in job.outputs:
        if job.rule != SCORING or artifact.path.rpartition("/")[2] != SCORES:
            continue
        try:
            values = _checked(store, artifact)
            for key, value, is_headline in _score_leaves(values):
                scores[f"{SCORE}{key}"] = value
                headlines += [f"{SCORE}{key}"] if is_headline else []
        except (ArtifactError, OSError) as error:
            faults.append((artifact.path, str(error)))
            return {}, []
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"no scores ({error}); run t5repro verify, or rerun {SCORING}"
            faults.append((artifact.path, message))
            return {}, []
    return scores, headlines


def _checked(store: Store, artifact: Artifact) -> Any:
    data = store.read(artifact.path)
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        raise ValueError("not the file that its manifest names")
    return parse_json(data)


def _score_leaves(values: Mapping[str, Any]) -> Iterator[tuple[str, float, bool]]:
    """Yield ``task.metric``, its value, and whether it is a headline; undefined ones are missing.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the values are not scores.
    """
    for benchmark, average in values.get("averages", {}).items():
        if average["value"] is not None:
            yield f"{benchmark}.average", _number(average["value"]), True
    for task, entry in values["tasks"].items():
        primary = entry.get("primary_metric")
        for metric, value in entry["metrics"].items():
            if value is not None:
                yield f"{task}.{metric}", _number(value), metric == primary


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the score {value!r} is no number")
    number: float = value
    return number
