"""Scores of the predictions, of trivial answers, and of the benchmarks (paper section 2.4).

A score that is undefined or infinite is null in `scores.json`, and so is the average of a
benchmark if one of its tasks is missing from the run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST, WEIGHTS, step_folder
from t5repro.config.sections.tasks import TaskTexts
from t5repro.errors import ArtifactError
from t5repro.evaluate.checkpoint_selection import RULE, best_checkpoints, best_metrics
from t5repro.files import read_json_lines, read_manifest, write_json, write_manifest
from t5repro.jobs.score import ScoreJob
from t5repro.metrics.registry import compute_scores, score_names, signature_of
from t5repro.tasks.averages import BENCHMARKS, benchmark_averages
from t5repro.tasks.registry import task_named
from t5repro.tasks.task import ScoredRow, Task

Rows = Sequence[Mapping[str, Any]]


def score(job: ScoreJob) -> None:
    """Write the scores of every task and of its trivial answer, and the benchmarks' averages.

    Raises:
        ArtifactError: a file is missing, empty, or lacks a key.
    """
    tasks = {
        task: score_task(
            task_named(task, job.settings.tasks),
            read_rows(path, "prediction"),
            read_rows(job.train[task], "answer") if task in job.train else [],
        )
        for task, path in job.predictions.items()
    }
    # A task with private answers has no scores, and counts neither as beaten nor as compared.
    content = {"tasks": tasks, "averages": averages(tasks), "beats_baseline": beaten(tasks)}
    earlier = earlier_predictions(job.predictions, sorted(job.kept_steps)[:-1])
    if job.kept_steps:
        content["checkpoints"] = checkpoints(
            tasks, earlier, last=max(job.kept_steps), texts=job.settings.tasks
        )
    write_json(job.scores, content)
    write_manifest(
        job.manifest,
        rule="evaluate_score",
        settings=job.settings.model_dump(mode="json"),
        inputs=[
            *job.predictions.values(),
            *(path for paths in earlier.values() for path in paths.values()),
            *(job.train[task] for task in job.predictions if task in job.train),
        ],
        outputs=[job.scores],
        counters={"examples": {task: entry["examples"] for task, entry in tasks.items()}},
    )


def earlier_predictions(
    predictions: Mapping[str, Path], steps: Sequence[int]
) -> dict[int, dict[str, Path]]:
    """Return step -> task -> predictions of that step; groups of tasks may keep other steps.

    Args:
        predictions: task -> predictions of the last step, next to the manifest of its group.
        steps: the kept steps of all groups but the last.

    Raises:
        ArtifactError: a manifest is missing or was altered.
    """
    # Groups of tasks may keep other steps: only paths that a manifest lists were written.
    manifests = {path.with_name(MANIFEST) for path in predictions.values()}
    written_paths = {
        entry["path"]
        for manifest in manifests
        for entry in (read_manifest(manifest)["outputs"] if steps else ())
    }
    expected_paths = {
        step: {
            task: path.parent / step_folder(step) / path.name for task, path in predictions.items()
        }
        for step in steps
    }
    return {
        step: {task: path for task, path in paths.items() if path.as_posix() in written_paths}
        for step, paths in expected_paths.items()
    }


def checkpoints(
    tasks: Mapping[str, Mapping[str, Any]],
    earlier: Mapping[int, Mapping[str, Path]],
    *,
    last: int,
    texts: TaskTexts,
) -> dict[str, Any]:
    """Return the scores of every kept checkpoint and the best step of each group of tasks.

    Args:
        tasks: task -> its scores at the last step.
        earlier: step -> task -> predictions of that step.
        last: number of the last step.
        texts: the run's choice of texts and its own tasks.

    Returns:
        ``chosen_by``, the rule in words; ``scores``, step -> task -> metrics; ``best``, group ->
        entry of `best_checkpoints` with its weights; ``averages`` of the best.
    """
    metrics_of_step = {
        step: {
            task: finite(score_rows(task_named(task, texts), read_rows(path, "prediction")))
            for task, path in paths.items()
        }
        for step, paths in earlier.items()
    }
    # The last step was scored for `tasks` already.
    metrics_of_step[last] = {task: entry["metrics"] for task, entry in tasks.items()}
    # The checkpoint of a group is selected by its scores here, so it can differ between groups.
    best = best_checkpoints(metrics_of_step)
    for entry in best.values():
        entry["weights"] = f"{step_folder(entry['step'])}/{WEIGHTS}"
    # `averages` takes entries of `score_task`; of these it reads only the metrics.
    best_entries = {task: {"metrics": metrics} for task, metrics in best_metrics(best).items()}
    return {
        "chosen_by": RULE,
        "scores": {str(step): metrics_of_step[step] for step in sorted(metrics_of_step)},
        "best": best,
        "averages": averages(best_entries),
    }


def read_rows(path: Path, *keys: str) -> list[dict[str, Any]]:
    """Read examples or predictions.

    Raises:
        ArtifactError: there are none, or a row lacks one of `keys`; the message names the line.
    """
    rows = []
    # Keys are checked here: the message can name the line, a metric could not.
    for number, row in enumerate(read_json_lines(path), start=1):
        missing = [key for key in keys if key not in row]
        if missing:
            raise ArtifactError(f"{path} line {number} lacks {missing}; rerun its stage")
        rows.append(row)
    if not rows:
        raise ArtifactError(f"{path} is empty; rerun its stage")
    return rows


def score_task(task: Task, rows: Rows, train_rows: Rows) -> dict[str, Any]:
    """Return the entry of a task in `scores.json`: its metrics, its trivial answer, counts.

    Args:
        task: the task.
        rows: examples with predictions.
        train_rows: training examples.
    """
    # JSON has no NaN: an undefined score is null.
    metrics = finite(score_rows(task, rows))
    trivial = finite(score_baseline(task, rows, train_rows))
    # The first score of a task decides whether it beats its trivial answer.
    names = score_names(task.metrics)
    primary = names[0] if names else ""
    return {
        "metrics": metrics,
        "primary_metric": primary,
        "baseline": {"kind": task.baseline.kind, "metrics": trivial},
        "beats_baseline": beats(metrics.get(primary), trivial.get(primary)),
        "examples": len(rows),
        "invalid": task.invalid_count(rows),
        "signature": signature_of(task.metrics, [row["answer"] for row in _labelled(rows)]),
    }


def score_rows(task: Task, rows: Iterable[ScoredRow]) -> dict[str, float]:
    """Return every score of a task over its labelled rows, in percent; empty without such rows.

    Args:
        task: the task.
        rows: mappings with idx, inputs, targets, answer and prediction.
    """
    labelled = _labelled(rows)
    # A row without a public answer has no score; its prediction goes to a leaderboard.
    predictions = [task.read_prediction(row["prediction"], row) for row in labelled]
    return _compare(task, labelled, predictions)


def score_baseline(
    task: Task, rows: Iterable[ScoredRow], train_rows: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the scores of a task's trivial answer over the rows of `score_rows`.

    Args:
        task: the task.
        rows: as for `score_rows`; predictions are unused.
        train_rows: training examples, which the most frequent answer is derived from.
    """
    labelled = _labelled(rows)
    return _compare(task, labelled, task.baseline.predict(labelled, train_rows))


def _compare(task: Task, rows: Sequence[ScoredRow], predictions: list[Any]) -> dict[str, float]:
    answers = [row["answer"] for row in rows]
    return compute_scores(task.metrics, answers, predictions, classes=len(task.labels))


def _labelled(rows: Iterable[ScoredRow]) -> list[ScoredRow]:
    return [row for row in rows if row["answer"] is not None]


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return the metrics with None instead of NaN and infinities."""
    return {name: float(value) if math.isfinite(value) else None for name, value in metrics.items()}


def beats(value: float | None, baseline: float | None) -> bool | None:
    """Return whether a score is above the trivial one; None if one of them is missing."""
    return None if value is None or baseline is None else value > baseline


def beaten(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of tasks that beat their trivial answer, and of tasks with both scores."""
    # None: a score is missing, so the task is not compared.
    outcomes = [entry["beats_baseline"] for entry in tasks.values()]
    return {"beaten": outcomes.count(True), "of": len(outcomes) - outcomes.count(None)}


def averages(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the average of each benchmark with at least one task in the run.

    The value is null if a task of the benchmark is missing; ``missing`` names those tasks.

    Args:
        tasks: task -> entry of `score_task`.
    """
    metrics = {task: entry["metrics"] for task, entry in tasks.items()}
    values = benchmark_averages(metrics)
    entries: dict[str, dict[str, Any]] = {}
    for benchmark, groups in BENCHMARKS.items():
        # An average over fewer tasks would not compare with the paper's.
        columns = [column for group in groups for column in group]
        missing = [task for task, metric in columns if metrics.get(task, {}).get(metric) is None]
        if any(task in tasks for task, _ in columns):
            entries[benchmark] = {
                "value": values[benchmark],
                "missing": list(dict.fromkeys(missing)),
            }
    return entries
