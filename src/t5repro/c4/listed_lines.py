"""The lines of a list: bad words of a language, addresses of another corpus."""

from collections.abc import Iterator
from pathlib import Path

from t5repro.errors import RawDataError
from t5repro.files import refuse_other_form


def listed_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a list without white space around them; blank lines are left out.

    Raises:
        OSError: it is missing or no file.
        RawDataError: it has another form than its name says, is not UTF-8, or has the marks of a
            conflict of git, the lines of which would be entries.
    """
    refuse_other_form(path)
    try:
        with path.open(encoding="utf-8") as handle:
            for number, line in enumerate(handle, start=1):
                if "\0" in line:  # UTF-16 without its mark
                    raise RawDataError(f"{path} line {number}: has a NUL character; fetch it again")
                if line.startswith("<<<<<<< "):
                    raise RawDataError(
                        f"{path} line {number}: is the mark of a conflict of git; take one side, "
                        "or fetch it again"
                    )
                if entry := line.strip():
                    yield entry
    except UnicodeDecodeError as error:
        raise RawDataError(f"{path}: not UTF-8 at byte {error.start}; fetch it again") from error
