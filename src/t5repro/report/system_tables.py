"""The result tables of the systems before T5, with our scores next to their rows.

`published/system_tables.json` contains the tables. A row is followed by the experiments that have
its settings, and by those that name it in `row`, with the settings in which they differ
(`config/system_rows.py`). Corpora and vocabularies of the published models are others, which the
state of a row says (`row_states`), so no difference of scores is computed.

The figures are those that later reviews quote; they were not compared with the papers themselves.
Where two sources contradict each other, a sentence below the table names both.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from t5repro.config.presets.table import preset_of
from t5repro.published.tables import key_of, system_tables_content
from t5repro.report.experiments import Experiment, format_value
from t5repro.report.held_out import HeldOutRow
from t5repro.report.published_table import (
    MAX_COLUMNS,
    OurScores,
    PublishedTable,
    TableCell,
    TableRow,
    column_title,
    our_row,
    printed_row,
)
from t5repro.report.row_states import MEASURED_IN_PRETRAINING, system_state
from t5repro.report.titles import AVERAGE, UNDEFINED, format_score, format_sd

PAPERS = {
    "SpanBERT": "spanbert",
    "MT-DNN": "mt_dnn",
    "StructBERT": "structbert",
    "RoBERTa": "roberta",
    "ALBERT": "albert",
}


def system_tables(
    experiments: Sequence[Experiment],
    our_scores: OurScores,
    held_out: Sequence[HeldOutRow],
    *,
    split: str,
) -> list[PublishedTable]:
    """Return the tables of the run's systems and of the rows it names, those with ours first.

    Args:
        experiments: the experiments of the page.
        our_scores: their scores.
        held_out: their figures of pre-training.
        split: the scored split; in tables of another one our scores are not shown.
    """
    systems = {experiment.system for experiment in experiments if experiment.system}
    rows_with_experiments = {
        experiment.placement.row for experiment in experiments if experiment.placement.row
    }
    figures = {row.experiment: row.figures for row in held_out}
    tables = [
        _table(number, table, experiments if table["split"] == split else (), our_scores, figures)
        for number, table in enumerate(system_tables_content()["tables"], start=1)
        if PAPERS.get(table["paper"]) in systems
        or any(
            _system_of(row) in systems or key_of(table, row) in rows_with_experiments
            for row in table["rows"]
        )
    ]
    return sorted(tables, key=lambda table: not table.has_ours)


def _system_of(row: Mapping[str, Any]) -> str:
    """Return the system of which a row is a configuration; empty for none."""
    configuration = system_tables_content()["configurations"].get(row.get("configuration"))
    return preset_of("systems", configuration["use"]) if configuration else ""


def _table(
    number: int,
    table: Mapping[str, Any],
    experiments: Sequence[Experiment],
    our_scores: OurScores,
    figures: Mapping[str, Mapping[str, Sequence[float]]],
) -> PublishedTable:
    keys = table["columns"]
    rows: list[TableRow] = []
    notes: list[str] = []
    for row in table["rows"]:
        printed = [TableCell(text=format_score(value)) for value in row["values"]]
        key = key_of(table, row)
        own_experiments = [
            experiment for experiment in experiments if experiment.placement.row == key
        ]
        if own_experiments:
            notes.append(f"{row['name']}: {system_state(table, row)}.")
        rows.append(
            printed_row(row["name"], printed, note=str(len(notes)) if own_experiments else "")
        )
        for experiment in own_experiments:
            if experiment.placement.differences:
                notes.append(f"{experiment.name}: {_differences(experiment)}.")
            measured = figures.get(experiment.name, {})
            cells = [
                _measured_cell(measured.get(key, ()))
                if key.partition(".")[0] in MEASURED_IN_PRETRAINING
                else our_scores.cell(experiment, key, None, None)
                for key in keys
            ]
            note = str(len(notes)) if experiment.placement.differences else ""
            rows.append(our_row(experiment, cells, note=note))
    return PublishedTable(
        anchor=f"system-{number}",
        label=_label(table),
        title=table["title"],
        split=table["split"],
        is_transposed=len(keys) > MAX_COLUMNS,
        columns=tuple(map(_column_title, keys)),
        deviations=(),
        our_deviations=(),
        repetitions=0,
        rows=tuple(rows),
        notes=tuple(notes),
        remarks=tuple(table.get("notes", ())),
    )


def _measured_cell(figures: Sequence[float]) -> TableCell:
    """Return the cell of what pre-training measured on held-out text with each seed."""
    if not figures:
        return TableCell(text=UNDEFINED, reason="not measured by its training")
    mean = statistics.fmean(figures)
    sd = statistics.stdev(figures) if len(figures) > 1 else None
    return TableCell(text=format_score(mean), exact=repr(mean), sd=format_sd(sd))


def _differences(experiment: Experiment) -> str:
    """Return the settings in which an experiment differs from its row, with the row's values."""
    return "stand-in: " + ", ".join(
        f"{setting} {format_value(own)} for {format_value(published)}"
        for setting, (own, published) in experiment.placement.differences.items()
    )


def _column_title(key: str) -> tuple[str, str]:
    """Return the titles of a column's task and metric; an average over its table has no metric."""
    title, metric = column_title(key)
    task = key.partition(".")[0]
    return system_tables_content()["titles"].get(task, title), "" if task == AVERAGE else metric


def _label(table: Mapping[str, Any]) -> str:
    """Return the paper with the number of the table and where to find it."""
    number = f", table {table['table']}" if table["table"] else ""
    return f"{table['paper']}{number}" + (f" (arXiv {table['arxiv']})" if table["arxiv"] else "")
