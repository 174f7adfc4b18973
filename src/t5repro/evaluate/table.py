"""All scores of a run as one list of rows: the source of the page, of the CSV and of the terminal.

Because the three are written from the same rows, a number cannot differ between them.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.evaluate.best import best_metrics
from t5repro.evaluate.published import published_value

AVERAGE = "average"
BEST = ":best"  # after an experiment's name: its best kept checkpoints instead of the last
BENCHMARKS = {"glue": "GLUE", "super_glue": "SuperGLUE"}
UNDEFINED = "–"

TASK_TITLES = {
    "glue_cola": "CoLA",
    "glue_sst2": "SST-2",
    "glue_mrpc": "MRPC",
    "glue_stsb": "STS-B",
    "glue_qqp": "QQP",
    "glue_mnli": "MNLI",
    "glue_mnli_matched": "MNLI matched",
    "glue_mnli_mismatched": "MNLI mismatched",
    "glue_qnli": "QNLI",
    "glue_rte": "RTE",
    "glue_wnli": "WNLI",
    "glue_ax": "AX",
    "super_glue_boolq": "BoolQ",
    "super_glue_cb": "CB",
    "super_glue_copa": "COPA",
    "super_glue_multirc": "MultiRC",
    "super_glue_record": "ReCoRD",
    "super_glue_rte": "RTE",
    "super_glue_wic": "WiC",
    "super_glue_wsc": "WSC",
    "super_glue_axb": "AX-b",
    "super_glue_axg": "AX-g",
    "dpr": "DPR",
    "squad": "SQuAD",
    "cnn_dailymail": "CNN/Daily Mail",
    "wmt_en_de": "English → German",
    "wmt_en_fr": "English → French",
    "wmt_en_ro": "English → Romanian",
}

METRIC_TITLES = {
    "accuracy": "accuracy",
    "matthews_corrcoef": "Matthews",
    "f1": "F1",
    "mean_3class_f1": "mean F1",
    "pearson_corrcoef": "Pearson",
    "spearman_corrcoef": "Spearman",
    "em": "exact match",
    "exact_match": "exact match",
    "bleu": "BLEU",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeLsum": "ROUGE-L",
    AVERAGE: "average",
}
BOOTSTRAP = "_bootstrap"  # ROUGE as a median over resampled rows: in the CSV only


@dataclass(frozen=True)
class ScoreRow:
    """One number of one experiment, as the CSV has it.

    Attributes:
        experiment: name of the arm, with `BEST` for its best kept checkpoints.
        task: name of the task, or of a benchmark for its mean.
        metric: name of the metric; ``average`` for a benchmark.
        value: on the scale of 100; None: it is not defined.
        baseline_kind: ``majority``, ``copy`` or, for a benchmark, nothing.
        baseline: what that trivial answer scores.
        examples: how many were scored.
        invalid: how many answers were none of the allowed.
        paper_baseline: what the paper's baseline scores on the real task.
    """

    experiment: str
    task: str
    metric: str
    value: float | None
    baseline_kind: str
    baseline: float | None
    examples: int | None
    invalid: int | None
    paper_baseline: float | None


def score_rows(scores: Mapping[str, Mapping[str, Any]]) -> list[ScoreRow]:
    """Return the rows of all experiments: tasks in their order, then the benchmarks' means.

    Args:
        scores: experiment -> content of its ``scores.json``.
    """
    rows = []
    for experiment, content in scores.items():
        for task, entry in content["tasks"].items():
            rows += [_task_row(experiment, task, entry, metric) for metric in metric_order(entry)]
        rows += _average_rows(experiment, content["averages"])
    for experiment, content in scores.items():
        if chosen := content.get("checkpoints"):
            rows += _best_rows(f"{experiment}{BEST}", content["tasks"], chosen)
    return rows


def _average_rows(experiment: str, averages: Mapping[str, Any]) -> list[ScoreRow]:
    return [
        ScoreRow(
            experiment=experiment,
            task=benchmark,
            metric=AVERAGE,
            value=mean["value"],
            baseline_kind="",
            baseline=None,
            examples=None,
            invalid=None,
            paper_baseline=published_value(benchmark, AVERAGE),
        )
        for benchmark, mean in averages.items()
    ]


def _best_rows(
    experiment: str, tasks: Mapping[str, Any], chosen: Mapping[str, Any]
) -> list[ScoreRow]:
    """Return the rows of the best kept checkpoints; invalid answers are counted at the last."""
    metrics = best_metrics(chosen["best"])
    rows = []
    for task, values in metrics.items():
        entry = {**tasks[task], "metrics": values, "invalid": None}
        rows += [_task_row(experiment, task, entry, metric) for metric in metric_order(entry)]
    return rows + _average_rows(experiment, chosen["averages"])


def metric_order(entry: Mapping[str, Any]) -> list[str]:
    """Return a task's metrics, the one that decides first."""
    primary = entry["primary_metric"]
    others = sorted(name for name in entry["metrics"] if name != primary)
    return [primary, *others] if primary else others


def _task_row(experiment: str, task: str, entry: Mapping[str, Any], metric: str) -> ScoreRow:
    return ScoreRow(
        experiment=experiment,
        task=task,
        metric=metric,
        value=entry["metrics"].get(metric),
        baseline_kind=entry["baseline"]["kind"],
        baseline=entry["baseline"]["metrics"].get(metric),
        examples=entry["examples"],
        invalid=entry["invalid"],
        paper_baseline=published_value(task, metric),
    )


def csv_text(rows: Sequence[ScoreRow]) -> str:
    """Return the rows as CSV; numbers in full, an undefined one empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(ScoreRow))
    writer.writerows(["" if cell is None else cell for cell in astuple(row)] for row in rows)
    return text.getvalue()


def read_csv(path: Path) -> list[ScoreRow]:
    """Read back what `csv_text` wrote.

    Raises:
        ArtifactError: it is missing or is no such table; the line is named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage report, which writes it") from error
    names = [field.name for field in fields(ScoreRow)]
    reader = csv.DictReader(io.StringIO(text))
    if reader.fieldnames != names:
        raise ArtifactError(f"{path} has columns {reader.fieldnames}; expected {names}")
    rows = []
    for number, cells in enumerate(reader, start=2):
        try:
            rows.append(_parse(cells))
        except (TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} line {number} is no score ({error}); delete it and rerun the stage report"
            ) from error
    return rows


def _parse(cells: Mapping[str, str]) -> ScoreRow:
    return ScoreRow(
        experiment=cells["experiment"],
        task=cells["task"],
        metric=cells["metric"],
        value=_number(cells["value"]),
        baseline_kind=cells["baseline_kind"],
        baseline=_number(cells["baseline"]),
        examples=int(cells["examples"]) if cells["examples"] else None,
        invalid=int(cells["invalid"]) if cells["invalid"] else None,
        paper_baseline=_number(cells["paper_baseline"]),
    )


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def shown(value: float | None) -> str:
    """Return a score as people read it: two places, or a dash where there is none."""
    return UNDEFINED if value is None else f"{value:.2f}".replace("-", "−")


def first_rows(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return one row for each task and metric that people are shown, means of benchmarks last.

    It is the first experiment's that has the task: what does not depend on the experiment
    (trivial answer, number of examples) is read from it.
    """
    firsts: dict[tuple[str, str], ScoreRow] = {}
    for row in rows:
        if not row.metric.endswith(BOOTSTRAP):
            firsts.setdefault((row.task, row.metric), row)
    return sorted(firsts.values(), key=lambda row: row.metric == AVERAGE)


def plain_table(rows: Sequence[ScoreRow]) -> str:
    """Return the rows as a plain text table, one line per task and metric."""
    experiments = list(dict.fromkeys(row.experiment for row in rows))
    values = {(row.task, row.metric, row.experiment): row.value for row in rows}
    head = ["task", "metric", "trivial", *experiments, "examples"]
    lines = [head]
    for first in first_rows(rows):
        kind = f" {first.baseline_kind}" if first.baseline_kind else ""
        scored = [
            shown(values.get((first.task, first.metric, experiment))) for experiment in experiments
        ]
        lines.append(
            [
                first.task,
                first.metric,
                (shown(first.baseline) + kind) if kind else "",
                *scored,
                "" if first.examples is None else str(first.examples),
            ]
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    left = 2  # the first columns are words, the others numbers
    texts = [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([texts[0], "-" * sum([*widths, 2 * (len(widths) - 1)]), *texts[1:]]) + "\n"
