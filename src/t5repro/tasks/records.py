"""JSON: SuperGLUE's records, one a line, and SQuAD's one object a file."""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.tasks.lines import decode, fault, open_task_file, read_lines, refuse_repeated
from t5repro.tasks.task import Row

LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# One JSON object a line


def read_records(
    files: Sequence[Path],
    split: str,
    left_out: Counter[str],
    *,
    to_rows: Callable[[Mapping[str, Any], str, str, Counter[str]], Iterable[Row]],
) -> Iterator[Row]:
    """Yield what `to_rows` makes of each JSON object; no `idx` may come twice.

    Args:
        files: read one after another.
        split: name of the split, for `to_rows`.
        left_out: counter for `to_rows`.
        to_rows: object, its place, split and counter to rows with ``idx``.
    """
    seen: dict[Hashable, str] = {}
    for path in files:
        for where, line in read_lines(path):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise fault(
                    where, f"not JSON ({error}):", line, "one JSON object a line"
                ) from error
            if not isinstance(record, dict):
                raise fault(where, "found", record, "one JSON object a line")
            for row in to_rows(record, where, split, left_out):
                refuse_repeated(row["idx"], where, seen)
                yield {**row, "where": where}


def text_in(record: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text at `key`.

    Raises:
        TaskDataError: it is absent or not text that UTF-8 can hold.
    """
    text = str(_value(record, key, where, str, "text"))
    if LONE_SURROGATE.search(text):  # JSON can spell it, no text file can hold it
        raise fault(where, f"{key} is", text, "text without halves of surrogate pairs")
    return text


def number_in(record: Mapping[str, Any], key: str, where: str) -> int:
    """Return the whole number at `key`.

    Raises:
        TaskDataError: it is absent or not a whole number.
    """
    return int(_value(record, key, where, int, "a whole number"))


def list_in(record: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """Return the list of objects at `key`.

    Raises:
        TaskDataError: it is absent or not a list of objects.
    """
    items: list[dict[str, Any]] = _value(record, key, where, list, "a list of objects")
    for item in items:
        if not isinstance(item, dict):
            raise fault(where, f"{key} holds", item, "a list of objects")
    return items


def object_in(record: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return the object at `key`.

    Raises:
        TaskDataError: it is absent or not an object.
    """
    found: dict[str, Any] = _value(record, key, where, dict, "an object")
    return found


def _value(record: Mapping[str, Any], key: str, where: str, kind: type, allowed: str) -> Any:
    if key not in record:
        raise fault(where, f"no {key!r} among", sorted(record), f"a record with {key!r}: {allowed}")
    value = record[key]
    if type(value) is not kind:  # bool is an int to isinstance
        raise fault(where, f"{key} is", value, allowed)
    return value


def label_in(
    record: Mapping[str, Any], where: str, split: str, *, values: tuple[Any, ...]
) -> int | None:
    """Return the index of the record's label in `values`; None for an unlabelled test row.

    Raises:
        TaskDataError: the label is absent from a split that has labels, or is none of `values`.
    """
    if "label" not in record and split == "test":
        return None
    allowed = " or ".join(json.dumps(value) for value in values)
    label = _value(record, "label", where, type(values[0]), allowed)
    if label not in values:
        raise fault(where, "label is", label, allowed)
    return values.index(label)


# SQuAD


def read_squad(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield the questions of SQuAD v1.1 files: id, question, context and gold answers.

    A test file may leave ``answers`` out.
    """
    seen: dict[Hashable, str] = {}
    for path in files:
        for where, context, question in _questions(path):
            idx = text_in(question, "id", where)
            where = f"{where} (id {idx})"
            refuse_repeated(idx, where, seen)
            answers = None
            if "answers" in question or split != "test":
                found = list_in(question, "answers", where)
                answers = [text_in(answer, "text", where) for answer in found]
                if not answers:
                    raise fault(
                        where, "answers are", [], "at least one answer", "use SQuAD version 1.1"
                    )
            yield {
                "question": text_in(question, "question", where),
                "context": context,
                "answers": answers,
                "idx": idx,
                "where": where,
            }


def _questions(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place, context and record of each question of one file."""
    with open_task_file(path) as handle:
        text = decode(handle.read(), str(path))
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        wrong = text[max(error.pos - 10, 0) : error.pos + 30]
        raise fault(
            f"{path} line {error.lineno} column {error.colno}",
            f"not JSON ({error.msg}) near",
            wrong,
            "SQuAD v1.1 JSON",
        ) from error
    if not isinstance(root, dict):
        raise fault(str(path), "found", root, "a JSON object with 'data'")
    for a, article in enumerate(list_in(root, "data", str(path))):
        place = f"{path} data[{a}]"
        for p, paragraph in enumerate(list_in(article, "paragraphs", place)):
            where = f"{place}.paragraphs[{p}]"
            context = text_in(paragraph, "context", where)
            for q, question in enumerate(list_in(paragraph, "qas", where)):
                yield f"{where}.qas[{q}]", context, question
