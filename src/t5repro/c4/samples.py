"""A few examples of what each rule dropped, the same whatever the order of the input.

Of all that a reason dropped, those with the smallest rank are kept, a rank being made of the MD5
of the page's URL: as good as random, and a merge of the samples of two parts of the crawl is the
sample of both.
"""

from collections.abc import Iterable, Mapping
from typing import Any

EXAMPLES = 3
EXCERPT_CHARS = 200

Rank = tuple[str, str, int]  # MD5 of the URL, name of the file, record


class Samples:
    """The examples of each reason."""

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[Rank, str, str]]] = {}

    def wants(self, reason: str, rank: Rank) -> bool:
        """Return whether something of this rank would be kept now."""
        kept = self._kept.get(reason, [])
        return len(kept) < EXAMPLES or rank < kept[-1][0]

    def offer(self, reason: str, rank: Rank, url: str, text: str) -> None:
        """Keep the begin of `text` as an example of `reason` if its rank is small enough."""
        if self.wants(reason, rank):
            excerpt = " ".join(text[: 4 * EXCERPT_CHARS].split())[:EXCERPT_CHARS]
            self._keep(reason, rank, url, excerpt)

    def _keep(self, reason: str, rank: Rank, url: str, excerpt: str) -> None:
        kept = self._kept.setdefault(reason, [])
        kept.append((rank, url, excerpt))
        kept.sort()
        del kept[EXAMPLES:]

    def to_json(self) -> dict[str, list[list[Any]]]:
        """Return the examples with their ranks, for `merge` and `join`."""
        return {
            reason: [[*rank, url, text] for rank, url, text in kept]
            for reason, kept in sorted(self._kept.items())
        }

    def merge(self, others: Mapping[str, Iterable[Iterable[Any]]]) -> None:
        """Take in what `to_json` of an earlier step returned."""
        for reason, examples in others.items():
            for key, file, record, url, text in examples:
                self.offer(reason, (key, file, record), url, text)

    def join(self, others: Mapping[str, Iterable[Iterable[Any]]]) -> None:
        """Take in the examples of another part of the same step, letter by letter."""
        for reason, examples in others.items():
            for key, file, record, url, excerpt in examples:
                if self.wants(reason, (key, file, record)):
                    self._keep(reason, (key, file, record), url, excerpt)

    def readable(self) -> dict[str, list[dict[str, str]]]:
        """Return reason -> examples, each with ``url`` and ``text``, for a manifest."""
        return {
            reason: [{"url": url, "text": text} for _, url, text in kept]
            for reason, kept in sorted(self._kept.items())
        }
