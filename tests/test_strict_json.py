"""JSON that readers understand differently, or cannot bear, is refused with the reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.strict_json import MAX_DEPTH, parse_json

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
