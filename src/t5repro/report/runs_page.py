"""The page of all runs: a table that can be searched and sorted, and scores against compute.

Its rows are JSON in the page, which only its own script reads. In that JSON markup is escaped, and
names of runs lose their control characters like every text of the pages.
"""

import json
from typing import Any

from markupsafe import Markup

from t5repro.report.charts import STYLES
from t5repro.report.corpus import safe_text
from t5repro.report.templates import render
from t5repro.runs.row import SCORE, Row
from t5repro.runs.table import TEXTS, RunTable, headlines
from t5repro.runs.terms import Value

COLUMNS = ("run", "experiment", "seed", "state", "places", "flops", "tokens", "parameters")
COMPUTE = ("flops", "tokens", "parameters", "seconds")
NAME_CHARS = 200
SCORE_DIGITS = 4  # after the point, of a score out of 100
ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&'\u2028\u2029"}


def runs_page(table: RunTable) -> str:
    """Return the page of a table: its columns, what identifies a row, and all headlines."""
    columns = list(dict.fromkeys((*COLUMNS, *table.columns, *headlines(table.rows))))
    titles = {key: safe_text(key.removeprefix(SCORE), NAME_CHARS) for key in columns}
    numbers = dict(enumerate(columns))
    data = {
        "columns": [{"title": titles[key], "kind": _kind(key, table.rows)} for key in columns],
        "rows": [[_cell(key, row.get(key)) for key in columns] for row in table.rows],
        "styles": STYLES,
    }
    return render(
        "runs.html.j2",
        script="runs.js",
        count=len(table.rows),
        total=table.total,
        terms=[safe_text(str(term), NAME_CHARS) for term in table.terms],
        unread=[safe_text(f"{path}: {message}") for path, message in table.faults],
        scores={number: titles[key] for number, key in numbers.items() if key.startswith(SCORE)},
        computes={number: key for number, key in numbers.items() if key in COMPUTE},
        data=Markup(json_in_page(data)),  # noqa: S704
    )


def json_in_page(values: Any) -> str:
    """Return values as JSON that ends no element of a page, whatever text is in it."""
    return json.dumps(values, separators=(",", ":")).translate(ESCAPED)


def _kind(key: str, rows: tuple[Row, ...]) -> str:
    """Return how the script shows a column."""
    if key.startswith(SCORE):
        return "score"
    if key in ("flops", "tokens"):
        return "compute"
    is_text = key in TEXTS or any(isinstance(row.get(key), str) for row in rows)
    return "text" if is_text else "number"


def _cell(key: str, value: Value) -> Value:
    if isinstance(value, str):
        return safe_text(value, NAME_CHARS)
    if isinstance(value, float) and key.startswith(SCORE):
        return round(value, SCORE_DIGITS)
    return value
