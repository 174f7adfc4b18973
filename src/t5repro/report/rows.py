"""All scores of a run as one list of rows, from which page, CSV and terminal are written.

Numbers therefore cannot differ between the three.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t5repro.evaluate.checkpoint_selection import best_metrics
from t5repro.report.bootstrap import Resamples
from t5repro.report.experiments import Experiment
from t5repro.report.published_scores import (
    baseline_deviation,
    exceeds_deviation,
    published_score,
    published_value,
)
from t5repro.report.titles import AVERAGE

BEST = ":best"  # suffix of an experiment's name: scores of its best kept checkpoints
BOOTSTRAP = "_bootstrap"  # ROUGE as a median over resampled rows: in the CSV only


@dataclass(frozen=True)
class ScoreRow:
    """One score of one experiment, a row of the CSV.

    Attributes:
        experiment: name of the experiment, which may have several arms; with the suffix `BEST`
            for its best kept checkpoints.
        arm: name of the arm; empty for a mean over seeds.
        seed: seed of the arm; None for a mean over seeds.
        runs: number of arms in the mean.
        task: name of the task, or of a benchmark for its average.
        metric: name of the metric; ``average`` for a benchmark.
        value: on the scale of 100; None if undefined.
        sd: standard deviation over the seeds, with n - 1; None for one run.
        baseline_kind: ``majority`` or ``copy``; empty for a benchmark.
        baseline: score of that trivial baseline.
        examples: number of scored examples.
        invalid: number of answers outside the allowed ones, summed over the runs of a mean.
        paper_baseline: score of the paper's baseline on the full task.
        paper_row: row of the paper that the experiment reproduces.
        paper: score of that row.
        paper_sd: standard deviation of the paper's baseline.
        differs: whether value and paper differ by more than two of these deviations.
        switches: choices with another value than the default, ``name=value`` each.
        low: lower bound of the 95 % interval over rows; None for metrics without one.
        high: its upper bound.
    """

    experiment: str
    arm: str
    seed: int | None
    runs: int
    task: str
    metric: str
    value: float | None
    sd: float | None
    baseline_kind: str
    baseline: float | None
    examples: int | None
    invalid: int | None
    paper_baseline: float | None
    paper_row: str = ""
    paper: float | None = None
    paper_sd: float | None = None
    differs: bool | None = None
    switches: str = ""
    low: float | None = None
    high: float | None = None


def score_rows(
    experiments: Sequence[Experiment],
    scores: Mapping[str, Mapping[str, Any]],
    *,
    split: str = "validation",
    switches: Mapping[str, str] | None = None,
) -> list[ScoreRow]:
    """Return the rows of all experiments: the rows of each arm, then the means over seeds.

    Args:
        experiments: the experiments of the page.
        scores: arm -> content of its ``scores.json``.
        split: the scored split.
        switches: experiment -> its choices with another value than the default.
    """
    rows = []
    for experiment in experiments:
        seeds = dict(zip(experiment.arms, experiment.seeds, strict=True))
        last = [_last_rows(experiment.name, arm, seeds[arm], scores[arm]) for arm in seeds]
        best = [
            _best_rows(f"{experiment.name}{BEST}", arm, seeds[arm], scores[arm])
            for arm in seeds
            if scores[arm].get("checkpoints")
        ]
        changed_choices = (switches or {}).get(experiment.name, "")
        # Last steps and best checkpoints are two experiments: their scores must not enter one mean.
        for runs in (last, best):
            means = [_means(runs)] if len(runs) > 1 else []
            rows += [
                _with_paper(row, experiment.row, split, changed_choices)
                for run in [*runs, *means]
                for row in run
            ]
    return rows


def with_intervals(
    rows: Sequence[ScoreRow], experiments: Sequence[Experiment], resamples: Resamples
) -> list[ScoreRow]:
    """Return the rows with their intervals; a mean over seeds has one over all its arms."""
    arms_of = {experiment.name: experiment.arms for experiment in experiments}
    bounded = []
    for row in rows:
        arms = (row.arm,) if row.arm else arms_of.get(row.experiment, ())
        low, high = resamples.interval(row.task, row.metric, arms) or (None, None)
        bounded.append(replace(row, low=low, high=high))
    return bounded


def best_of(experiment: Experiment) -> Experiment:
    """Return an experiment's counterpart for the scores of its best kept checkpoints."""
    return replace(
        experiment,
        name=f"{experiment.name}{BEST}",
        arms=tuple(f"{arm}{BEST}" for arm in experiment.arms),
    )


def _last_rows(experiment: str, arm: str, seed: int, content: Mapping[str, Any]) -> list[ScoreRow]:
    """Return the rows of an arm at its last step: tasks in their order, then averages."""
    rows = [
        _task_row(experiment, arm, seed, task, entry, metric)
        for task, entry in content["tasks"].items()
        for metric in metric_order(entry)
    ]
    return rows + _average_rows(experiment, arm, seed, content["averages"])


def _best_rows(experiment: str, arm: str, seed: int, content: Mapping[str, Any]) -> list[ScoreRow]:
    """Return the rows of an arm at its best kept checkpoints.

    Invalid answers are counted at the last step only, so their count is missing here.
    """
    checkpoints = content["checkpoints"]
    rows = []
    for task, metrics in best_metrics(checkpoints["best"]).items():
        # Trivial baseline and number of examples do not depend on the checkpoint.
        entry = {**content["tasks"][task], "metrics": metrics, "invalid": None}
        rows += [
            _task_row(experiment, f"{arm}{BEST}", seed, task, entry, metric)
            for metric in metric_order(entry)
        ]
    return rows + _average_rows(experiment, f"{arm}{BEST}", seed, checkpoints["averages"])


def _task_row(
    experiment: str, arm: str, seed: int, task: str, entry: Mapping[str, Any], metric: str
) -> ScoreRow:
    return ScoreRow(
        experiment=experiment,
        arm=arm,
        seed=seed,
        runs=1,
        task=task,
        metric=metric,
        value=entry["metrics"].get(metric),
        sd=None,
        baseline_kind=entry["baseline"]["kind"],
        baseline=entry["baseline"]["metrics"].get(metric),
        examples=entry["examples"],
        invalid=entry["invalid"],
        paper_baseline=published_value(task, metric),
    )


def _average_rows(
    experiment: str, arm: str, seed: int, averages: Mapping[str, Any]
) -> list[ScoreRow]:
    return [
        ScoreRow(
            experiment=experiment,
            arm=arm,
            seed=seed,
            runs=1,
            task=benchmark,
            metric=AVERAGE,
            value=average["value"],
            sd=None,
            baseline_kind="",
            baseline=None,
            examples=None,
            invalid=None,
            paper_baseline=published_value(benchmark, AVERAGE),
        )
        for benchmark, average in averages.items()
    ]


def metric_order(entry: Mapping[str, Any]) -> list[str]:
    """Return the metrics of a task, the primary one first."""
    primary = entry["primary_metric"]
    secondary = sorted(name for name in entry["metrics"] if name != primary)
    # A task without a metric that enters the averages has no primary one.
    return [primary, *secondary] if primary else secondary


def _means(runs: Sequence[Sequence[ScoreRow]]) -> list[ScoreRow]:
    """Return the means over seeds; undefined if a run lacks the number.

    A mean over the remaining seeds would silently compare other runs than the row next to it.
    """
    by_metric = [{(row.task, row.metric): row for row in run} for run in runs]
    means = []
    for row in runs[0]:
        same = [run.get((row.task, row.metric)) for run in by_metric]
        values = [entry.value for entry in same if entry and entry.value is not None]
        # Invalid answers are added up and not averaged: they are counts of the same rows.
        invalid = [entry.invalid for entry in same if entry and entry.invalid is not None]
        is_complete = len(values) == len(runs)
        means.append(
            replace(
                row,
                arm="",
                seed=None,
                runs=len(runs),
                value=statistics.fmean(values) if is_complete else None,
                # Of a sample: the seeds stand for all possible seeds.
                sd=statistics.stdev(values) if is_complete else None,
                invalid=sum(invalid) if len(invalid) == len(runs) else None,
            )
        )
    return means


def _with_paper(row: ScoreRow, paper_row: str, split: str, switches: str) -> ScoreRow:
    key = f"{row.task}.{row.metric}"
    paper = published_score(paper_row, key, split=split) if paper_row else None
    paper_sd = baseline_deviation(key, split=split)
    # Undefined scores stay undefined; they are not 0.
    difference = None if row.value is None or paper is None else row.value - paper
    return replace(
        row,
        paper_row=paper_row,
        paper=paper,
        paper_sd=paper_sd,
        differs=exceeds_deviation(difference, paper_sd),
        switches=switches,
    )


def experiment_rows(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return one row per number of an experiment: its mean over seeds, or its only run's."""
    averaged = {row.experiment for row in rows if row.runs > 1}
    return [row for row in rows if row.runs > 1 or row.experiment not in averaged]


def table_rows(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return one row per line of a table: each task and metric once, averages last.

    It is the row of the first experiment that has the task. The columns that do not depend on the
    experiment (trivial baseline, number of examples) are read from it.
    """
    lines: dict[tuple[str, str], ScoreRow] = {}
    for row in rows:
        if not row.metric.endswith(BOOTSTRAP):
            lines.setdefault((row.task, row.metric), row)
    return sorted(lines.values(), key=lambda row: row.metric == AVERAGE)
