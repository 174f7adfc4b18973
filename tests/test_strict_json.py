"""JSON that readers understand differently, or cannot bear, is refused with the reason."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.own_text.rows import read_rows
from t5repro.config.sections.corpus import TextRows
from t5repro.config.sections.tasks import OwnTask
from t5repro.errors import T5ReproError
from t5repro.files import read_json_lines
from t5repro.strict_json import MAX_DEPTH, parse_json, parse_line
from t5repro.tasks.own import own_task

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False).filter(lambda number: abs(number) != float("inf"))
)


@given(st.recursive(LEAVES, lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_ordinary_values_are_read_as_json_reads_them(values: object) -> None:
    assert parse_json(json.dumps(values).encode()) == values


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"outputs": [1], "outputs": []}', "the key 'outputs' is set twice"),
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', "the key 'b' is set twice"),
        (b'{"bytes": NaN}', "NaN is not a number of JSON"),
        (b'{"bytes": -Infinity}', "-Infinity is not a number of JSON"),
        (b'{"bytes": 1e999}', "the number 1e999 is too large"),
        (b"[" * 200_000 + b"]" * 200_000, "nested more than 64 levels deep"),
        (b"[" * 70 + b"]" * 70, "nested more than 64 levels deep"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested more than 64 levels deep"),
        ("{}".encode("utf-16"), "can't decode byte"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "digits"),
        (b"", "Expecting value"),
    ],
)
def test_hostile_forms_are_refused(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text)


def test_the_deepest_values_that_are_read_have_64_levels() -> None:
    parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="levels deep"):
        parse_json(b"[" * (MAX_DEPTH + 1) + b"0" + b"]" * (MAX_DEPTH + 1))


@given(st.recursive(LEAVES, lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_a_line_is_read_as_json_reads_it(values: object) -> None:
    text = json.dumps(values)
    assert parse_line(text) == parse_line(f" {text}\r\n") == values


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"text": "a", "text": "b"}\n', "the key 'text' is set twice"),
        ('{"a": [{"b": 1, "c": 2, "b": 1}]}', "the key 'b' is set twice"),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ("[" * 200_000 + "]" * 200_000, "nested more than 64 levels deep"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "nested more than 64 levels deep"),
        ("\ufeff{}", "BOM"),
        ('{"a": 1' + "0" * 5000 + "}", "digits"),
        ("{} {}", "Extra data"),
        ("", "Expecting value"),
        ('{"a": "b', "Unterminated string"),
    ],
)
def test_a_line_is_refused_as_a_document_is(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_line(text)


def test_missing_values_of_python_are_read_where_rows_may_have_them() -> None:
    assert str(parse_line('{"a": [NaN, -Infinity]}', constants=True)) == "{'a': [nan, -inf]}"
    with pytest.raises(ValueError, match="the key 'a' is set twice"):
        parse_line('{"a": NaN, "a": 1}', constants=True)
    with pytest.raises(ValueError, match="too large"):
        parse_line('{"a": 1e999}', constants=True)


def test_every_reader_of_json_lines_refuses_a_key_that_is_set_twice(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "label": "b"}\n{"text": "a", "label": "b", "text": "c"}\n')
    definition = OwnTask.model_validate(
        {
            "files": {"train": ["rows.jsonl"], "test": ["rows.jsonl"]},
            "fields": ["text"],
            "target": "label",
            "labels": ["b", "c"],
            "metrics": ["accuracy"],
        }
    )
    readers: list[Callable[[], Iterable[object]]] = [
        lambda: read_json_lines(path),
        lambda: own_task("mine", definition).read([path], "train", Counter()),
        lambda: read_rows(path, "rows.jsonl", TextRows()),
    ]
    for reader in readers:
        with pytest.raises(T5ReproError, match=r"line 2.*the key 'text' is set twice"):
            list(reader())
