"""A few examples for each reason in `reasons`, independent of the order of the input.

For each reason the examples with the smallest rank are kept. A rank starts with the MD5 of the
page's URL, so the examples are practically random, and merging the samples of two parts of the
crawl gives the sample of both.
"""

from collections.abc import Iterable, Mapping
from typing import Any

EXAMPLES = 3
EXCERPT_CHARS = 200

Rank = tuple[str, str, int]  # MD5 of the URL, name of the file, record


class Samples:
    """The examples of each reason."""

    def __init__(self) -> None:
        self._examples: dict[str, list[tuple[Rank, str, str]]] = {}

    def wants(self, reason: str, rank: Rank) -> bool:
        """Return whether `offer` would keep an example of this rank."""
        examples = self._examples.get(reason, [])
        return len(examples) < EXAMPLES or rank < examples[-1][0]

    def offer(self, reason: str, rank: Rank, url: str, text: str) -> None:
        """Keep the start of `text` as an example of `reason` if its rank is small enough."""
        if self.wants(reason, rank):
            excerpt = " ".join(text[: 4 * EXCERPT_CHARS].split())[:EXCERPT_CHARS]
            self._keep(reason, rank, url, excerpt)

    def _keep(self, reason: str, rank: Rank, url: str, excerpt: str) -> None:
        examples = self._examples.setdefault(reason, [])
        examples.append((rank, url, excerpt))
        examples.sort()
        del examples[EXAMPLES:]

    def to_json(self) -> dict[str, list[list[Any]]]:
        """Return the examples with their ranks, for `merge` and `join`."""
        return {
            reason: [[*rank, url, text] for rank, url, text in examples]
            for reason, examples in sorted(self._examples.items())
        }

    def merge(self, samples: Mapping[str, Iterable[Iterable[Any]]]) -> None:
        """Add the result of `to_json` of an earlier step, shortened to excerpts again."""
        for reason, examples in samples.items():
            for key, file, record, url, text in examples:
                self.offer(reason, (key, file, record), url, text)

    def join(self, samples: Mapping[str, Iterable[Iterable[Any]]]) -> None:
        """Add the result of `to_json` of another part of the same step, unchanged."""
        for reason, examples in samples.items():
            for key, file, record, url, excerpt in examples:
                if self.wants(reason, (key, file, record)):
                    self._keep(reason, (key, file, record), url, excerpt)

    def readable(self) -> dict[str, list[dict[str, Any]]]:
        """Return reason -> examples, each with ``file``, ``record``, ``url`` and ``text``."""
        return {
            reason: [
                {"file": file, "record": record, "url": url, "text": text}
                for (_, file, record), url, text in examples
            ]
            for reason, examples in sorted(self._examples.items())
        }

    def pages(self) -> dict[str, list[dict[str, Any]]]:
        """Return the same without the texts."""
        return {
            reason: [
                {key: example[key] for key in ("file", "record", "url")} for example in examples
            ]
            for reason, examples in self.readable().items()
        }
