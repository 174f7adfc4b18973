"""What people read: a bar on a terminal, occasional lines in a log, messages.

A job run by Snakemake redirects its output and its libraries' output to a log file. `log_to` keeps
the terminal open, so that the bar still reaches the user.
"""

import contextlib
import fcntl
import os
import re
import sys
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from t5repro.errors import storage_error

if TYPE_CHECKING:  # only a terminal needs it
    from tqdm import tqdm

SECONDS_BETWEEN_LINES = 15.0
# All but tab and newline, and the marks that turn the reading direction.
CONTROL_CHARACTERS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]"
)


# A value of a damaged file in a message; the longest honest lines name some files.
LONG_LINE = re.compile(r"([^\n]{8000})([^\n]+)")

CLEAR_LINE = "\r\x1b[K"

_terminal: TextIO | None = None  # stderr before its redirection to a log file
_node = ""  # of the job, such as "baseline_seed_1"; jobs at work at the same time share a terminal


@contextlib.contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Send stdout and stderr, also of C++ libraries, to a log file.

    Progress and `announce` reach both the log and the terminal.
    """
    global _terminal, _node
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("w", encoding="utf-8")
    except OSError as error:
        raise storage_error(path, error) from error
    sys.stdout.flush()
    sys.stderr.flush()
    # File descriptors and not `sys.stdout`: libraries in C++ write to them directly.
    saved_out, saved_err = os.dup(1), os.dup(2)
    with log, os.fdopen(os.dup(2), "w", errors="backslashreplace") as _terminal:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        _node = _node_of(path)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                traceback.print_exc()  # into the log; the command line prints to the terminal
            raise
        finally:
            for screen in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    screen.flush()
            os.dup2(saved_out, 1)
            os.dup2(saved_err, 2)
            os.close(saved_out)
            os.close(saved_err)
            _node = ""
    _terminal = None


def _node_of(log: Path) -> str:
    """Return the node in the path of a log, ``logs/<run>/<rule>/<node>.log``."""
    return " ".join(log.with_suffix("").parts[3:]) if log.parts[0] == "logs" else ""


def name_of_work(label: str) -> str:
    """Return the name of some work of this job: ``pretrain`` becomes ``pretrain baseline``."""
    return f"{label} {_node}".rstrip()


def announce(text: str) -> None:
    """Print one line to the log and to the terminal, once if they are the same."""
    # The terminal first: the log may be on a full disk. A failure to print must not stop the job.
    for screen in (_terminal, sys.stderr):
        if screen is not None:
            _print_line(printable(text), screen)


def printable(text: str) -> str:
    r"""Return a text with ``\x1b`` and the like in place of characters that act on a terminal.

    Lines are cut after 8,000 characters.
    """
    shown = CONTROL_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], text)
    return LONG_LINE.sub(lambda match: f"{match[1]}… ({len(match[2]):,} characters more)", shown)


def aligned(rows: Sequence[Sequence[str]], *, left: Collection[int], rule: bool = False) -> str:
    """Return rows of cells as a table of plain text.

    Args:
        rows: cells; the first row is the head.
        left: numbers of the columns that are aligned left, such as names.
        rule: whether to draw a line below the head.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if rule:
        lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines) + "\n"


def _print_line(text: str, screen: TextIO) -> None:
    # A bar, of this job or another, may stand where the line begins; it is drawn again below.
    over_a_bar = CLEAR_LINE if screen.isatty() else ""
    with contextlib.suppress(OSError):
        print(f"{over_a_bar}{text}", file=screen, flush=True)


def _claim(screen: TextIO) -> int | None:
    """Return a descriptor that holds a terminal until it is closed.

    None if the screen is not a terminal, or another job's bar is on it. A killed job holds nothing.
    """
    try:
        # Opened again: jobs inherit one descriptor of the terminal, and so would share its lock.
        terminal = os.open(os.ttyname(screen.fileno()), os.O_WRONLY | os.O_NOCTTY)
    except OSError:
        return None
    try:
        fcntl.flock(terminal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(terminal)
        return None
    return terminal


class Progress:
    """Counts finished items and shows speed and remaining time.

    The first items do not count for the speed: before them a training compiles its step, which
    would make the remaining time many times too long.

    The label is followed by the node of the job. A terminal shows the bar of one job, and lines of
    the jobs beside it, of which one has the bar next. A log, or an output that is not a terminal,
    gets lines: at most one every `SECONDS_BETWEEN_LINES`, one at the start and one at the end.

    Args:
        label: what the items are counted for.
        total: number of items, if it is known.
        unit: what an item is.
        done: items that an earlier attempt has finished.
        begins: what happens before the first item.

    Example:
        with Progress("clean", total=len(pages), unit="pages") as progress:
            for page in pages:
                progress.advance(1, kept=kept)
    """

    def __init__(
        self, label: str, *, total: int | None, unit: str, done: int = 0, begins: str = "started"
    ) -> None:
        self._label = name_of_work(label)
        self._begins = begins
        self._total = total
        self._unit = unit
        self._done = done
        self._facts: dict[str, Any] = {}
        self._started = self._printed = time.monotonic()
        self._first: tuple[int, float] | None = None  # items and time after the first `advance`
        self._bar: tqdm[Any] | None = None
        self._claimed: int | None = None

    def __enter__(self) -> Self:
        self._draw()
        self._print(self._begins)
        return self

    def _draw(self) -> None:
        """Show a bar if no other job has one on this terminal."""
        screen = _terminal or sys.stderr
        self._claimed = _claim(screen)
        if self._claimed is not None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._total,
                desc=self._label,
                unit=f" {self._unit}",
                initial=self._done,
                dynamic_ncols=True,
                file=screen,
                postfix=self._facts or self._begins,
            )

    def advance(self, count: int = 1, **facts: Any) -> None:
        """Count `count` more items and show `facts`, such as the loss or examples per second."""
        self._done += count
        self._facts = facts or self._facts
        if self._first is None and count:
            self._first = self._done, time.monotonic()
        if self._bar is not None:
            self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update(count)
        if time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            self._print(self._speed())
            if self._bar is None:
                self._draw()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._claimed is not None:
            fcntl.flock(self._claimed, fcntl.LOCK_UN)  # workers may have inherited it
            os.close(self._claimed)
        self._print("done" if kind is None else "stopped")

    def _speed(self) -> str:
        now = time.monotonic()
        if self._first is None or self._done == self._first[0]:
            return f"running for {_minutes(now - self._started)}"
        items, since = self._first
        rate = (self._done - items) / max(now - since, 1e-9)
        text = f"{rate:.1f} {self._unit}/s"
        if self._total:
            text += f", {_minutes((self._total - self._done) / rate)} left"
        return text

    def _print(self, state: str) -> None:
        if self._bar is not None and _terminal is None:
            return  # the bar is on the only output
        of = "" if self._total is None else f"/{self._total}"
        facts = "".join(f" {name}={value}" for name, value in self._facts.items())
        line = f"{self._label}: {self._done}{of} {self._unit}{facts} ({state})"
        if self._bar is None:
            announce(line)
        else:
            _print_line(line, sys.stderr)


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
