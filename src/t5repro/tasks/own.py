"""Tasks that a run file describes: files, a prefix, fields and an answer (`tasks.own`).

Rows come from tab-separated files (quotes are text), comma-separated files (quoted cells may
contain lines), JSON lines or Parquet; the suffix of a file decides.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.config.sections.tasks import OwnTask
from t5repro.tasks.baselines import MAJORITY, MEAN, copy_baseline
from t5repro.tasks.lines import invalid_data, refuse_repeated
from t5repro.tasks.predictions import (
    is_blank,
    is_invalid_label,
    is_unreadable_number,
    label_index,
    read_number,
    unchanged,
)
from t5repro.tasks.records import LONE_SURROGATE, read_records
from t5repro.tasks.tables import Columns, csv_rows, read_tsv
from t5repro.tasks.task import NO_TARGET, Example, Row, Task

CURE = "correct the row, or the description of the task under tasks.own"
SPLIT_NAMES = {  # values of a split column
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}


def own_task(name: str, definition: OwnTask) -> Task:
    """Return the task that an entry of `tasks.own` defines."""
    definition = definition.model_copy(update={"prefix": definition.prefix or name})
    common: dict[str, Any] = {
        "name": name,
        "read": partial(read_rows, definition=definition),
        "to_examples": partial(format_row, definition=definition),
        "metrics": tuple(definition.metrics),
        "labels": tuple(definition.labels),
    }
    if definition.answer_kind == "label":
        return Task(
            read_prediction=partial(label_index, labels=tuple(definition.labels)),
            is_invalid=is_invalid_label,
            baseline=MAJORITY,
            **common,
        )
    if definition.answer_kind == "number":
        return Task(
            read_prediction=read_number, is_invalid=is_unreadable_number, baseline=MEAN, **common
        )
    return Task(
        read_prediction=unchanged,
        is_invalid=is_blank,
        baseline=copy_baseline(f"{definition.prefix} "),
        **common,
    )


# Rows to text


def format_row(row: Row, *, definition: OwnTask) -> tuple[Example]:
    """Write the fields of a row after the prefix; the target is the label's word or the text."""
    fields = [
        f"{name}: {value}" if definition.field_names else value
        for name, value in row["fields"].items()
    ]
    inputs = " ".join([definition.prefix, *fields])
    segments = tuple(row["fields"].values())
    answer = row["label"]
    if answer is None:
        return (Example(inputs, NO_TARGET, row["idx"], None, segments),)
    targets = definition.labels[answer] if definition.labels else row["target"]
    return (Example(inputs, targets, row["idx"], answer, segments),)


def read_rows(
    files: Sequence[Path], split: str, excluded: Counter[str], *, definition: OwnTask
) -> Iterator[Row]:
    """Yield the fields, the answer and the identity of each row.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may lack an answer.
        excluded: unused.
        definition: the task.

    Raises:
        TaskDataError: a file or a row does not match the definition.
    """
    locations: dict[Hashable, str] = {}
    count = 0
    further_columns = [name for name in (definition.id, definition.split_column) if name]
    required = tuple(dict.fromkeys([*definition.fields, *further_columns]))
    for path in files:
        # A file may have rows of several splits; every row counts for `idx`.
        for location, cells in read_cells(path, split, required, definition.target):
            if not _belongs(cells, location, split, definition):
                count += 1  # a row has the same number in every split
                continue
            idx: Any = cells[definition.id] if definition.id else count
            count += 1
            if definition.id:
                refuse_repeated(idx, location, locations)
            target = cells.get(definition.target)
            yield {
                "fields": {name: cells[name] for name in definition.fields},
                "target": target,
                "label": None if target is None else _answer(target, location, definition),
                "idx": idx,
                "location": location,
            }


def _belongs(cells: Mapping[str, str], location: str, split: str, definition: OwnTask) -> bool:
    """Return whether a row is part of a split."""
    if definition.validation_share and split in ("train", "validation"):
        is_held_out = _fraction(cells, definition) < definition.validation_share
        return is_held_out == (split == "validation")
    if definition.split_column:
        value = cells[definition.split_column]
        if value.strip().lower() not in SPLIT_NAMES:
            allowed = " or ".join(SPLIT_NAMES)
            raise invalid_data(location, f"{definition.split_column} is", value, allowed, CURE)
        return SPLIT_NAMES[value.strip().lower()] == split
    return True


def _fraction(cells: Mapping[str, str], definition: OwnTask) -> float:
    """Return a number from 0 to 1 that the fields of a row decide, and its target does not."""
    # By a hash of the fields: equal inputs go to one split, and the order of rows does not matter.
    text = json.dumps([cells[name] for name in definition.fields])
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def _answer(target: str, location: str, definition: OwnTask) -> Any:
    if definition.answer_kind == "label":
        values = definition.label_values or definition.labels
        if target not in values:
            allowed = " or ".join(map(repr, values))
            raise invalid_data(location, f"{definition.target} is", target, allowed, CURE)
        return values.index(target)
    # "nan" and "inf" are numbers to Python, but not to a metric.
    if definition.answer_kind == "number":
        try:
            value = float(target)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise invalid_data(location, f"{definition.target} is", target, "a number", CURE)
        return value
    if not target.strip():
        raise invalid_data(
            location, f"{definition.target} is", target, "text that is not blank", CURE
        )
    return target


def read_cells(
    path: Path, split: str, required: tuple[str, ...], target: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield location and cells of each row of a file, as text.

    Args:
        path: file; its suffix names its form.
        split: only the rows of ``test`` may lack the target.
        required: columns that every row has.
        target: column of the target.

    Raises:
        TaskDataError: the file or a row cannot be read.
    """
    if path.suffix == ".tsv":
        # The reader of GLUE's tables names fields; here every column keeps its name.
        layout = Columns({name: name for name in required}, target)
        rows = read_tsv(
            [path], split, Counter(), layouts=(layout,), parse_label=str, byte_order_mark=True
        )
        for row in rows:
            cells = {name: row[name] for name in required}
            answer = {} if row["label"] is None else {target: row["label"]}
            yield row["location"], cells | answer
    elif path.suffix == ".csv":
        if split == "test":
            yield from csv_rows(path, required, optional=(target,))
        else:
            yield from csv_rows(path, (*required, target))
    elif path.suffix == ".parquet":
        # Here: no other task needs pyarrow, whose import takes longer than most of them.
        from t5repro.tasks.parquet import parquet_columns, parquet_rows

        names = [*required, target]
        if split == "test" and target not in parquet_columns(path):
            names.pop()
        for location, record in parquet_rows(path, names):
            yield location, {name: _text_at(record, name, location) for name in names}
    else:
        to_rows = partial(_record_cells, required=required, target=target)
        for row in read_records([path], split, Counter(), to_rows=to_rows):
            yield row["location"], row["cells"]


def _record_cells(
    record: Mapping[str, Any],
    location: str,
    split: str,
    excluded: Counter[str],
    *,
    required: tuple[str, ...],
    target: str,
) -> Iterator[Row]:
    has_target = split != "test" or target in record
    names = (*required, target) if has_target else required
    # `read_records` refuses a repeated idx, which every row must have; `read_rows` sets the final
    # one.
    yield {"cells": {name: _text_at(record, name, location) for name in names}, "idx": location}


def _text_at(record: Mapping[str, Any], key: str, location: str) -> str:
    """Return a text, number or truth value of a record as text."""
    if key not in record:
        raise invalid_data(
            location, f"no {key!r} among", sorted(record), f"a record with {key!r}", CURE
        )
    value = record[key]
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str) or LONE_SURROGATE.search(value):
        raise invalid_data(location, f"{key} is", value, "text, a number, true or false", CURE)
    return value
