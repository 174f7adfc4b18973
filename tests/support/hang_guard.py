"""The limit of a test: it ends a test that hangs, and a busy machine does not reach it.

The limit of pytest-timeout is in seconds of a machine without other work. While n processes want
each processor, a test may take n times as long. The load is read when the limit is reached, from
the averages over the last 1, 5 and 15 minutes, so nothing else runs during a test.
"""

import os
import signal

import pytest
from pytest_timeout import Settings, timeout_sigalrm

SHORTEST_EXTENSION_SECONDS = 1.0


def load_per_processor() -> float:
    """Return how many processes want each processor, at least 1."""
    return max(1.0, max(os.getloadavg()) / len(os.sched_getaffinity(0)))


def start(item: pytest.Item, settings: Settings) -> None:
    """Start the limit of a test; `item.cancel_timeout` ends it, as pytest-timeout expects."""
    granted = settings.timeout

    def on_alarm(signum: int, frame: object) -> None:
        nonlocal granted
        extension = settings.timeout * load_per_processor() - granted
        if extension < SHORTEST_EXTENSION_SECONDS:
            timeout_sigalrm(item, settings)
            return  # in a debugger, which has no limit
        granted += extension
        signal.setitimer(signal.ITIMER_REAL, extension)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
