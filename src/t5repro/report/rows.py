"""All scores of a run as one list of rows: the source of the page, of the CSV and of the terminal.

Because the three are written from the same rows, a number cannot differ between them.
"""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.evaluate.checkpoint_selection import best_metrics
from t5repro.report.experiments import Group
from t5repro.report.published_scores import counts_as_difference, deviation, figure, published_value

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
        experiment: name of the experiment, which may have several arms; with `BEST` for its
            best kept checkpoints.
        arm: name of the arm; empty on the mean over seeds.
        seed: of the arm; None on the mean over seeds.
        runs: how many arms the number is the mean of.
        task: name of the task, or of a benchmark for its mean.
        metric: name of the metric; ``average`` for a benchmark.
        value: on the scale of 100; None: it is not defined.
        sd: standard deviation over the seeds, with n - 1; None for one run.
        baseline_kind: ``majority``, ``copy`` or, for a benchmark, nothing.
        baseline: what that trivial answer scores.
        examples: how many were scored.
        invalid: how many answers were none of the allowed; of several runs, all of theirs.
        paper_baseline: what the paper's baseline scores on the real task.
        paper_row: row of the paper that the experiment stands for.
        paper: what that row scores.
        paper_sd: standard deviation of the paper's baseline.
        differs: whether value and paper are over two of these deviations apart.
        switches: choices away from their defaults, ``name=value`` each.
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


def score_rows(
    listed: Sequence[Group],
    scores: Mapping[str, Mapping[str, Any]],
    *,
    split: str = "validation",
    switches: Mapping[str, str] | None = None,
) -> list[ScoreRow]:
    """Return the rows of all experiments: each arm's, then the means over seeds where it has some.

    Args:
        listed: the experiments.
        scores: arm -> content of its ``scores.json``.
        split: which split was scored.
        switches: arm -> its choices away from their defaults.
    """
    rows = []
    for group in listed:
        away = (switches or {}).get(group.name, "")
        runs = [
            _arm_rows(group, arm, seed, scores[arm])
            for arm, seed in zip(group.arms, group.seeds, strict=True)
        ]
        best = [
            _best_rows(best_of(group), f"{arm}{BEST}", seed, scores[arm])
            for arm, seed in zip(group.arms, group.seeds, strict=True)
            if scores[arm].get("checkpoints")
        ]
        for found in (runs, best):
            for run in [*found, _means(found)] if len(found) > 1 else found:
                rows += [_beside_paper(row, group.row, split, away) for row in run]
    return rows


def best_of(group: Group) -> Group:
    """Return an experiment at the best kept checkpoints of each group of tasks."""
    return replace(
        group, name=f"{group.name}{BEST}", arms=tuple(f"{arm}{BEST}" for arm in group.arms)
    )


def _arm_rows(group: Group, arm: str, seed: int, content: Mapping[str, Any]) -> list[ScoreRow]:
    """Return an arm's rows: tasks in their order, then the benchmarks' means."""
    rows = [
        _task_row(group.name, arm, seed, task, entry, metric)
        for task, entry in content["tasks"].items()
        for metric in metric_order(entry)
    ]
    return rows + _average_rows(group, arm, seed, content["averages"])


def _average_rows(group: Group, arm: str, seed: int, averages: Mapping[str, Any]) -> list[ScoreRow]:
    return [
        ScoreRow(
            experiment=group.name,
            arm=arm,
            seed=seed,
            runs=1,
            task=benchmark,
            metric=AVERAGE,
            value=mean["value"],
            sd=None,
            baseline_kind="",
            baseline=None,
            examples=None,
            invalid=None,
            paper_baseline=published_value(benchmark, AVERAGE),
        )
        for benchmark, mean in averages.items()
    ]


def _best_rows(group: Group, arm: str, seed: int, content: Mapping[str, Any]) -> list[ScoreRow]:
    """Return the rows of the best kept checkpoints; invalid answers are counted at the last."""
    chosen = content["checkpoints"]
    rows = []
    for task, values in best_metrics(chosen["best"]).items():
        entry = {**content["tasks"][task], "metrics": values, "invalid": None}
        rows += [
            _task_row(group.name, arm, seed, task, entry, metric) for metric in metric_order(entry)
        ]
    return rows + _average_rows(group, arm, seed, chosen["averages"])


def _means(runs: Sequence[Sequence[ScoreRow]]) -> list[ScoreRow]:
    """Return the means over seeds; undefined where one of the runs has no number."""
    by_number = [{(row.task, row.metric): row for row in run} for run in runs]
    rows = []
    for row in runs[0]:
        found = [run.get((row.task, row.metric)) for run in by_number]
        values = [other.value for other in found if other and other.value is not None]
        whole = len(values) == len(runs)
        invalid = [other.invalid for other in found if other and other.invalid is not None]
        rows.append(
            replace(
                row,
                arm="",
                seed=None,
                runs=len(runs),
                value=statistics.fmean(values) if whole else None,
                sd=statistics.stdev(values) if whole else None,
                invalid=sum(invalid) if len(invalid) == len(runs) else None,
            )
        )
    return rows


def _beside_paper(row: ScoreRow, name: str, split: str, switches: str) -> ScoreRow:
    key = f"{row.task}.{row.metric}"
    paper = figure(name, key, split=split) if name else None
    spread = deviation(key, split=split)
    difference = None if row.value is None or paper is None else row.value - paper
    return replace(
        row,
        paper_row=name,
        paper=paper,
        paper_sd=spread,
        differs=counts_as_difference(difference, spread),
        switches=switches,
    )


def of_experiments(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return the rows that stand for whole experiments: means over seeds, or the only run's."""
    several = {row.experiment for row in rows if row.runs > 1}
    return [row for row in rows if row.runs > 1 or row.experiment not in several]


def metric_order(entry: Mapping[str, Any]) -> list[str]:
    """Return a task's metrics, the one that decides first."""
    primary = entry["primary_metric"]
    others = sorted(name for name in entry["metrics"] if name != primary)
    return [primary, *others] if primary else others


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


def csv_text(rows: Sequence[ScoreRow]) -> str:
    """Return the rows as CSV; numbers in full, an undefined one empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(ScoreRow))
    writer.writerows([_cell(cell) for cell in astuple(row)] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else value


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
        raise ArtifactError(
            f"{path} has columns {reader.fieldnames}; expected {names}; rerun the stage report"
        )
    rows = []
    for number, cells in enumerate(reader, start=2):
        try:
            rows.append(_parse(cells))
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} line {number} is no score ({error}); delete it and rerun the stage report"
            ) from error
    return rows


def _parse(cells: Mapping[str, str]) -> ScoreRow:
    return ScoreRow(
        experiment=cells["experiment"],
        arm=cells["arm"],
        seed=int(cells["seed"]) if cells["seed"] else None,
        runs=int(cells["runs"]),
        task=cells["task"],
        metric=cells["metric"],
        value=_number(cells["value"]),
        sd=_number(cells["sd"]),
        baseline_kind=cells["baseline_kind"],
        baseline=_number(cells["baseline"]),
        examples=int(cells["examples"]) if cells["examples"] else None,
        invalid=int(cells["invalid"]) if cells["invalid"] else None,
        paper_baseline=_number(cells["paper_baseline"]),
        paper_row=cells["paper_row"],
        paper=_number(cells["paper"]),
        paper_sd=_number(cells["paper_sd"]),
        differs={"yes": True, "no": False, "": None}[cells["differs"]],
        switches=cells["switches"],
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


def spread(value: float | None) -> str:
    """Return a standard deviation as it follows its mean; nothing where there is none."""
    return "" if value is None else f" ±{value:.2f}"


def switch_lines(rows: Sequence[ScoreRow]) -> list[str]:
    """Return the choices away from their defaults, one line for experiments that agree."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row.switches, {})[row.experiment] = None
    return [
        f"switches of {', '.join(experiments)}: {text or 'all at their defaults'}"
        for text, experiments in found.items()
    ]


def plain_table(every: Sequence[ScoreRow]) -> str:
    """Return the rows as a plain text table, one line per task and metric.

    Several seeds are one column: their mean and standard deviation.
    """
    rows = of_experiments(every)
    experiments = list(dict.fromkeys(row.experiment for row in rows))
    values = {
        (row.task, row.metric, row.experiment): shown(row.value) + spread(row.sd) for row in rows
    }
    head = ["task", "metric", "trivial", *experiments, "examples"]
    lines = [head]
    for first in first_rows(rows):
        kind = f" {first.baseline_kind}" if first.baseline_kind else ""
        scored = [
            values.get((first.task, first.metric, experiment), UNDEFINED)
            for experiment in experiments
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
