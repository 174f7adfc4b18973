"""Use a second core for what libraries do without Python: compress, write, detect languages."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def overlapped(
    work: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with `work` of it, done in a thread while the next item is made.

    Items are worked on one at a time and in order; two are held at most.

    Raises:
        Exception: what `items` or `work` raised; the item that is worked on is finished first.
    """
    with ThreadPoolExecutor(1) as thread:
        before: tuple[Item, Future[Result]] | None = None
        for item in items:
            now = thread.submit(work, item)
            if before is not None:
                yield before[0], before[1].result()
            before = item, now
        if before is not None:
            yield before[0], before[1].result()
