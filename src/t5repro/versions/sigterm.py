"""SIGTERM ends a run of Snakemake, whatever Snakemake is doing when it comes.

Snakemake's own handler takes the scheduler's lock. Python runs handlers in the main thread, so a
signal that comes while that thread holds the lock, as it does while it hashes the inputs of a
finished job, waits for itself for ever, with the lock of the project held (Snakemake 9.27,
`JobScheduler.exit_gracefully`). Here the handler only sets a mark and puts a note into a queue,
which may be done at any moment, and another thread calls Snakemake's.
"""

import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType


def hand_on_sigterm(at_once: Callable[[], None] = lambda: None) -> None:
    """Have the present handler of SIGTERM called in a thread of its own; call it in the main one.

    Nothing changes where SIGTERM has no handler, or one that this function made.

    Args:
        at_once: what is done before, in the main thread; it must take no lock.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler) or isinstance(handler, _HandOn):
        return
    hand_on = _HandOn(at_once)
    signal.signal(signal.SIGTERM, hand_on)

    def listen() -> None:
        while True:
            handler(hand_on.asked.get(), None)

    threading.Thread(target=listen, name="SIGTERM", daemon=True).start()


class _HandOn:
    """A handler that takes no lock: `SimpleQueue.put` may interrupt itself."""

    def __init__(self, at_once: Callable[[], None]) -> None:
        self.asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._at_once = at_once

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._at_once()
        self.asked.put(number)
