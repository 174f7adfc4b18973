"""Progress a person can read: a bar on a terminal, a plain line now and then in a log.

A job run by Snakemake sends what it and its libraries print to its log file; `keep_terminal`
remembers the terminal first, so that the bar still reaches the person who waits.
"""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

from tqdm import tqdm

from t5repro.errors import storage_error

LINE_EVERY_SECONDS = 15.0

Item = TypeVar("Item")

_terminal: TextIO | None = None  # what stderr was before a log file took its place


@contextlib.contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Send stdout and stderr, those of C++ libraries included, to a log file.

    Progress and `announce` reach both the log and the terminal.
    """
    global _terminal
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("w", encoding="utf-8")
    except OSError as error:
        raise storage_error(path, error) from error
    sys.stdout.flush()
    sys.stderr.flush()
    kept_out, kept_err = os.dup(1), os.dup(2)
    with log, os.fdopen(os.dup(2), "w") as _terminal:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                traceback.print_exc()  # a fault of ours: the log keeps it, the terminal has it too
            raise
        finally:
            for screen in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    screen.flush()
            os.dup2(kept_out, 1)
            os.dup2(kept_err, 2)
            os.close(kept_out)
            os.close(kept_err)
    _terminal = None


def announce(text: str) -> None:
    """Print one line to the log and, where that is another place, to the terminal."""
    # The terminal first: the log may be on the very disk that is full. A screen or a log that
    # cannot be written is no reason for the work to stop.
    for screen in (_terminal, sys.stderr):
        if screen is not None:
            _print_line(text, screen)


def _print_line(text: str, screen: TextIO) -> None:
    with contextlib.suppress(OSError):
        print(text, file=screen, flush=True)


class Progress:
    """Count finished items and say how fast, how many are left and for how long.

    On a terminal it draws a bar; a log, or a terminal that is none, gets one line at most every
    `LINE_EVERY_SECONDS`, and a last one at the end.

    Example:
        with Progress("clean", total=len(pages), unit="pages") as progress:
            for page in pages:
                progress.advance(1, kept=kept)
    """

    def __init__(self, label: str, *, total: int | None, unit: str, done: int = 0) -> None:
        self._label = label
        self._total = total
        self._unit = unit
        self._done = done
        self._first = done
        self._facts: dict[str, Any] = {}
        self._started = self._printed = time.monotonic()
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> Self:
        screen = _terminal or sys.stderr
        if screen.isatty():
            self._bar = tqdm(
                total=self._total,
                desc=self._label,
                unit=f" {self._unit}",
                initial=self._done,
                dynamic_ncols=True,
                file=screen,
            )
        self._print("started")
        return self

    def advance(self, count: int = 1, **facts: Any) -> None:
        """Count `count` more items; `facts` (loss, examples per second) are shown beside."""
        self._done += count
        self._facts = facts or self._facts
        if self._bar is not None:
            self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update(count)
        if time.monotonic() - self._printed >= LINE_EVERY_SECONDS:
            self._printed = time.monotonic()
            self._print(self._speed())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        self._print("done" if kind is None else "stopped")

    def _speed(self) -> str:
        seconds = time.monotonic() - self._started
        rate = (self._done - self._first) / seconds if seconds else 0.0
        text = f"{rate:.1f} {self._unit}/s"
        if self._total and rate:
            left = int((self._total - self._done) / rate)
            text += f", {left // 60}:{left % 60:02d} left"
        return text

    def _print(self, state: str) -> None:
        if self._bar is not None and _terminal is None:
            return  # the bar is on the only screen there is
        of = "" if self._total is None else f"/{self._total}"
        facts = "".join(f" {name}={value}" for name, value in self._facts.items())
        line = f"{self._label}: {self._done}{of} {self._unit}{facts} ({state})"
        if self._bar is None:
            announce(line)
        else:
            _print_line(line, sys.stderr)


def follow(items: Iterable[Item], label: str, *, total: int | None, unit: str) -> Iterator[Item]:
    """Yield `items`, counting each as one finished unit."""
    with Progress(label, total=total, unit=unit) as progress:
        for item in items:
            yield item
            progress.advance()
