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
CONTAINERS = {dict, list}


def parse_json(data: bytes) -> Any:
    """Return the values of a JSON text in UTF-8.

    Raises:
        ValueError: it is not JSON, or JSON that is refused; the message says why.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has {len(data):,} bytes; at most {MAX_BYTES:,} are read")
    return _loads(data.decode("utf-8"), _HOOKS)


def parse_line(text: str, *, constants: bool = False) -> Any:
    """Return the values of one line of JSON lines, refused as `parse_json` refuses a document.

    Args:
        text: the line, with or without its end.
        constants: whether NaN and Infinity are numbers; Python writes a missing value so.

    Raises:
        ValueError: it is not JSON, or JSON that is refused; the message says why.
    """
    try:
        values, end = (_WITH_CONSTANTS if constants else _STRICT).scan_once(text, 0)
    except (StopIteration, RecursionError):
        end = -1  # white space before the value, or a fault
    if end != len(text) and not (end >= 0 and text[end:].isspace()):
        return _loads(text, _HOOKS_CONSTANTS if constants else _HOOKS)
    # Most rows have few brackets: they need no walk.
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(values)
    return values


def _loads(text: str, hooks: dict[str, Any]) -> Any:
    try:
        values = json.loads(text, **hooks)
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
    if number - number:  # NaN, for an infinite one only
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _check_depth(values: Any) -> None:
    # Level by level, because a walk by recursion is what deep values break.
    level = [values] if type(values) in CONTAINERS else []
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        level = [
            child
            for value in level
            for child in (value.values() if type(value) is dict else value)
            if type(child) in CONTAINERS
        ]
    raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


_HOOKS_CONSTANTS: dict[str, Any] = {"object_pairs_hook": _mapping, "parse_float": _finite}
_HOOKS = _HOOKS_CONSTANTS | {"parse_constant": _refuse_number}
# Any: the type stubs lack `scan_once`, which a decoder calls after it skipped white space.
_STRICT: Any = json.JSONDecoder(**_HOOKS)
_WITH_CONSTANTS: Any = json.JSONDecoder(**_HOOKS_CONSTANTS)
