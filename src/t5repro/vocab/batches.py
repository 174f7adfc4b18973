"""Work on batches of texts of the corpus in their order, in this process or in several."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

PROCESSES = 8  # the most; rules declare as many threads
BYTES_OF_PROCESS = 50_000_000  # of pages: starting one takes as long as it needs for fewer
BATCHES_AHEAD = 2 * PROCESSES  # of the one whose result is awaited

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def processes_for(shards: Iterable[Path]) -> int:
    """Return how many processes read some files fastest; a result must not depend on it."""
    size = sum(path.stat().st_size for path in shards)
    return min(PROCESSES, len(os.sched_getaffinity(0)), 1 + size // BYTES_OF_PROCESS)


@contextlib.contextmanager
def pool_for(shards: Iterable[Path]) -> Iterator[ProcessPoolExecutor | None]:
    """Yield processes to read some files; None if this one alone is fastest."""
    if (processes := processes_for(shards)) == 1:
        yield None
        return
    # A process that was forked from one with threads may stop for ever.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield pool


def in_order(
    pool: ProcessPoolExecutor | None, work: Callable[[Batch], Result], batches: Iterable[Batch]
) -> Iterator[Result]:
    """Yield `work` of each batch; at most `BATCHES_AHEAD` of them are in memory.

    Args:
        pool: processes that share the batches; None works in this process.
        work: function that can be sent to a process.
        batches: what it works on.

    Raises:
        Exception: the exception of `batches` or `work`.
    """
    if pool is None:
        yield from map(work, batches)
        return
    pending: deque[Future[Result]] = deque()
    for batch in batches:
        pending.append(pool.submit(work, batch))
        if len(pending) == BATCHES_AHEAD:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
