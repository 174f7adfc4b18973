"""How good the answers are: metrics of each task, its trivial answer, the benchmarks' means.

A number that cannot be had stays null: one that is not finite, a benchmark's mean
when one of its tasks is not in the run.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.config.sections.score import ScoreStage
from t5repro.config.sections.tasks import TaskTexts
from t5repro.errors import ArtifactError
from t5repro.evaluate.checkpoint_selection import RULE, best_checkpoints, best_metrics
from t5repro.files import read_json_lines, write_json, write_manifest
from t5repro.tasks.averages import BENCHMARKS, benchmark_averages
from t5repro.tasks.registry import TEXTS_OF_THE_CODE, task_named

Rows = Sequence[Mapping[str, Any]]


def score(
    settings: ScoreStage,
    *,
    predictions: Mapping[str, Path],
    train: Mapping[str, Path],
    output: Path,
    manifest: Path,
    kept_steps: Sequence[int] = (),
) -> None:
    """Write the scores of every task, of its trivial answer, and the benchmarks' means.

    Args:
        settings: settings of the stage.
        predictions: task -> JSON lines of the stage `evaluate_predict`.
        train: task -> training examples; the trivial answer is learnt from them. A task that is
            never trained on has none.
        output: ``scores.json``.
        manifest: manifest to write.
        kept_steps: steps of fine-tuning whose answers lie in ``step-<n>/`` beside those of the
            last; the best of each group of tasks is chosen among all.

    Raises:
        ArtifactError: a file is missing, empty, or not what its stage writes.
    """
    tasks = {
        task: score_task(
            task,
            read_rows(path, "prediction"),
            read_rows(train[task], "answer") if task in train else [],
            settings.tasks,
        )
        for task, path in predictions.items()
    }
    content = {"tasks": tasks, "averages": averages(tasks), "beats_baseline": beaten(tasks)}
    earlier = {
        step: {task: path.parent / f"step-{step}" / path.name for task, path in predictions.items()}
        for step in sorted(kept_steps)[:-1]
    }
    if kept_steps:
        content["checkpoints"] = checkpoints(
            tasks, earlier, last=max(kept_steps), texts=settings.tasks
        )
    write_json(output, content)
    write_manifest(
        manifest,
        rule="evaluate_score",
        settings=settings.model_dump(mode="json"),
        inputs=[
            *predictions.values(),
            *(path for paths in earlier.values() for path in paths.values()),
            *(train[task] for task in predictions if task in train),
        ],
        outputs=[output],
        counters={"examples": {task: entry["examples"] for task, entry in tasks.items()}},
    )


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
        earlier: step -> task -> answers of that step.
        last: number of the last step.
        texts: how answers are read.

    Returns:
        ``chosen_by``, the rule in words; ``scores``, step -> task -> metrics; ``best``, group ->
        what `best_checkpoints` returns and the weights behind it; ``averages`` of the best.
    """
    by_step = {
        step: {
            task: finite(task_named(task, texts).score(read_rows(path, "prediction")))
            for task, path in paths.items()
        }
        for step, paths in earlier.items()
    }
    by_step[last] = {task: entry["metrics"] for task, entry in tasks.items()}
    best = best_checkpoints(by_step)
    for item in best.values():
        item["weights"] = f"step-{item['step']}/weights.safetensors"
    chosen = {task: {"metrics": metrics} for task, metrics in best_metrics(best).items()}
    return {
        "chosen_by": RULE,
        "scores": {str(step): by_step[step] for step in sorted(by_step)},
        "best": best,
        "averages": averages(chosen),
    }


def read_rows(path: Path, *needed: str) -> list[dict[str, Any]]:
    """Read examples or predictions.

    Raises:
        ArtifactError: there are none, or a row lacks a key of `needed`; the line is named.
    """
    rows = []
    for number, row in enumerate(read_json_lines(path), start=1):
        absent = [key for key in needed if key not in row]
        if absent:
            raise ArtifactError(f"{path} line {number} lacks {absent}; rerun its stage")
        rows.append(row)
    if not rows:
        raise ArtifactError(f"{path} is empty; rerun its stage")
    return rows


def score_task(
    task: str, rows: Rows, train_rows: Rows, texts: TaskTexts = TEXTS_OF_THE_CODE
) -> dict[str, Any]:
    """Return a task's metrics, those of its trivial answer, and which of the two is better.

    Args:
        task: name of the task.
        rows: answers of the model.
        train_rows: training examples.
        texts: which texts the run chooses, and its own tasks.
    """
    known = task_named(task, texts)
    metrics = finite(known.score(rows))
    baseline = known.baseline(rows, train_rows)
    trivial = finite(baseline["metrics"])
    primary = known.metric_names[0] if known.metric_names else ""
    return {
        "metrics": metrics,
        "primary_metric": primary,
        "baseline": {"kind": baseline["kind"], "metrics": trivial},
        "beats_baseline": beats(metrics.get(primary), trivial.get(primary)),
        "examples": len(rows),
        "invalid": known.invalid_count(rows),
        "signature": known.signature() if known.signature else None,
    }


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return the metrics with None for what is not a number."""
    return {name: float(value) if math.isfinite(value) else None for name, value in metrics.items()}


def beats(value: float | None, baseline: float | None) -> bool | None:
    """Return whether a score is above the trivial one; None where one of them is missing."""
    return None if value is None or baseline is None else value > baseline


def beaten(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return how many tasks beat their trivial answer, of how many that can tell."""
    told = [entry["beats_baseline"] for entry in tasks.values()]
    return {"beaten": told.count(True), "of": len(told) - told.count(None)}


def averages(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the mean of each benchmark of which the run has a task.

    Its value is null where a task of it is missing, and the missing tasks are named.

    Args:
        tasks: task -> what `score_task` returns.
    """
    metrics = {task: entry["metrics"] for task, entry in tasks.items()}
    values = benchmark_averages(metrics)
    found: dict[str, dict[str, Any]] = {}
    for benchmark, groups in BENCHMARKS.items():
        columns = [column for group in groups for column in group]
        missing = [task for task, metric in columns if metrics.get(task, {}).get(metric) is None]
        if any(task in tasks for task, _ in columns):
            found[benchmark] = {"value": values[benchmark], "missing": list(dict.fromkeys(missing))}
    return found
