"""JSON: SuperGLUE's records, one per line, and SQuAD's one object per file."""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.strict_json import parse_json, parse_line
from t5repro.tasks.lines import decode, invalid_data, open_task_file, read_lines, refuse_repeated
from t5repro.tasks.task import Row

LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# One JSON object per line


def read_records(
    files: Sequence[Path],
    split: str,
    excluded: Counter[str],
    *,
    to_rows: Callable[[Mapping[str, Any], str, str, Counter[str]], Iterable[Row]],
    skip_blank_lines: bool = False,
) -> Iterator[Row]:
    """Yield the rows of each JSON object; no `idx` may repeat.

    Args:
        files: read one after another.
        split: name of the split, for `to_rows`.
        excluded: counter for `to_rows`.
        to_rows: object, its location, split and counter to rows with ``idx``.
        skip_blank_lines: whether a blank line is skipped; SuperGLUE's files have none.
    """
    locations: dict[Hashable, str] = {}
    for path in files:
        for location, line in read_lines(path):
            if skip_blank_lines and not line.strip():
                continue
            try:
                record = parse_line(line, constants=True)  # `_value` and own tasks refuse them
            except ValueError as error:  # also a number of 5,000 digits
                raise invalid_data(
                    location, f"not JSON ({error}):", line, "one JSON object per line"
                ) from error
            if not isinstance(record, dict):
                raise invalid_data(location, "found", record, "one JSON object per line")
            # One object may have several rows (MultiRC, ReCoRD), or none if it is excluded.
            for row in to_rows(record, location, split, excluded):
                refuse_repeated(row["idx"], location, locations)
                yield {**row, "location": location}


def text_in(record: Mapping[str, Any], key: str, location: str) -> str:
    """Return the text at `key`.

    Raises:
        TaskDataError: it is missing or not text that UTF-8 can encode.
    """
    text = str(_value(record, key, location, str, "text"))
    if LONE_SURROGATE.search(text):  # JSON can write one, UTF-8 cannot
        raise invalid_data(location, f"{key} is", text, "text without halves of surrogate pairs")
    return text


def number_in(record: Mapping[str, Any], key: str, location: str) -> int:
    """Return the whole number at `key`.

    Raises:
        TaskDataError: it is missing or not a whole number.
    """
    return int(_value(record, key, location, int, "a whole number"))


def list_in(record: Mapping[str, Any], key: str, location: str) -> list[dict[str, Any]]:
    """Return the list of objects at `key`.

    Raises:
        TaskDataError: it is missing or not a list of objects.
    """
    elements: list[dict[str, Any]] = _value(record, key, location, list, "a list of objects")
    for element in elements:
        if not isinstance(element, dict):
            raise invalid_data(location, f"{key} contains", element, "a list of objects")
    return elements


def texts_in(record: Mapping[str, Any], key: str, location: str) -> list[str]:
    """Return the list of texts at `key`.

    Raises:
        TaskDataError: it is missing or not a list of texts that UTF-8 can encode.
    """
    values: list[Any] = _value(record, key, location, list, "a list of texts")
    return [text_in({key: value}, key, location) for value in values]


def text_lists_in(record: Mapping[str, Any], key: str, location: str) -> list[list[str]]:
    """Return the list of lists of texts at `key`.

    Raises:
        TaskDataError: it is missing or not such a list.
    """
    elements = _value(record, key, location, list, "a list of lists of texts")
    return [texts_in({key: element}, key, location) for element in elements]


def object_in(record: Mapping[str, Any], key: str, location: str) -> dict[str, Any]:
    """Return the object at `key`.

    Raises:
        TaskDataError: it is missing or not an object.
    """
    value: dict[str, Any] = _value(record, key, location, dict, "an object")
    return value


def _value(record: Mapping[str, Any], key: str, location: str, kind: type, allowed: str) -> Any:
    if key not in record:
        raise invalid_data(
            location, f"no {key!r} among", sorted(record), f"a record with {key!r}: {allowed}"
        )
    value = record[key]
    if type(value) is not kind:  # isinstance would accept True as a whole number
        raise invalid_data(location, f"{key} is", value, allowed)
    return value


def label_in(
    record: Mapping[str, Any], location: str, split: str, *, values: tuple[Any, ...]
) -> int | None:
    """Return the index of the record's label in `values`; None for an unlabelled test row.

    Raises:
        TaskDataError: the label is missing in a split that has labels, or is not in `values`.
    """
    if "label" not in record and split == "test":
        return None
    allowed = " or ".join(json.dumps(value) for value in values)
    label = _value(record, "label", location, type(values[0]), allowed)
    if label not in values:
        raise invalid_data(location, "label is", label, allowed)
    return values.index(label)


def object_of(text: str, location: str) -> dict[str, Any]:
    """Return the object that a text is.

    Raises:
        TaskDataError: it is not JSON, or another value.
    """
    try:
        value = parse_json(text.encode())
    except ValueError as error:
        raise invalid_data(location, f"not JSON ({error}):", text, "a JSON object") from error
    if not isinstance(value, dict):
        raise invalid_data(location, "found", value, "a JSON object")
    return value


# SQuAD


def read_squad(
    files: Sequence[Path], split: str, excluded: Counter[str], *, version: str = "1.1"
) -> Iterator[Row]:
    """Yield the questions of SQuAD files: id, question, context, gold answers and their spans.

    A test file may lack ``answers``. An answer without ``answer_start`` has no span, and neither
    has one that is not in the context at that character. In version 2.0 a question may have no
    answer.
    """
    locations: dict[Hashable, str] = {}
    for path in files:
        for location, context, question in _questions(path, f"SQuAD v{version} JSON"):
            idx = text_in(question, "id", location)
            location = f"{location} (id {idx})"  # SQuAD's files are one line each
            refuse_repeated(idx, location, locations)
            answers, spans = None, []
            if "answers" in question or split != "test":
                records = list_in(question, "answers", location)
                answers = [text_in(answer, "text", location) for answer in records]
                first_characters = [answer.get("answer_start") for answer in records]
                # A few answers of the data are not at their `answer_start`.
                spans = [
                    (first_character, first_character + len(text))
                    for first_character, text in zip(first_characters, answers, strict=True)
                    if type(first_character) is int
                    and first_character >= 0
                    and context.startswith(text, first_character)
                ]
                _check_number_of_answers(question, location, answers, version)
            yield {
                "question": text_in(question, "question", location),
                "context": context,
                "answers": answers,
                "spans": tuple(spans),
                "idx": idx,
                "location": location,
            }


def _check_number_of_answers(
    question: Mapping[str, Any], location: str, answers: Sequence[str], version: str
) -> None:
    """Raise TaskDataError if a question has answers where it must have none, or none at all."""
    if version == "1.1":
        if not answers:
            raise invalid_data(
                location,
                "answers are",
                [],
                "at least one answer",
                "use SQuAD version 1.1, or the task of version 2.0",
            )
        return
    # `plausible_answers` of version 2.0 are wrong answers and not read.
    is_impossible = _value(question, "is_impossible", location, bool, "true or false")
    if is_impossible == bool(answers):
        allowed = "no answer" if is_impossible else "at least one answer"
        raise invalid_data(
            location, f"is_impossible is {json.dumps(is_impossible)} and answers are", answers,
            allowed, "download the file again",
        )  # fmt: skip


def _questions(path: Path, form: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield location, context and record of each question of one file."""
    with open_task_file(path) as handle:
        text = decode(handle.read(), str(path))
    try:
        root = parse_json(text.encode())
    except json.JSONDecodeError as error:
        excerpt = text[max(error.pos - 10, 0) : error.pos + 30]
        raise invalid_data(
            f"{path} line {error.lineno} column {error.colno}",
            f"not JSON ({error.msg}) near",
            excerpt,
            form,
        ) from error
    except ValueError as error:
        raise invalid_data(str(path), f"not JSON ({error}):", text[:40], form) from error
    if not isinstance(root, dict):
        raise invalid_data(str(path), "found", root, "a JSON object with 'data'")
    for a, article in enumerate(list_in(root, "data", str(path))):
        article_location = f"{path} data[{a}]"
        for p, paragraph in enumerate(list_in(article, "paragraphs", article_location)):
            location = f"{article_location}.paragraphs[{p}]"
            context = text_in(paragraph, "context", location)
            for q, question in enumerate(list_in(paragraph, "qas", location)):
                yield f"{location}.qas[{q}]", context, question
