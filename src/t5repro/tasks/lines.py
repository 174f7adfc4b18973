"""Task files as lines; a line that cannot be read is refused with its location.

Every error names file and line, the value, the allowed values and the cure. `tables`, `records` and
`pairs` read the layouts of the original downloads with these functions. Their readers take the
files of one split, the split's name and a counter of excluded rows, by reason.
"""

import gzip
import zlib
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.errors import TaskDataError
from t5repro.files import refuse_other_form

MAX_VALUE_CHARS = 80  # longer values are cut in messages
BYTE_ORDER_MARK = "\ufeff"
CURE = "download the file again, or name another one under tasks.files"
CURE_OF_BYTES = (
    "convert the file to UTF-8, or name its encoding: --encoding NAME of t5repro tasks new, "
    "encoding in tasks.own"
)


def invalid_data(
    location: str, problem: str, value: Any, allowed: str, cure: str = CURE
) -> TaskDataError:
    """Return the error for a value that a task file must not contain.

    Args:
        location: file and line.
        problem: start of the sentence that `value` completes, such as ``label is``.
        value: the value.
        allowed: values that are allowed.
        cure: instruction to the user.
    """
    text = repr(value)
    if len(text) > MAX_VALUE_CHARS:
        text = text[:MAX_VALUE_CHARS] + "…"
    return TaskDataError(f"{location}: {problem} {text}; allowed: {allowed}; {cure}")


def open_task_file(path: Path) -> Any:
    """Open a task file for reading bytes.

    Raises:
        TaskDataError: it is missing or cannot be read.
        FormError: it has another form than its name says.
    """
    try:
        refuse_other_form(path)
        return path.open("rb")
    except FileNotFoundError as error:
        raise TaskDataError(
            f"{path} is missing; put the original file there, or name another one under tasks.files"
        ) from error
    except OSError as error:
        raise TaskDataError(
            f"{path} cannot be read ({error.strerror}); it must be a file you may read"
        ) from error


def read_lines(path: Path, *, encoding: str = "utf-8") -> Iterator[tuple[str, str]]:
    """Yield location and text of each line, of a file ``.gz`` those behind its compression.

    Only a line feed ends a line, with a carriage return before it or not: sentences contain other
    characters that `str.splitlines` would split at.

    Raises:
        TaskDataError: the file is missing, a line is not UTF-8, or its compression is damaged.
    """
    name = str(path)
    number = 0
    with open_task_file(path) as handle:
        lines = gzip.GzipFile(fileobj=handle) if path.suffix == ".gz" else handle
        try:
            for number, line in enumerate(lines, start=1):
                location = f"{name} line {number}"
                text = decode(line, location, encoding)
                yield location, text.removesuffix("\n").removesuffix("\r")
        except (OSError, EOFError, zlib.error) as error:
            raise TaskDataError(
                f"{name} cannot be read after line {number} ({error}); {CURE}"
            ) from error


def decode(data: bytes, location: str, encoding: str = "utf-8") -> str:
    """Return `data` as text.

    Raises:
        TaskDataError: it has another encoding.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        invalid_bytes = data[error.start : error.end]
        name = "UTF-8" if encoding == "utf-8" else encoding
        fault = f"bytes are not {name}:"
        raise invalid_data(location, fault, invalid_bytes, name, CURE_OF_BYTES) from error


def raw_lines(path: Path, *, encoding: str = "utf-8") -> Iterator[str]:
    """Yield lines with their line ends, which inside quotes are part of a cell.

    A byte order mark, which spreadsheets write, is left out.
    """
    with open_task_file(path) as handle:
        for number, line in enumerate(handle, start=1):
            text = decode(line, f"{path} line {number}", encoding)
            yield text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text


def refuse_repeated(idx: Any, location: str, locations: dict[Hashable, str]) -> None:
    """Record the identity of a row.

    Args:
        idx: identity of the row.
        location: file and line of the row.
        locations: identity -> location of the rows so far; this row is added.

    Raises:
        TaskDataError: another row has this identity; both locations are named.
    """
    key = tuple(idx.items()) if isinstance(idx, Mapping) else idx
    if key in locations:
        raise invalid_data(
            location, "repeats idx", idx, f"each idx once; it is also at {locations[key]}"
        )
    locations[key] = location
