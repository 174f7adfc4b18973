"""The one reader of JSON that somebody else may have written: manifests, records, indexes.

JSON that parsers read differently, or that a later walk through its values cannot bear, is refused:
a key set twice, numbers that are not finite, deep nesting, other encodings than UTF-8, too many
bytes.
"""

import json
from collections.abc import Sequence
from typing import Any

MAX_BYTES = 1 << 28  # a manifest of 100,000 files has 25 MB
MAX_DEPTH = 64  # the deepest settings have less than ten levels


def parse_json(data: bytes) -> Any:
    """Return the values of a JSON text in UTF-8.

    Raises:
        ValueError: it is not JSON, or JSON that is refused; the message says why.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has {len(data):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        values = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_mapping,
            parse_constant=_refuse_number,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep") from error
    _check_depth(values)
    return values


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):  # readers differ in which value they take
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} is set twice")
    return values


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _check_depth(values: Any) -> None:
    # Level by level, because a walk by recursion is what deep values break.
    level = [values]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
