"""SIGTERM ends a run of Snakemake at any moment.

Snakemake's own handler takes the lock of the scheduler. Python runs handlers in the main thread. If
the signal arrives while that thread holds the lock, for example while it hashes the inputs of a
finished job, the thread waits for itself forever, and the lock of the project stays taken
(Snakemake 9.27, `JobScheduler.exit_gracefully`; upstream issue 448 is about its handlers). Here the
handler only puts the signal into a queue, and another thread calls Snakemake's handler.
"""

import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType


def handle_sigterm_in_thread(on_signal: Callable[[], None] = lambda: None) -> None:
    """Move the current handler of SIGTERM to a thread of its own; call this in the main thread.

    Nothing changes if SIGTERM has no Python handler, or one that this function installed.

    Args:
        on_signal: called at once in the main thread; must not take a lock.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler) or isinstance(handler, _QueueingHandler):
        return
    queueing_handler = _QueueingHandler(on_signal)
    signal.signal(signal.SIGTERM, queueing_handler)

    def call_handler() -> None:
        while True:
            handler(queueing_handler.signals.get(), None)

    # A daemon, so that the waiting thread does not keep a finished process alive.
    threading.Thread(target=call_handler, name="SIGTERM", daemon=True).start()


class _QueueingHandler:
    """A handler without locks: `SimpleQueue.put` is reentrant, `Queue.put` is not."""

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self.signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._on_signal = on_signal

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._on_signal()
        self.signals.put(number)
