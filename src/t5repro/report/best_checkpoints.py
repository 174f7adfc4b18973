"""The best kept checkpoint of each group of tasks beside the last, for the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.report.rows import METRIC_TITLES, shown
from t5repro.report.score_table import title_of


@dataclass(frozen=True)
class BestLine:
    """One group of tasks.

    Attributes:
        title: its tasks for people.
        metrics: metrics at the best step, in words.
        step: the best step.
        best: mean of the group's metrics there.
        last: the same at the last step.
        weights: file below the folder of fine-tuning.
    """

    title: str
    metrics: str
    step: str
    best: str
    last: str
    weights: str


@dataclass(frozen=True)
class BestTable:
    """The best checkpoints of one experiment."""

    name: str
    rule: str
    last_step: str
    lines: tuple[BestLine, ...]


def best_tables(scores: Mapping[str, Mapping[str, Any]]) -> list[BestTable]:
    """Return a table for each experiment whose kept checkpoints were evaluated.

    Args:
        scores: experiment -> content of its ``scores.json``.
    """
    return [
        _table(name, content["checkpoints"])
        for name, content in scores.items()
        if content.get("checkpoints")
    ]


def _table(name: str, chosen: Mapping[str, Any]) -> BestTable:
    last = max(chosen["scores"], key=int)
    lines = [_group(item, last) for item in chosen["best"].values()]
    lines += [
        BestLine(
            title=f"{title_of(benchmark)} average",
            metrics="over the best steps of its tasks",
            step="",
            best=shown(mean["value"]),
            last="",
            weights="",
        )
        for benchmark, mean in chosen["averages"].items()
    ]
    return BestTable(name, chosen["chosen_by"], last, tuple(lines))


def _group(item: Mapping[str, Any], last: str) -> BestLine:
    words = []
    for column in item["columns"]:
        task, _, metric = column.partition("/")
        value = shown(item["metrics"][task].get(metric))
        words.append(f"{METRIC_TITLES.get(metric, metric)} {value}")
    return BestLine(
        title=" and ".join(title_of(task) for task in item["metrics"]),
        metrics=", ".join(words),
        step=f"{item['step']:,}",
        best=shown(item["means"][str(item["step"])]),
        last=shown(item["means"][last]),
        weights=item["weights"],
    )
