"""What in a file of rows can be read and is likely meant otherwise: a warning each."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence

from t5repro.config.sections.tasks import OwnTask
from t5repro.new_task.rows import Rows
from t5repro.tasks.numbers import number_of

MOSTLY = 0.8  # of the values
# How spreadsheets and libraries write that a value is missing; all of them are text here.
MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?"})
# A number with a comma, a sign of a currency or of a share: no number of a table here.
LIKE_A_NUMBER = re.compile(r"[-+]?[$€£]?\s*\d{1,3}([.,' \u00a0]?\d+)*\s*[%$€£]?")


def doubts(rows: Rows, definition: OwnTask) -> Iterator[str]:
    """Yield the warnings about the rows of a proposed task."""
    targets = rows.column(definition.target)
    yield from _alike(definition.label_values or definition.labels)
    if definition.answer_kind == "text":
        yield from _like_numbers(definition.target, targets)
    else:
        yield from _contradictions(rows, definition, targets)
    for name in (*definition.fields, definition.target):
        values = [value for value in rows.column(name) if value.strip().lower() in MISSING]
        if values:
            yield (
                f"{len(values):,} rows have {values[0]!r} as {name}, which is text here; leave "
                "the cell empty if the value is missing"
            )


def _alike(labels: Sequence[str]) -> Iterator[str]:
    """Yield labels that a reader would take for one: by case, white space, form of Unicode."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for label in labels:
        visible = "".join(sign for sign in label if unicodedata.category(sign)[0] not in "CZ")
        number = number_of(label)
        plain = unicodedata.normalize("NFKC", visible).casefold()
        groups[plain if number is None else repr(number)].append(label)
    for group in groups.values():
        if len(group) > 1:
            yield f"the labels {', '.join(map(repr, group))} look alike; write one of them"


def _like_numbers(name: str, values: Sequence[str]) -> Iterator[str]:
    alike = [value for value in values if LIKE_A_NUMBER.fullmatch(value.strip())]
    if len(alike) >= MOSTLY * len(values):
        yield (
            f"{len(alike):,} of {len(values):,} values of {name} look like numbers and are read as "
            f"text, such as {alike[0]!r}; a number has digits and a point only, as 1234.5"
        )


def _contradictions(rows: Rows, definition: OwnTask, targets: Sequence[str]) -> Iterator[str]:
    answers: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    fields = [rows.column(name) for name in (*definition.fields, *definition.options)]
    for target, *inputs in zip(targets, *fields, strict=True):
        if target.strip():  # a test split may have none
            answers[tuple(inputs)].add(target)
    several = [inputs for inputs, found in answers.items() if len(found) > 1]
    if several:
        yield (
            f"{len(several):,} inputs occur with different values of {definition.target}, the "
            f"first {' '.join(several[0])[:60]!r}; no answer is right for all of them"
        )
