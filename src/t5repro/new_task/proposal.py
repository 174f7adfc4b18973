"""What a file of rows says of its task: target, inputs, labels, metrics and split.

Each guess is a rule of a line or two; an option replaces it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from t5repro.config.sections.tasks import METRICS_OF_LABELS, METRICS_OF_NUMBERS, METRICS_OF_TEXT
from t5repro.errors import SettingsError, TaskDataError, nearest
from t5repro.new_task.rows import Rows, check_columns
from t5repro.tasks.lines import invalid_data
from t5repro.tasks.own import SPLIT_NAMES

Kind = Literal["label", "number", "text"]

# Names of columns, the likelier ones first.
TARGETS = (
    *("label", "labels", "target", "targets", "class", "category", "answer", "answers"),
    *("score", "rating", "stars", "sentiment", "summary", "translation", "output", "y"),
)
SPLITS = ("split", "set", "subset", "partition", "fold")
IDENTITIES = ("", "id", "idx", "index", "guid", "uuid", "key", "unnamed: 0")
MAX_LABELS = 50
MAX_LABEL_CHARS = 50
MAX_NUMERIC_LABELS = 10
MOSTLY = 0.8  # a column with more numbers than this is one of numbers
SHORT_WORDS = 8  # an answer of more words than this is a summary
SHARE, SHARE_OF_FEW, FEW_ROWS = 0.1, 0.2, 500
CURE = "correct the row, or name other columns with --target and --inputs"


@dataclass(frozen=True)
class Options:
    """What the user decides; an empty value is guessed.

    Attributes:
        target: column of the target.
        inputs: columns of the input.
        labels: words for the values of the target, in their order.
        metric: the metric.
        validation: a file, or the share of the rows that are the validation split.
    """

    target: str = ""
    inputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metric: str = ""
    validation: str = ""


@dataclass(frozen=True)
class Proposal:
    """A task without the paths of its files.

    Attributes:
        definition: an entry of `tasks.own` without `files`.
        validation: file of the validation split; None if `file` has it as well.
        splits: splits that the file of rows has.
    """

    definition: dict[str, Any]
    validation: Path | None
    splits: tuple[str, ...]


def propose(rows: Rows, options: Options) -> Proposal:
    """Return the task of a file of rows.

    Raises:
        TaskDataError: a row has no value in a column of the task, or no number among numbers; an
            option names a column that does not exist.
        SettingsError: the options do not fit the file.
    """
    check_columns(rows.path, rows.columns, [*filter(None, [options.target]), *options.inputs])
    split, splits, validation = _split(rows, options)
    split_column = split.get("split_column", "")
    target = _target(rows, options, split_column)
    inputs = _inputs(rows, options, {target, split_column})
    _check_values(rows, [*inputs, target])
    values = rows.column(target)
    kind = _kind(rows, target, options)
    definition: dict[str, Any] = {**split, "fields": inputs, "target": target}
    if kind == "label":
        definition |= _labels(values, options.labels)
    elif options.labels:
        raise SettingsError(f"--labels names words, but {target} is a {kind}; leave it out")
    definition["metrics"] = _metrics(kind, values, options.metric)
    return Proposal(definition, validation, splits)


def _split(rows: Rows, options: Options) -> tuple[dict[str, Any], tuple[str, ...], Path | None]:
    """Return the settings of the split, the splits of the file, and another file."""
    if options.validation:
        try:
            share = float(options.validation)
        except ValueError:
            return {}, ("train",), Path(options.validation)
        if not 0 < share <= 0.5:
            raise SettingsError(
                f"--validation is {options.validation}; a share is more than 0 and at most 0.5"
            )
        return {"validation_share": share}, ("train", "validation"), None
    for name in rows.columns:
        values = {value.strip().lower() for value in rows.column(name)}
        if name.lower() in SPLITS and values <= set(SPLIT_NAMES):
            present = {SPLIT_NAMES[value] for value in values}
            if {"train", "validation"} <= present or {"train", "test"} <= present:
                order = dict.fromkeys(SPLIT_NAMES.values())
                splits = tuple(split for split in order if split in present)
                return {"split_column": name}, splits, None
    share = SHARE_OF_FEW if len(rows.cells) < FEW_ROWS else SHARE
    return {"validation_share": share}, ("train", "validation"), None


def _target(rows: Rows, options: Options, split_column: str) -> str:
    if options.target:
        return options.target
    columns = [name for name in rows.columns if name not in (split_column, *options.inputs)]
    by_name = {name.lower(): name for name in columns}
    named = next((by_name[name] for name in TARGETS if name in by_name), "")
    target = named or next((name for name in reversed(columns) if not _is_identity(name)), "")
    if not target:
        raise SettingsError(f"{rows.path}: no column is left for the target; name one: --target")
    return target


def _inputs(rows: Rows, options: Options, others: set[str]) -> list[str]:
    if options.inputs:
        if taken := sorted(set(options.inputs) & others):
            raise SettingsError(f"--inputs names {taken}, which are the target or the split")
        return list(options.inputs)
    columns = [name for name in rows.columns if name not in others and not _is_identity(name)]
    inputs = [
        name for name in columns if any(_number(value) is None for value in rows.column(name))
    ]
    if not (inputs or columns):
        raise SettingsError(
            f"{rows.path}: the columns {list(rows.columns)} leave no input; name some: --inputs"
        )
    return inputs or columns


def _is_identity(name: str) -> bool:
    return name.lower() in IDENTITIES or name.lower().endswith("_id")


def _check_values(rows: Rows, columns: Sequence[str]) -> None:
    for location, cells in rows.cells:
        for name in columns:
            if not cells[name].strip():
                raise invalid_data(location, f"{name} is", cells[name], "a value", CURE)


def _kind(rows: Rows, target: str, options: Options) -> Kind:
    values = rows.column(target)
    distinct = set(values)
    if len(distinct) == 1:
        raise TaskDataError(
            f"{rows.path}: {target} is {values[0]!r} in every row, so there is nothing to learn; "
            "name another column with --target"
        )
    are_labels = (
        len(distinct) <= min(MAX_LABELS, max(2, len(values) // 2))
        and max(map(len, distinct)) <= MAX_LABEL_CHARS
    )
    if options.metric:
        return _kind_of_metric(options.metric, are_labels=are_labels)
    if options.labels:
        return "label"
    numbers = [_number(value) for value in values]
    if None not in numbers:
        is_integer = all(float(number or 0).is_integer() for number in numbers)
        return "label" if is_integer and len(distinct) <= MAX_NUMERIC_LABELS else "number"
    if (count := sum(number is not None for number in numbers)) >= MOSTLY * len(numbers):
        location, cells = rows.cells[numbers.index(None)]
        raise invalid_data(
            location,
            f"{target} is",
            cells[target],
            f"a number, as in {count} of {len(numbers)} rows",
            "correct the row, or treat all values as labels with --metric accuracy",
        )
    return "label" if are_labels else "text"


def _kind_of_metric(metric: str, *, are_labels: bool) -> Kind:
    names = (*METRICS_OF_LABELS, *METRICS_OF_TEXT, *METRICS_OF_NUMBERS)
    if metric not in names:
        raise SettingsError(
            f"--metric is {metric!r}; metrics are {sorted(set(names))}{nearest(metric, names)}"
        )
    if metric in METRICS_OF_NUMBERS:
        return "number"
    if metric in METRICS_OF_TEXT and (metric not in METRICS_OF_LABELS or not are_labels):
        return "text"
    return "label"


def _number(value: str) -> float | None:
    """Return the number that a text is; None if it is none."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _labels(values: Sequence[str], words: tuple[str, ...]) -> dict[str, Any]:
    """Return labels in the order of their numbers, or else of their texts, and their words."""
    distinct = sorted(set(values), key=lambda value: (_number(value) or 0.0, value))
    if not words:
        return {"labels": distinct}
    if len(words) != len(distinct):
        raise SettingsError(
            f"--labels has {len(words)} words, the target {len(distinct)} values: {distinct}; "
            "give a word for each, in this order"
        )
    if list(words) == distinct:
        return {"labels": distinct}
    return {"labels": list(words), "label_values": distinct}


def _metrics(kind: Kind, values: Sequence[str], metric: str) -> list[str]:
    if metric:
        return [metric]
    if kind == "label":
        return ["accuracy", "f1" if len(set(values)) == 2 else "macro_f1"]
    if kind == "number":
        return ["pearson_corrcoef", "spearman_corrcoef"]
    words = sorted(len(value.split()) for value in values)
    return ["squad" if words[len(words) // 2] <= SHORT_WORDS else "rouge"]
