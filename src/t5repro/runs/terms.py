"""Terms of a search among runs: ``KEY OP VALUE``, and which values they match.

An operator is a sign or a word: ``glue_rte.accuracy>50`` is ``glue_rte.accuracy:gt:50``. A shell
takes ``>`` and ``<`` for itself unless they are quoted, so a term is printed with the word.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from t5repro.errors import LineageError

Value = str | int | float | bool | None

WORDS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "~": "has"}
ORDERS: Mapping[str, Callable[[str | float, str | float], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
KEY = r"[^:=!<>~]+"
WORDED = re.compile(rf"({KEY}):({'|'.join(WORDS.values())}):(.*)", re.DOTALL)
SIGNED = re.compile(rf"({KEY})(<=|>=|!=|=|<|>|~)(.*)", re.DOTALL)
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
DATE = "date"  # the only text with an order
DATE_START = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T[0-9:.+Z-]*)?)?)?")
BOOLEANS = {"true": True, "false": False}
MAX_DIGITS = 400  # a longer number is no float


@dataclass(frozen=True)
class Term:
    """A condition on one value of a row.

    Attributes:
        key: of the value.
        operator: one of the words in `WORDS`.
        value: as it was written.
    """

    key: str
    operator: str
    value: str

    def __str__(self) -> str:
        """Return the term as it can be typed without quotes for ``<`` and ``>``."""
        return f"{self.key}:{self.operator}:{self.value}"


def parse_term(text: str) -> Term:
    """Return the term that a text is.

    Raises:
        LineageError: it has no key or no operator.
    """
    if match := WORDED.fullmatch(text):
        return Term(*match.groups())
    if match := SIGNED.fullmatch(text):
        key, sign, value = match.groups()
        return Term(key, WORDS[sign], value)
    raise LineageError(
        f"{text!r} is no term; write KEY:OP:VALUE with OP one of {', '.join(WORDS.values())}, such "
        "as glue_rte.accuracy:gt:50 (a shell takes an unquoted > for itself and writes a file)"
    )


def predicate(term: Term, values: Iterable[Value]) -> Callable[[Value], bool]:
    """Return a function that tests whether a value matches; a missing value never does.

    Args:
        term: the condition.
        values: all values of its key, which say whether it is a number, a boolean or text.

    Raises:
        LineageError: the value of the term is of another type, or the operator is not for it.
    """
    kinds = {_kind(value) for value in values if value is not None}
    if not kinds:
        return lambda value: False
    if term.operator == "has":
        return _contains(term, kinds)
    if term.key == DATE:
        return _dates(term)
    if term.operator in ORDERS:
        return _in_order(term, kinds)
    operands = _operands(term.value)
    if not kinds & operands.keys():
        raise LineageError(
            f"{term}: {term.key} is a {_listed(kinds)}, and {term.value!r} is none"
            + ("; allowed: true, false" if kinds == {"boolean"} else "")
        )
    wants_equal = term.operator == "eq"

    def decide(value: Value) -> bool:
        if value is None:
            return False
        return (operands.get(_kind(value)) == value) == wants_equal

    return decide


def _contains(term: Term, kinds: set[str]) -> Callable[[Value], bool]:
    if "text" not in kinds:
        raise LineageError(f"{term}: {term.key} is a {_listed(kinds)}; ~ and has are for text")
    return lambda value: isinstance(value, str) and term.value in value


def _dates(term: Term) -> Callable[[Value], bool]:
    """Compare as many characters of a date as the term has: ``date:gt:2026`` is after 2026."""
    if not DATE_START.fullmatch(term.value):
        raise LineageError(f"{term}: {term.value!r} is no date; write 2026, 2026-11 or 2026-11-28")
    compare = {"eq": operator.eq, "ne": operator.ne, **ORDERS}[term.operator]
    length = len(term.value)
    return lambda value: isinstance(value, str) and bool(compare(value[:length], term.value))


def _in_order(term: Term, kinds: set[str]) -> Callable[[Value], bool]:
    if "number" not in kinds:
        raise LineageError(f"{term}: {term.key} is a {_listed(kinds)}, which has no order")
    limit = _number(term.value)
    if limit is None:
        raise LineageError(f"{term}: {term.key} is a number, and {term.value!r} is none")
    compare = ORDERS[term.operator]
    return lambda value: _kind(value) == "number" and compare(value, limit)  # type: ignore[arg-type]


def _operands(text: str) -> dict[str, Value]:
    """Return kind -> the value of that kind that a text can be."""
    operands: dict[str, Value] = {"text": text}
    number = _number(text)
    if number is not None:
        operands["number"] = number
    if text in BOOLEANS:
        operands["boolean"] = BOOLEANS[text]
    return operands


def _number(text: str) -> int | float | None:
    if len(text) > MAX_DIGITS or not NUMBER.fullmatch(text):
        return None
    # An int stays exact: FLOPs have more digits than a float.
    number = float(text) if set(text) & set(".eE") else int(text)
    return None if number in (float("inf"), float("-inf")) else number


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text"


def _listed(kinds: set[str]) -> str:
    return " or a ".join(sorted(kinds))
