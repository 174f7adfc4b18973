"""The result tables of the systems before T5, with our scores next to their rows.

`system_tables.json` contains the tables: a row with ``system`` is the configuration of that preset
(`config/presets/systems.py`), and is followed by the experiments that use it. Published models are
larger, and their corpora and vocabularies are others: no difference is computed. To add a table,
add it to that file.

The figures are those that later reviews quote; they were not compared with the papers themselves.
Where two sources contradict each other, a sentence below the table names both.
"""

import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any

from t5repro.report.experiments import Experiment
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
from t5repro.report.titles import AVERAGE, format_score

PAPERS = {"SpanBERT": "spanbert", "RoBERTa": "roberta", "ALBERT": "albert"}


@functools.cache
def table_content() -> dict[str, Any]:
    """Return the content of `system_tables.json`: ``titles`` of columns and ``tables``."""
    text = importlib.resources.files("t5repro.report").joinpath("system_tables.json")
    content: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    return content


def system_tables(
    experiments: Sequence[Experiment], our_scores: OurScores, *, split: str
) -> list[PublishedTable]:
    """Return the tables of the papers of the run's systems, those with rows of ours first.

    Args:
        experiments: the experiments of the page.
        our_scores: their scores.
        split: the scored split; in tables of another one our scores are not shown.
    """
    experiments_by_system: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        if experiment.system:
            experiments_by_system.setdefault(experiment.system, []).append(experiment)
    tables = [
        _table(number, table, experiments_by_system if table["split"] == split else {}, our_scores)
        for number, table in enumerate(table_content()["tables"], start=1)
        if PAPERS.get(table["paper"]) in experiments_by_system
        or any(row.get("system") in experiments_by_system for row in table["rows"])
    ]
    return sorted(tables, key=lambda table: not table.has_ours)


def _table(
    number: int,
    table: Mapping[str, Any],
    experiments_by_system: Mapping[str, Sequence[Experiment]],
    our_scores: OurScores,
) -> PublishedTable:
    keys = table["columns"]
    rows: list[TableRow] = []
    for row in table["rows"]:
        printed = [TableCell(text=format_score(value)) for value in row["values"]]
        rows.append(printed_row(row["name"], printed))
        rows += [
            our_row(experiment, [our_scores.cell(experiment, key, None, None) for key in keys])
            for experiment in experiments_by_system.get(row.get("system", ""), ())
        ]
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
        notes=(),
        remarks=tuple(table.get("notes", ())),
    )


def _column_title(key: str) -> tuple[str, str]:
    """Return the titles of a column's task and metric; an average over its table has no metric."""
    title, metric = column_title(key)
    task = key.partition(".")[0]
    return table_content()["titles"].get(task, title), "" if task == AVERAGE else metric


def _label(table: Mapping[str, Any]) -> str:
    """Return the paper with the number of the table and where to find it."""
    number = f", table {table['table']}" if table["table"] else ""
    return f"{table['paper']}{number}" + (f" (arXiv {table['arxiv']})" if table["arxiv"] else "")
