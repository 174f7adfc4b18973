"""Task files as lines, strictly: what cannot be read is refused with its place.

Every error names file and line, shows what stood there, what is allowed and the cure. `tables`,
`records` and `pairs` read the layouts of the original downloads on top of this; each reader is
called with the files of one split, the split's name and a counter for what it leaves out by rule.
"""

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.errors import TaskDataError

SHOWN_CHARS = 80
BYTE_ORDER_MARK = "\ufeff"
CURE = "download the file again, or name another one under tasks.files"


def fault(where: str, what: str, value: Any, allowed: str, cure: str = CURE) -> TaskDataError:
    """Return the error for something in a task file that is not allowed there."""
    shown = repr(value)
    if len(shown) > SHOWN_CHARS:
        shown = shown[:SHOWN_CHARS] + "…"
    return TaskDataError(f"{where}: {what} {shown}; allowed: {allowed}; {cure}")


def open_task_file(path: Path) -> Any:
    """Open a task file for reading bytes.

    Raises:
        TaskDataError: it is missing or cannot be read.
    """
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise TaskDataError(
            f"{path} is missing; put the original file there, or name another one under tasks.files"
        ) from error
    except OSError as error:
        raise TaskDataError(
            f"{path} cannot be read ({error.strerror}); it must be a file you may read"
        ) from error


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line's place and text; only a line feed (with a carriage return) ends a line.

    Raises:
        TaskDataError: the file is missing, or a line is not UTF-8.
    """
    name = str(path)
    with open_task_file(path) as handle:
        for number, line in enumerate(handle, start=1):
            where = f"{name} line {number}"
            yield where, decode(line, where).removesuffix("\n").removesuffix("\r")


def decode(data: bytes, where: str) -> str:
    """Return `data` as text.

    Raises:
        TaskDataError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong = data[error.start : error.end]
        raise fault(
            where, "bytes are not UTF-8:", wrong, "UTF-8", "convert the file to UTF-8"
        ) from error


def raw_lines(path: Path) -> Iterator[str]:
    """Yield lines with their ends, which belong to the text inside quotes."""
    with open_task_file(path) as handle:
        for number, line in enumerate(handle, start=1):
            yield decode(line, f"{path} line {number}")


def refuse_repeated(idx: Any, where: str, seen: dict[Hashable, str]) -> None:
    """Note an identity.

    Raises:
        TaskDataError: it was seen before; both places are named.
    """
    key = tuple(idx.items()) if isinstance(idx, Mapping) else idx
    if key in seen:
        raise fault(where, "repeats idx", idx, f"each idx once; it is also at {seen[key]}")
    seen[key] = where
