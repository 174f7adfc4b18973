"""Faults of the values of a row. Rows that lack one are counted: one message is about all."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from t5repro.errors import RawDataError

SHOWN_CHARS = 60  # of a value in a message
Item = TypeVar("Item")


class MissingValueError(RawDataError):
    """A row has no value in a column."""


def refuse(where: str, column: str, value: Any, allowed: str) -> NoReturn:
    """Raise the error for a value that is missing or of another type.

    Raises:
        RawDataError: always.
    """
    error = MissingValueError if value is None else RawDataError
    state = "missing or null" if value is None else shown(value)
    raise error(f"{where}: {column!r} is {state}; it must be {allowed}: correct or remove the row")


def shown(value: Any) -> str:
    """Return a value for a message, cut after some characters."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def rows_of(readers: Iterator[Callable[[], Item]]) -> Iterator[Item]:
    """Yield what each function returns; the error for a missing value counts all of the file.

    Raises:
        RawDataError: a row lacks a value; the message names the first and counts the others.
    """
    for read in readers:
        try:
            row = read()
        except MissingValueError as error:
            further = _missing(readers)
            count = f" ({1 + further:,} rows of the file lack a value)" if further else ""
            raise RawDataError(f"{error}{count}") from error
        yield row


def _missing(readers: Iterable[Callable[[], Item]]) -> int:
    """Return how many rows lack a value, up to the first row with another fault."""
    count = 0
    with suppress(RawDataError):
        for read in readers:
            try:
                read()
            except MissingValueError:
                count += 1
    return count
