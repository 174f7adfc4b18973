"""The published tables as read from their files, and the names of their rows.

`row` of an experiment names a row of T5's tables by its name, and a row of a system's table by the
table and its name, such as ``RoBERTa 1: static``, since names repeat from paper to paper.
"""

import functools
import importlib.resources
import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

NEAREST = 3  # names in the message about an unknown row


@functools.cache
def t5_tables() -> dict[str, Any]:
    """Return the content of `paper_tables.json`: ``source`` and ``tables`` by number."""
    return _read("paper_tables.json")


@functools.cache
def system_tables_content() -> dict[str, Any]:
    """Return the content of `system_tables.json`.

    ``titles`` of columns, ``configurations`` with the presets and changes of rows, ``stand_ins``
    and ``reasons`` as texts, and ``tables``.
    """
    return _read("system_tables.json")


def _read(name: str) -> dict[str, Any]:
    text = importlib.resources.files("t5repro.published").joinpath(name).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def system_row_name(table: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the name by which `row` of an experiment means a row of a system's table."""
    return f"{table['id']}: {row['name']}"


def key_of(table: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the configuration of a system's row, or its full name if it has none.

    Rows with the same key are one configuration, which several tables print.
    """
    return str(row.get("configuration", system_row_name(table, row)))


@functools.cache
def system_rows() -> dict[str, str]:
    """Return full name -> `key_of` of each row of a system's table, in the order of the tables."""
    return {
        system_row_name(table, row): key_of(table, row)
        for table in system_tables_content()["tables"]
        for row in table["rows"]
    }


@functools.cache
def row_names() -> tuple[str, ...]:
    """Return the names of all rows that `row` of an experiment may have, each once."""
    t5_rows = (row["name"] for table in t5_tables()["tables"].values() for row in table["rows"])
    return tuple(dict.fromkeys((*t5_rows, *system_rows())))


def check_row(name: str) -> None:
    """Refuse the name of a row that no table has.

    Raises:
        ValueError: there is none; the message names the nearest ones.
    """
    if name not in row_names():
        nearest = get_close_matches(name, row_names(), n=NEAREST, cutoff=0.0)
        raise ValueError(
            f"no published table has a row {name!r}; nearest: {', '.join(map(repr, nearest))}; "
            "`t5repro paper rows` prints all rows"
        )
