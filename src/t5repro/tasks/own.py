"""Tasks that a run file describes: files, a prefix, fields, options, an answer (`tasks.own`).

Rows come from tab-separated files (quotes are text), comma-separated files (quoted cells may
contain lines), JSON lines or Parquet; the suffix of a file decides.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.config.sections.tasks import OwnTask
from t5repro.errors import TaskDataError
from t5repro.tasks.baselines import MAJORITY, MEAN, copy_baseline
from t5repro.tasks.lines import CURE_OF_BYTES, invalid_data, refuse_repeated
from t5repro.tasks.numbers import number_of
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
INCOMPLETE_CURE = "correct them, or leave them out with tasks.own.<task>.incomplete: skip"
SHOWN_PLACES = 5  # of rows without a value, in a message
Place = tuple[str, str, str | None]  # location, column, value
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
        "labels": tuple(definition.answer_words),
    }
    if definition.answer_kind in ("label", "choice"):
        return Task(
            read_prediction=partial(label_index, labels=tuple(definition.answer_words)),
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
    """Write options and fields of a row after the prefix; the target is a word or the text.

    Options are first, as COPA's: inputs that are too long lose their end.
    """
    answer_words, options = definition.answer_words, row["options"]
    named_options = [
        f"{word}: {option}" for word, option in zip(answer_words, options, strict=False)
    ]
    fields = [
        f"{name}: {value}" if definition.field_names else value
        for name, value in row["fields"].items()
    ]
    inputs = " ".join([definition.prefix, *named_options, *fields])
    segments = tuple(row["fields"].values())
    answer = row["label"]
    if answer is None:
        return (Example(inputs, NO_TARGET, row["idx"], None, segments, options),)
    targets = answer_words[answer] if answer_words else row["target"]
    return (Example(inputs, targets, row["idx"], answer, segments, options),)


def read_rows(
    files: Sequence[Path], split: str, excluded: Counter[str], *, definition: OwnTask
) -> Iterator[Row]:
    """Yield the fields, the answer and the identity of each row.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may lack an answer.
        excluded: counts ``incomplete``, rows without a value, if the task skips them.
        definition: the task.

    Raises:
        TaskDataError: a file or a row does not match the definition, or rows lack a value.
    """
    locations: dict[Hashable, str] = {}
    incomplete: list[Place] = []
    held_out = _held_out(files, split, definition)
    target_column = definition.target
    for count, (location, cells) in enumerate(_all_cells(files, split, definition)):
        # A file may have rows of several splits; every row counts for `idx`.
        missing = _missing(cells, _required(definition))
        if not missing and not _belongs(cells, location, split, definition, held_out):
            continue
        missing = missing or _missing(cells, [target_column] if target_column in cells else [])
        if missing:
            incomplete.append((location, missing[0], cells[missing[0]]))
            continue
        idx: Any = cells[definition.id] if definition.id else count
        if definition.id:
            refuse_repeated(idx, location, locations)
        target = cells.get(target_column)
        yield {
            "fields": {name: cells[name] for name in definition.fields},
            "options": tuple(cells[name] for name in definition.options),
            "target": target,
            "label": None if target is None else _answer(target, location, definition),
            "idx": idx,
            "location": location,
        }
    if incomplete and definition.incomplete == "refuse":
        raise incomplete_rows(incomplete, INCOMPLETE_CURE)
    if incomplete:
        excluded["incomplete"] += len(incomplete)


def incomplete_rows(gaps: Sequence[Place], cure: str) -> TaskDataError:
    """Return the error for rows without a value; it counts all and names the first."""
    location, name, value = gaps[0]
    further = ""
    if len(gaps) > 1:
        names = [
            f"{gap_location.rpartition('/')[2]} ({column})" for gap_location, column, _ in gaps
        ]
        dots = ", …" if len(names) > SHOWN_PLACES else ""
        further = f"; {len(gaps):,} rows lack one: {', '.join(names[:SHOWN_PLACES])}{dots}"
    gap_text = "missing" if value is None else repr(value)
    return TaskDataError(f"{location}: {name} is {gap_text}; allowed: a value{further}; {cure}")


def _missing(cells: Mapping[str, str | None], names: Iterable[str]) -> list[str]:
    """Return the columns without a value: blank, null or NaN."""
    return [name for name in names if not (cells[name] or "").strip()]


def _required(definition: OwnTask) -> tuple[str, ...]:
    further_columns = [name for name in (definition.id, definition.split_column) if name]
    return tuple(dict.fromkeys([*definition.fields, *definition.options, *further_columns]))


def _all_cells(
    files: Sequence[Path], split: str, definition: OwnTask
) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in files:
        yield from read_cells(
            path,
            split,
            _required(definition),
            definition.target,
            delimiter=definition.delimiter,
            encoding=definition.encoding,
        )


def _held_out(
    files: Sequence[Path], split: str, definition: OwnTask
) -> frozenset[tuple[str, ...]] | None:
    """Return the inputs of the validation split of a stratified task; None for other splits.

    Each label holds out its share of inputs, at least one of two or more. A hash orders them.
    """
    if not definition.stratified or split not in ("train", "validation"):
        return None
    names = [*definition.fields, definition.target]
    label_of: dict[tuple[str, ...], str] = {}  # equal inputs stay together, by their first label
    for _, cells in _all_cells(files, split, definition):
        if not _missing(cells, names):
            label_of.setdefault(_inputs_of(cells, definition), cells[definition.target])
    of_label: dict[str, list[tuple[str, ...]]] = {}
    for inputs in sorted(label_of, key=lambda inputs: (_fraction(inputs), inputs)):
        of_label.setdefault(label_of[inputs], []).append(inputs)
    share = definition.validation_share
    return frozenset(
        inputs
        for group in of_label.values()
        for inputs in group[: min(len(group) - 1, max(1, round(share * len(group))))]
    )


def _inputs_of(cells: Mapping[str, str], definition: OwnTask) -> tuple[str, ...]:
    return tuple(cells[name] for name in definition.fields)


def _belongs(
    cells: Mapping[str, str],
    location: str,
    split: str,
    definition: OwnTask,
    held_out: frozenset[tuple[str, ...]] | None,
) -> bool:
    """Return whether a row is part of a split."""
    if definition.validation_share and split in ("train", "validation"):
        inputs = _inputs_of(cells, definition)
        if held_out is None:
            is_held_out = _fraction(inputs) < definition.validation_share
        else:
            is_held_out = inputs in held_out
        # One test for both splits, so no row is in both or in neither.
        return is_held_out == (split == "validation")
    if definition.split_column:
        value = cells[definition.split_column]
        if value.strip().lower() not in SPLIT_NAMES:
            allowed = " or ".join(SPLIT_NAMES)
            raise invalid_data(location, f"{definition.split_column} is", value, allowed, CURE)
        return SPLIT_NAMES[value.strip().lower()] == split
    return True


def _fraction(inputs: Sequence[str]) -> float:
    """Return a number from 0 to 1 that the fields of a row decide, and its target does not."""
    # By a hash of the fields: equal inputs go to one split, and the order of rows does not matter.
    text = json.dumps(list(inputs))
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def _answer(target: str, location: str, definition: OwnTask) -> Any:
    if definition.answer_words:
        values = definition.label_values or definition.answer_words
        if target not in values:
            allowed = " or ".join(map(repr, values))
            raise invalid_data(location, f"{definition.target} is", target, allowed, CURE)
        return values.index(target)
    if definition.answer_kind == "number":
        value = number_of(target)
        if value is None:
            raise invalid_data(location, f"{definition.target} is", target, "a number", CURE)
        return value
    return target


def read_cells(
    path: Path,
    split: str,
    required: tuple[str, ...],
    target: str,
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield location and cells of each row of a file, as text; None for null, NaN or no value.

    Args:
        path: file; its suffix names its form.
        split: only the rows of ``test`` may lack the target.
        required: columns that every row has.
        target: column of the target.
        delimiter: character between the cells of a .csv file.
        encoding: encoding of a .csv or .tsv file.

    Raises:
        TaskDataError: the file or a row cannot be read, or a cell has a NUL character.
    """
    rows = _rows_of_cells(path, split, required, target, delimiter, encoding)
    for location, cells in rows:
        is_header = len(cells) > 1 and all(text == name for name, text in cells.items())
        if is_header and path.suffix in (".csv", ".tsv"):  # of files that were joined
            cure = "remove the line"
            raise invalid_data(location, "the header again:", list(cells), "a row", cure)
        for name, text in cells.items():
            if text is not None and "\0" in text:  # such as UTF-16 without its mark
                fault = f"{name} has a NUL character:"
                raise invalid_data(location, fault, text, "text", CURE_OF_BYTES)
        yield location, cells


def _rows_of_cells(
    path: Path, split: str, required: tuple[str, ...], target: str, delimiter: str, encoding: str
) -> Iterator[tuple[str, dict[str, str | None]]]:
    if path.suffix == ".tsv":
        # The reader of GLUE's tables names fields; here every column keeps its name.
        layout = Columns({name: name for name in required}, target)
        rows = read_tsv(
            [path],
            split,
            Counter(),
            layouts=(layout,),
            parse_label=str,
            byte_order_mark=True,
            encoding=encoding,
            skip_blank_lines=True,
        )
        for row in rows:
            cells = {name: row[name] for name in required}
            answer = {} if row["label"] is None else {target: row["label"]}
            yield row["location"], cells | answer
    elif path.suffix == ".csv":
        columns, optional = ((*required, target), ()) if split != "test" else (required, (target,))
        for location, texts in csv_rows(
            path, columns, optional=optional, delimiter=delimiter, encoding=encoding
        ):
            yield location, dict(texts)
    elif path.suffix == ".parquet":
        # Here: no other task needs pyarrow, whose import takes longer than most of them.
        from t5repro.tasks.parquet import parquet_columns, parquet_rows

        names = [*required, target]
        if split == "test" and target not in parquet_columns(path):
            names.pop()
        for location, record in parquet_rows(path, names):
            yield location, {name: _text_at(record, name, location) for name in names}
    else:
        to_rows = partial(_record_cells, required=required, target=target, columns=set())
        for row in read_records([path], split, Counter(), to_rows=to_rows, skip_blank_lines=True):
            yield row["location"], row["cells"]


def _record_cells(
    record: Mapping[str, Any],
    location: str,
    split: str,
    excluded: Counter[str],
    *,
    required: tuple[str, ...],
    target: str,
    columns: set[str],
) -> Iterator[Row]:
    if not columns:  # the first record has the columns of the file; later ones may lack a value
        columns.update(record)
    has_target = split != "test" or target in record
    names = (*required, target) if has_target else required
    # `read_records` refuses a repeated idx, which every row must have; `read_rows` sets the final
    # one.
    for name in names:
        if name not in columns and name not in record:
            raise invalid_data(
                location, f"no {name!r} among", sorted(record), f"a record with {name!r}", CURE
            )
    yield {"cells": {name: _text_at(record, name, location) for name in names}, "idx": location}


def _text_at(record: Mapping[str, Any], key: str, location: str) -> str | None:
    """Return a text, number or truth value of a record as text; None if it has no value."""
    value = record.get(key)
    # Python's JSON and pandas write a missing number as NaN.
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    if not isinstance(value, str) or LONE_SURROGATE.search(value):
        raise invalid_data(location, f"{key} is", value, "text, a number, true or false", CURE)
    return value
