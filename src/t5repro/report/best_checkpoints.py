"""The best kept checkpoint of each group of tasks, compared with the last one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.report.titles import format_score, metric_title, task_title


@dataclass(frozen=True)
class CheckpointLine:
    """The best checkpoint of one group of tasks, or the average of a benchmark.

    Attributes:
        title: titles of the tasks.
        metrics: metrics at the best step, in words.
        step: the best step.
        best: mean of the group's metrics at that step.
        last: the same mean at the last step.
        weights: file of the weights, relative to the folder of fine-tuning.
    """

    title: str
    metrics: str
    step: str
    best: str
    last: str
    weights: str


@dataclass(frozen=True)
class CheckpointTable:
    """The best checkpoints of one arm.

    Attributes:
        name: name of the arm.
        rule: how the best checkpoint was selected.
        last_step: the last step.
        lines: one per group of tasks, then one per benchmark.
    """

    name: str
    rule: str
    last_step: str
    lines: tuple[CheckpointLine, ...]


def checkpoint_tables(scores: Mapping[str, Mapping[str, Any]]) -> list[CheckpointTable]:
    """Return a table for each arm that has evaluated checkpoints.

    Args:
        scores: arm -> content of its ``scores.json``.
    """
    return [
        _table(arm, content["checkpoints"])
        for arm, content in scores.items()
        if content.get("checkpoints")
    ]


def _table(arm: str, checkpoints: Mapping[str, Any]) -> CheckpointTable:
    last_step = max(checkpoints["scores"], key=int)
    lines = [_group_line(group, last_step) for group in checkpoints["best"].values()]
    lines += [
        CheckpointLine(
            title=f"{task_title(benchmark)} average",
            metrics="over the best steps of its tasks",
            step="",
            best=format_score(average["value"]),
            last="",
            weights="",
        )
        for benchmark, average in checkpoints["averages"].items()
    ]
    return CheckpointTable(arm, checkpoints["chosen_by"], last_step, tuple(lines))


def _group_line(group: Mapping[str, Any], last_step: str) -> CheckpointLine:
    texts = []
    for column in group["columns"]:
        task, _, metric = column.partition("/")
        texts.append(f"{metric_title(metric)} {format_score(group['metrics'][task].get(metric))}")
    return CheckpointLine(
        title=" and ".join(task_title(task) for task in group["metrics"]),
        metrics=", ".join(texts),
        step=f"{group['step']:,}",
        best=format_score(group["means"][str(group["step"])]),
        last=format_score(group["means"][last_step]),
        weights=group["weights"],
    )
