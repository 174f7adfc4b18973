"""The scores of a run as plain text, for ``t5repro show``."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from t5repro.artifacts import SCORE_TABLE
from t5repro.errors import ArtifactError
from t5repro.lineage.store import absent_run
from t5repro.progress import aligned
from t5repro.report.differences import differences, mean_difference
from t5repro.report.rows import BEST, ScoreRow, experiment_rows, table_rows
from t5repro.report.scores_csv import read_csv
from t5repro.report.titles import AVERAGE, UNDEFINED, format_score, format_sd

TEXT_COLUMNS = 2  # task and metric are aligned left, numbers right
LINE_CHARS = 100


def scores_text(run: Path) -> str:
    """Return the scores of a run and the path of its report.

    Args:
        run: folder of the run, such as ``results/demo``.

    Raises:
        ArtifactError: there is no such run, or it has no report.
    """
    if not run.is_dir():
        raise absent_run(run)
    paths = sorted((run / "report").rglob(SCORE_TABLE))
    if not paths:
        raise ArtifactError(
            f"{run / 'report'} contains no scores.csv: a run without tasks ends "
            "with pre-training and has no scores; start any other run again, it is not finished"
        )
    texts = []
    for path in paths:
        rows = read_csv(path)
        undefined = undefined_averages(rows)
        texts += [plain_table([row for row in rows if not _is_of(row, undefined)]), "\n"]
        if undefined:
            texts.append(f"no average of {', '.join(undefined)}: it needs all of its tasks\n")
        texts += [f"{line}\n" for line in (*difference_lines(rows), *choice_lines(rows))]
        texts.append(f"report: {path.with_name('report.html').as_posix()}\n")
    return "".join(texts)


def undefined_averages(rows: Sequence[ScoreRow]) -> list[str]:
    """Return the benchmarks without an average in any experiment."""
    averages = [row for row in rows if row.metric == AVERAGE]
    defined = {row.task for row in averages if row.value is not None}
    return [name for name in dict.fromkeys(row.task for row in averages) if name not in defined]


def _is_of(row: ScoreRow, benchmarks: Sequence[str]) -> bool:
    return row.metric == AVERAGE and row.task in benchmarks


def difference_lines(rows: Sequence[ScoreRow]) -> list[str]:
    """Return the mean difference of the first two experiments; nothing without two."""
    pair = compared_experiments(rows)
    effect = mean_difference(rows, *pair) if pair else None
    if not pair or not effect:
        return []
    seeds = {row.seed for row in rows if row.experiment == pair[0] and row.seed is not None}
    spread = f", ± standard deviation over {len(seeds)} seeds" if effect.mean.sd is not None else ""
    tasks = effect.better + effect.worse + effect.equal
    return [
        f"{pair[0]} − {pair[1]}: {effect.mean} on average over the first metric of {tasks} tasks"
        f"{spread}"
    ]


def compared_experiments(rows: Sequence[ScoreRow]) -> tuple[str, str] | None:
    """Return the first two experiments, at their last step; None if there is one."""
    # Best checkpoints are a second set of scores of the same experiment, not another experiment.
    names = dict.fromkeys(row.experiment for row in rows if not row.experiment.endswith(BEST))
    first, second, *_ = [*names, "", ""]
    return (first, second) if second else None


def choice_lines(rows: Sequence[ScoreRow]) -> list[str]:
    """Return the choices with another value than the default, a line per distinct set."""
    experiments: dict[str, dict[str, None]] = {}
    for row in rows:
        experiments.setdefault(row.switches, {})[row.experiment] = None
    return [
        line
        for switches, names in experiments.items()
        for line in textwrap.wrap(
            f"choices of {', '.join(names)}: {switches or 'all defaults'}",
            LINE_CHARS,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def plain_table(rows: Sequence[ScoreRow]) -> str:
    """Return the rows as a text table, one line per task and metric, a column per experiment.

    With several experiments, a column has the difference of the first two.
    """
    by_experiment = experiment_rows(rows)
    experiments = list(dict.fromkeys(row.experiment for row in by_experiment))
    cells = {
        (row.task, row.metric, row.experiment): format_score(row.value) + format_sd(row.sd)
        for row in by_experiment
    }
    pair = compared_experiments(rows)
    difference_of = differences(rows, *pair) if pair else {}
    lines = [
        ["task", "metric", "trivial", *experiments, *(["difference"] if pair else []), "examples"]
    ]
    for row in table_rows(by_experiment):
        trivial = f"{format_score(row.baseline)} {row.baseline_kind}" if row.baseline_kind else ""
        scores = [
            cells.get((row.task, row.metric, experiment), UNDEFINED) for experiment in experiments
        ]
        examples = "" if row.examples is None else str(row.examples)
        difference = [str(difference_of.get((row.task, row.metric), ""))] if pair else []
        lines.append([row.task, row.metric, trivial, *scores, *difference, examples])
    return aligned(lines, left=range(TEXT_COLUMNS), rule=True)
