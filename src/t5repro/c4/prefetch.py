"""Run library code that releases the GIL (compression, language detection) on a second core."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Input = TypeVar("Input")
Result = TypeVar("Result")


def overlapped(
    work: Callable[[Input], Result], inputs: Iterable[Input]
) -> Iterator[tuple[Input, Result]]:
    """Yield each input with `work` of it, computed in a thread while the next one is produced.

    Inputs are processed one at a time and in order; at most two are in memory.

    Raises:
        Exception: the exception of `inputs` or `work`, after the input in progress is finished.
    """
    with ThreadPoolExecutor(1) as thread:
        pending: tuple[Input, Future[Result]] | None = None
        for value in inputs:
            future = thread.submit(work, value)
            if pending is not None:
                yield pending[0], pending[1].result()
            pending = value, future
        if pending is not None:
            yield pending[0], pending[1].result()
