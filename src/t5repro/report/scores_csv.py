"""``scores.csv``: every row of the report in full precision."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.report.rows import ScoreRow

COLUMNS = [field.name for field in fields(ScoreRow)]


def csv_text(rows: Sequence[ScoreRow]) -> str:
    """Return the rows as CSV; an undefined number is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in astuple(row)] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else value


def read_csv(path: Path) -> list[ScoreRow]:
    """Read the rows that `csv_text` wrote.

    Raises:
        ArtifactError: the file is missing, has other columns, or has a line that is not a score.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage report, which writes it") from error
    reader = csv.DictReader(io.StringIO(text))
    if reader.fieldnames != COLUMNS:
        raise ArtifactError(
            f"{path} has columns {reader.fieldnames}; expected {COLUMNS}; rerun the stage report"
        )
    rows = []
    for line, cells in enumerate(reader, start=2):
        try:
            rows.append(_parse(cells))
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} line {line} is not a score ({error}); delete it and rerun the stage report"
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
        low=_number(cells["low"]),
        high=_number(cells["high"]),
    )


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
