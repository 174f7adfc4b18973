"""The paper's result tables with our scores next to each row.

A table appears if an experiment sets `row` to one of its rows; rows that repeat the same
configuration under another name (usually the baseline) share that experiment. A difference counts
if it exceeds two standard deviations of the paper's baseline, which was trained ten times.

Source: section 3.1.5 for the rule, tables 1 to 16 for the layout.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from t5repro.report.experiments import Experiment
from t5repro.report.published_scores import (
    BASELINE,
    DECISION_OF_TABLE,
    DEVIATION,
    PREVIOUS_BEST,
    PublishedRow,
    baseline_deviation,
    near_best,
    published_rows,
    published_title,
    rows_named,
)
from t5repro.report.published_table import (
    MAX_COLUMNS,
    OurScores,
    PublishedTable,
    TableCell,
    TableRow,
    column_title,
    missing_reasons,
    our_row,
    printed_row,
)
from t5repro.report.rows import BEST, best_of
from t5repro.report.titles import UNDEFINED, format_score


def paper_tables(
    scored_names: Collection[str],
    experiments: Sequence[Experiment],
    our_scores: OurScores,
    *,
    split: str,
) -> list[PublishedTable]:
    """Return every table of the paper that an experiment reproduces a row of.

    Args:
        scored_names: names of experiments with scores; best checkpoints have names of their own.
        experiments: the experiments of the page.
        our_scores: their scores. If model, data or steps are not the paper's, the tables show them
            without differences and never bold.
        split: the scored split; tables of another split are omitted.
    """
    # Scores of best checkpoints are shown as an experiment of their own, if there are any.
    candidates = [
        candidate
        for experiment in experiments
        for candidate in (experiment, best_of(experiment))
        if candidate.name in scored_names
    ]
    # A row of the paper can appear in several tables; each of them is shown.
    numbers = {
        row.table
        for experiment in experiments
        for row in rows_named(experiment.row)
        if row.split == split
    }
    return [_table(number, candidates, our_scores) for number in sorted(numbers)]


def table_anchor(number: int) -> str:
    """Return the id of a table of the paper on the page."""
    return f"paper-{number}"


def _table(number: int, experiments: Sequence[Experiment], our_scores: OurScores) -> PublishedTable:
    published = [row for row in published_rows() if row.table == number and row.name != DEVIATION]
    keys = list(published[0].values)
    deviations = [baseline_deviation(key, split=published[0].split) for key in keys]
    reproductions = {
        row.name: [experiment for experiment in experiments if row.is_reproduced_by(experiment.row)]
        for row in published
    }
    paper_bold = _paper_bold(published, keys, deviations)
    our_bold = _our_bold(reproductions, our_scores, keys, deviations)
    # Our deviation is measured over repetitions of the baseline and applies to the whole column, as
    # in the paper.
    trainings = baseline_trainings(experiments)
    notes: list[str] = []
    rows: list[TableRow] = []
    # Our rows follow the row that they reproduce, so that the two can be read column by column.
    for row in published:
        if row.note:
            notes.append(f"{row.name}: {row.note} ({DECISION_OF_TABLE[number]}).")
        printed = [
            TableCell(text=format_score(row.values[key]), is_bold=paper_bold[row.name, key])
            for key in keys
        ]
        rows.append(printed_row(row.name, printed, note=str(len(notes)) if row.note else ""))
        for experiment in reproductions[row.name]:
            cells = [
                replace(
                    our_scores.cell(experiment, key, row.values[key], deviation),
                    is_bold=our_bold[experiment.name, key],
                )
                for key, deviation in zip(keys, deviations, strict=True)
            ]
            rows.append(our_row(experiment, cells))
    return PublishedTable(
        anchor=table_anchor(number),
        label=f"Table {number}",
        title=published_title(number),
        split=published[0].split,
        is_transposed=len(keys) > MAX_COLUMNS,
        columns=tuple(map(column_title, keys)),
        deviations=tuple(map(_deviation_text, deviations)),
        our_deviations=tuple(
            _deviation_text(our_scores.deviation(trainings, key))
            for key in keys
            if len(trainings) > 1
        ),
        repetitions=len(trainings),
        rows=tuple(rows),
        notes=tuple(notes),
        remarks=missing_reasons(rows, keys),
    )


def baseline_trainings(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments that train the baseline, from fresh weights each.

    Our deviation is measured like the paper's: over repetitions of pre-training and fine-tuning.
    Repetitions of only the fine-tuning share a pre-training and are left out. If there are scores
    of best checkpoints, they count, as in the paper.

    Source: section 3.1.5.
    """
    trainings = [
        experiment
        for experiment in experiments
        if experiment.row == BASELINE and experiment.changes.keys() <= {"pretrain.repeat"}
    ]
    best = [experiment for experiment in trainings if experiment.name.endswith(BEST)]
    return best or trainings


def _deviation_text(deviation: float | None) -> str:
    return UNDEFINED if deviation is None else f"{deviation:.3f}"


def _paper_bold(
    published: Sequence[PublishedRow], keys: Sequence[str], deviations: Sequence[float | None]
) -> dict[tuple[str, str], bool]:
    """Return (row, column) -> whether the paper's score is bold."""
    bold = {(row.name, key): False for row in published for key in keys}
    # The previous state of the art is printed for comparison and never bold.
    models = [row for row in published if row.name != PREVIOUS_BEST]
    for key, deviation in zip(keys, deviations, strict=True):
        flags = near_best([row.values[key] for row in models], deviation)
        bold |= {(row.name, key): flag for row, flag in zip(models, flags, strict=True)}
    return bold


def _our_bold(
    reproductions: Mapping[str, Sequence[Experiment]],
    our_scores: OurScores,
    keys: Sequence[str],
    deviations: Sequence[float | None],
) -> dict[tuple[str, str], bool]:
    """Return (experiment, column) -> whether our score is bold.

    The paper's rows and ours are compared among themselves: models of another size would never
    be near the paper's best.
    """
    # One experiment can reproduce several rows of a table.
    experiments = list(
        {entry.name: entry for group in reproductions.values() for entry in group}.values()
    )
    if not our_scores.is_comparable:
        return {(entry.name, key): False for entry in experiments for key in keys}
    bold: dict[tuple[str, str], bool] = {}
    for key, deviation in zip(keys, deviations, strict=True):
        flags = near_best([our_scores.value(entry, key) for entry in experiments], deviation)
        bold |= {(entry.name, key): flag for entry, flag in zip(experiments, flags, strict=True)}
    return bold
