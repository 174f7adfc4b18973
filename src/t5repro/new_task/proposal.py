"""Guesses a task from a file of rows: target, inputs, labels, metrics and split.

Each guess is a rule of a line or two; an option replaces it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from t5repro.config.field import repeated
from t5repro.config.sections.tasks import (
    METRICS_OF_LABELS,
    METRICS_OF_NUMBERS,
    METRICS_OF_TEXT,
    METRICS_OF_TWO_LABELS,
    OWN_SUFFIXES,
)
from t5repro.errors import SettingsError, TaskDataError, nearest
from t5repro.metrics.rouge import mostly_unseen
from t5repro.new_task.rows import Rows, check_columns
from t5repro.tasks.lines import invalid_data
from t5repro.tasks.numbers import number_of
from t5repro.tasks.own import SPLIT_NAMES, Place, incomplete_rows

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
SHORT_CHARS = 100  # or of more characters, in a script without spaces
SHARE, SHARE_OF_FEW, FEW_ROWS = 0.1, 0.2, 500
CURE = (
    "correct the rows, leave them out with --skip-incomplete, or name other columns with --target "
    "and --inputs"
)


@dataclass(frozen=True)
class Options:
    """The decisions of the user; an empty value is guessed.

    Attributes:
        target: column of the target.
        inputs: columns of the input.
        labels: words for the values of the target, in their order.
        metric: the metric.
        validation: a file, or the share of the rows that are the validation split.
        skip_incomplete: whether rows without a value are left out.
        delimiter: character between the cells of a .csv file.
        encoding: encoding of a .csv or .tsv file.
    """

    target: str = ""
    inputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    metric: str = ""
    validation: str = ""
    skip_incomplete: bool = False
    delimiter: str = ""
    encoding: str = ""


@dataclass(frozen=True)
class Proposal:
    """A task without the paths of its files.

    Attributes:
        definition: an entry of `tasks.own` without `files`.
        validation: file of the validation split; None if `file` has it as well.
        splits: splits that the file of rows has.
        left_out: columns and rows outside the task, with the reason.
    """

    definition: dict[str, Any]
    validation: Path | None
    splits: tuple[str, ...]
    left_out: tuple[str, ...]


def propose(rows: Rows, options: Options) -> Proposal:
    """Return the task of a file of rows.

    Raises:
        TaskDataError: a row has no value in a column of the task, no number among numbers, or an
            unknown split; an option names a column that does not exist.
        SettingsError: the options do not fit the file.
    """
    check_columns(rows.path, rows.columns, [*filter(None, [options.target]), *options.inputs])
    _check_lists(options)
    split_column = _split_column(rows, options)
    split, splits, validation = _split(rows, options, split_column)
    target = _target(rows, options, split_column)
    # From here on without a test split that has no targets: its empty cells are not faults.
    rows, splits, left_out = _labelled(rows, target, split_column, splits)
    inputs, leaks = _inputs(rows, options, target, split_column)
    rows, incomplete = _complete(rows, [*inputs, target], options)
    left_out += incomplete
    values = rows.column(target)
    kind = _kind(rows, target, options)
    definition: dict[str, Any] = {**split, "fields": inputs, "target": target, **rows.form}
    if options.skip_incomplete:
        definition["incomplete"] = "skip"
    if kind == "label":
        definition |= _labels(values, options.labels)
        if "validation_share" in definition:
            definition["stratified"] = True
    elif options.labels:
        raise SettingsError(f"--labels names words, but {target} is a {kind}; leave it out")
    definition["metrics"], reasons = _metrics(kind, values, options.metric)
    left_out += reasons
    left_out += [f"{name} (it tells the {target})" for name in leaks]
    left_out += [f"{name} ({error})" for name, error in rows.unreadable.items()]
    return Proposal(definition, validation, splits, tuple(left_out))


def _check_lists(options: Options) -> None:
    for option, names in (("--inputs", options.inputs), ("--labels", options.labels)):
        if duplicates := repeated(names):
            raise SettingsError(f"{option} contains {duplicates} more than once; name each once")
        if "" in names:
            raise SettingsError(f"{option} has an empty word; leave out the comma next to it")


def _split_column(rows: Rows, options: Options) -> str:
    """Return the column that names the split of each row; empty if there is none."""
    for name in rows.columns:
        if name.lower() not in SPLITS or name == options.target:
            continue
        values = [value.strip().lower() for value in rows.column(name)]
        unknown = [number for number, value in enumerate(values) if value not in SPLIT_NAMES]
        # `set` may be a word of another field; `split` is none.
        if name.lower() != SPLITS[0] and len(unknown) == len(values):
            continue
        if unknown:
            location, cells = rows.cells[unknown[0]]
            allowed = " or ".join(SPLIT_NAMES)
            cure = "correct the row, or rename the column if it names no splits"
            raise invalid_data(location, f"{name} is", cells[name], allowed, cure)
        return name
    return ""


def _split(
    rows: Rows, options: Options, column: str
) -> tuple[dict[str, Any], tuple[str, ...], Path | None]:
    """Return the settings of the split, the splits of the file, and another file."""
    present = {_split_name(cells, column) for _, cells in rows.cells} if column else {"train"}
    if "train" not in present:
        raise TaskDataError(
            f"{rows.path}: {column} gives no row to train, only to {', '.join(sorted(present))}; "
            "add rows of train"
        )
    if len(present) > 1:
        if options.validation:
            raise SettingsError(
                f"--validation is {options.validation}, but the column {column} of {rows.path} "
                "names the split of each row; leave out the option or remove the column"
            )
        order = dict.fromkeys(SPLIT_NAMES.values())
        return {"split_column": column}, tuple(name for name in order if name in present), None
    if not options.validation:
        # A tenth of few rows would give scores with a wide interval.
        share = SHARE_OF_FEW if len(rows.cells) < FEW_ROWS else SHARE
        return {"validation_share": share}, ("train", "validation"), None
    requested = number_of(options.validation)
    if requested is None:
        return {}, ("train",), _validation_file(rows, options.validation)
    if not 0 < requested <= 0.5:
        raise SettingsError(
            f"--validation is {options.validation}; a share is more than 0 and at most 0.5"
        )
    return {"validation_share": requested}, ("train", "validation"), None


def _split_name(cells: Mapping[str, str], column: str) -> str:
    return SPLIT_NAMES[cells[column].strip().lower()]


def _validation_file(rows: Rows, name: str) -> Path:
    path = Path(name)
    if path.suffix not in OWN_SUFFIXES:
        raise SettingsError(
            f"--validation is {name!r}; allowed: a share such as 0.2, or a file that ends in "
            f"{', '.join(OWN_SUFFIXES)}"
        )
    if path.resolve() == rows.path.resolve():
        raise SettingsError(
            f"--validation names {name}, whose rows are those of training; name another file, or "
            "a share of the rows such as 0.2"
        )
    return path


def _target(rows: Rows, options: Options, split_column: str) -> str:
    if options.target:
        return options.target
    columns = [name for name in rows.columns if name not in (split_column, *options.inputs)]
    column_of_name = {name.lower(): name for name in columns}
    by_convention = next((column_of_name[name] for name in TARGETS if name in column_of_name), "")
    # Without a telling name, the last column: data sets end with their labels.
    last = (name for name in reversed(columns) if not _is_identity(name) and name in rows.readable)
    target = by_convention or next(last, "")
    if not target:
        raise SettingsError(f"{rows.path}: no column is left for the target; name one: --target")
    return target


def _labelled(
    rows: Rows, target: str, split_column: str, splits: tuple[str, ...]
) -> tuple[Rows, tuple[str, ...], list[str]]:
    """Leave out a test split without any target; return a reason, too."""
    if "validation" not in splits or "test" not in splits:
        return rows, splits, []
    values = rows.column(target)
    is_test = [_split_name(cells, split_column) == "test" for _, cells in rows.cells]
    if any(value.strip() for value, test in zip(values, is_test, strict=True) if test):
        return rows, splits, []
    labelled_rows = tuple(row for row, test in zip(rows.cells, is_test, strict=True) if not test)
    reason = f"{len(values) - len(labelled_rows)} rows of test (they have no {target})"
    return (
        replace(rows, cells=labelled_rows),
        tuple(name for name in splits if name != "test"),
        [reason],
    )


def _inputs(
    rows: Rows, options: Options, target: str, split_column: str
) -> tuple[list[str], list[str]]:
    """Return the columns of the input, and those that are none because they tell the target."""
    not_inputs = {target, split_column}
    if options.inputs:
        if clashes := sorted(set(options.inputs) & not_inputs):
            raise SettingsError(f"--inputs names {clashes}, which are the target or the split")
        return list(options.inputs), []
    columns = [name for name in rows.readable if name not in not_inputs and not _is_identity(name)]
    if not columns:
        if rows.unreadable:
            raise next(iter(rows.unreadable.values()))
        raise SettingsError(
            f"{rows.path}: the columns {list(rows.columns)} leave no input; name some: --inputs"
        )
    # A column such as `label_text` would give the answer away.
    leaks = [name for name in columns if _tells(rows.column(name), rows.column(target))]
    if len(leaks) == len(columns):
        leaks = []  # few inputs, each of them repeated
    columns = [name for name in columns if name not in leaks]
    # Numbers are inputs only if the file has no texts.
    texts = [
        name
        for name in columns
        if any(value.strip() and number_of(value) is None for value in rows.column(name))
    ]
    return texts or columns, leaks


def _tells(values: Sequence[str], targets: Sequence[str]) -> bool:
    """Return whether values and targets are one to one, as a label and its word are.

    Values that mostly differ are texts, such as sentences and their translations.
    """
    distinct = len(set(values))
    is_one_to_one = distinct == len(set(targets)) == len(set(zip(values, targets, strict=True)))
    return is_one_to_one and distinct <= len(values) / 2


def _is_identity(name: str) -> bool:
    return name.lower() in IDENTITIES or name.lower().endswith("_id")


def _complete(rows: Rows, columns: Sequence[str], options: Options) -> tuple[Rows, list[str]]:
    """Return the rows that have all values, and a reason if some were left out.

    Raises:
        TaskDataError: rows lack a value, and the options do not leave them out.
    """
    for name in columns:
        rows.column(name)  # refuses an unreadable one
    places: list[Place] = []
    complete: list[tuple[str, dict[str, str]]] = []
    for location, cells in rows.cells:
        blank = [name for name in columns if not cells[name].strip()]
        if blank:
            places.append((location, blank[0], cells[blank[0]]))
        else:
            complete.append((location, cells))
    if not places:
        return rows, []
    if not options.skip_incomplete or not complete:
        raise incomplete_rows(places, CURE)
    location, name, _ = places[0]
    reason = f"{len(places):,} rows without a value (the first: {location}, {name})"
    return replace(rows, cells=tuple(complete)), [reason]


def _kind(rows: Rows, target: str, options: Options) -> Kind:
    values = rows.column(target)
    distinct = set(values)
    if len(distinct) == 1:
        raise TaskDataError(
            f"{rows.path}: {target} is {values[0]!r} in every row, so there is nothing to learn; "
            "name another column with --target"
        )
    # At most half as many labels as rows: otherwise the values are texts or numbers.
    are_labels = (
        len(distinct) <= min(MAX_LABELS, max(2, len(values) // 2))
        and max(map(len, distinct)) <= MAX_LABEL_CHARS
    )
    if options.metric:
        # An explicit metric decides before the values do.
        return _kind_of_metric(options.metric, are_labels=are_labels)
    if options.labels:
        return "label"
    numbers = [number_of(value) for value in values]
    if None not in numbers:
        is_integer = all(float(number or 0).is_integer() for number in numbers)
        # Few whole numbers, such as stars, are classes; others are to be regressed.
        return "label" if is_integer and len(distinct) <= MAX_NUMERIC_LABELS else "number"
    if (count := sum(number is not None for number in numbers)) >= MOSTLY * len(numbers):
        location, cells = rows.cells[numbers.index(None)]
        raise invalid_data(
            location,
            f"{target} is",
            cells[target],
            f"a number, as in {count} of {len(numbers)} rows",
            f"correct the row, or treat all values as {'labels' if are_labels else 'text'} with "
            "--metric accuracy",
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


def _labels(values: Sequence[str], words: tuple[str, ...]) -> dict[str, Any]:
    """Return labels in the order of their numbers, or else of their texts, and their words."""
    # By number, so that 10 follows 9.
    distinct = sorted(set(values), key=lambda value: (number_of(value) or 0.0, value))
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


def _metrics(kind: Kind, values: Sequence[str], metric: str) -> tuple[list[str], list[str]]:
    """Return the metrics, and a reason if ROUGE was not proposed or does not see some targets."""
    if metric in METRICS_OF_TWO_LABELS and len(set(values)) > 2:
        raise SettingsError(
            f"--metric is {metric}, which needs two labels, and the target has "
            f"{len(set(values))}; allowed: accuracy, macro_f1"
        )
    unseen = sum(map(mostly_unseen, values)) if kind == "text" else 0
    reason = (
        f"rouge: {unseen:,} of {len(values):,} targets are in a script of which it drops most "
        "letters (it reads a to z and digits)"
    )
    if metric == "rouge" and 2 * unseen > len(values):
        raise SettingsError(f"--metric is {reason}; allowed: bleu, squad, accuracy")
    if metric:
        return [metric], [reason] if unseen and metric == "rouge" else []
    if kind == "label":
        return ["accuracy", "f1" if len(set(values)) == 2 else "macro_f1"], []
    if kind == "number":
        return ["pearson_corrcoef", "spearman_corrcoef"], []
    # The median decides: a few long answers do not make a summary.
    words = sorted(len(value.split()) for value in values)
    # Scripts without spaces have texts of one long word.
    chars = sorted(map(len, values))[len(values) // 2]
    if words[len(words) // 2] <= SHORT_WORDS and chars <= SHORT_CHARS:
        return ["squad"], []
    return (["bleu"], [reason]) if unseen else (["rouge"], [])
