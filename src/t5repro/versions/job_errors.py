"""One line for each failed job: its fate and its log; errors of Snakemake despite ``--quiet``.

Snakemake prints the command of a failed job, which contains the settings as JSON, 4 kB of it, and
hides the path of the log with ``quiet: rules``. Its own log file still has all of that.
"""

import logging
import re
import signal
import sys
from collections import deque
from pathlib import Path

from snakemake.logging import LogEvent, logger
from snakemake.settings.types import OutputSettings

from t5repro.progress import printable

SHELL_ADDS = 128  # a shell reports a signal as 128 and its number
# How Python words the end of a command, after the command itself.
ENDS = re.compile(r"returned non-zero exit status (\d+)|died with <Signals\.\w+: (\d+)>")
FATES = {
    signal.SIGINT: "was stopped by Ctrl-C",
    signal.SIGTERM: "was stopped (SIGTERM)",
    signal.SIGKILL: "was killed, probably out of memory (exit status 137)",
}
LAST_LINES = 20


class JobErrors(logging.Handler):
    """Prints the line of a failed job in place of what Snakemake prints, also with ``--quiet``.

    Args:
        show_logs: whether the last lines of the log follow, for jobs of other machines.
    """

    def __init__(self, *, show_logs: bool) -> None:
        super().__init__()
        self._show_logs = show_logs
        self._statuses: dict[int | None, int] = {}  # by thread: it then reports the job
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Print the line of a failed job; remember the exit status, which an earlier event has."""
        if not _is_of_failed_job(record):
            return
        if record.__dict__["event"] == LogEvent.ERROR:
            if ends := ENDS.findall(record.getMessage()):  # the last: a command may contain others
                status, number = ends[-1]
                self._statuses[record.thread] = int(status or SHELL_ADDS + int(number))
            return
        status = self._statuses.pop(record.thread, None)
        log = next(iter(record.__dict__["log"]), None)
        log_note = f"; log: {log}" if log else ""
        line = f"{record.__dict__['rule_name']} {_outcome(status)}{log_note}"
        self._lines.append(line)
        _print(line, *self._last_lines(log, status))

    def print_again(self) -> None:
        """Print the lines of all failed jobs together, if there are several."""
        if len(self._lines) > 1:
            _print(f"{len(self._lines)} jobs failed:", *self._lines)

    def _last_lines(self, log: str | None, status: int | None) -> list[str]:
        """Return the end of the log of a job that could not tell the terminal what happened."""
        crashed = status is not None and _signal(status) not in (None, *FATES)
        if log is None or not (self._show_logs or crashed):
            return []
        try:
            with Path(log).open(encoding="utf-8", errors="backslashreplace") as lines:
                return [f"    {line.rstrip()}" for line in deque(lines, LAST_LINES)]
        except OSError as error:
            return [f"    {log} cannot be read: {error.strerror}"]


class HiddenErrors(logging.Handler):
    """Prints the errors of Snakemake that ``--quiet all`` hides, except those of jobs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print an error that no job has caused, if Snakemake does not."""
        if record.levelno >= logging.ERROR and not _is_of_failed_job(record) and hides_errors():
            _print(printable(record.getMessage()))


def print_hidden_errors() -> None:
    """Print the errors of Snakemake from now on, also with ``--quiet all``."""
    if not any(isinstance(handler, HiddenErrors) for handler in logger.handlers):
        logger.addHandler(HiddenErrors())


def hides_errors() -> bool:
    """Return whether Snakemake prints no error: its options tell, and only its filter knows all."""
    error = logging.makeLogRecord({"levelno": logging.ERROR, "event": LogEvent.ERROR})
    screens = [handler for handler in logger.handlers if handler.name == "DefaultStreamHandler"]
    return bool(screens) and not any(screen.filter(error) for screen in screens)


def print_job_errors(output: OutputSettings) -> JobErrors:
    """Print one line for each failed job; with ``--verbose`` also what Snakemake prints."""
    errors = JobErrors(show_logs=output.show_failed_logs)
    for handler in logger.handlers:
        if not output.verbose and not isinstance(handler, logging.FileHandler):
            handler.addFilter(lambda record: not _is_of_failed_job(record))
    logger.addHandler(errors)
    return errors


def _print(*lines: str) -> None:
    """Print lines at once: Snakemake and other jobs print too."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def _is_of_failed_job(record: logging.LogRecord) -> bool:
    """Return whether a record repeats the command of a failed job."""
    event = getattr(record, "event", None)
    if event == LogEvent.ERROR:  # other errors, such as a missing output, have no such end
        return bool(ENDS.search(record.getMessage()))
    return bool(event == LogEvent.JOB_ERROR)


def _outcome(status: int | None) -> str:
    if status is None:
        return "failed"
    number = _signal(status)
    if number is None:
        return f"failed with exit status {status}"
    return FATES.get(number, f"crashed ({number.name})")


def _signal(status: int) -> signal.Signals | None:
    try:
        return signal.Signals(status - SHELL_ADDS)
    except ValueError:
        return None
