"""Read the WET files of a job: count pages, drop unusable ones, divide the rest into groups."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.c4.keys import md5, normalize_url
from t5repro.c4.reasons import READ_REASONS, TOO_LONG, WITHDRAWN
from t5repro.c4.samples import Samples
from t5repro.c4.wet import faults
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.pages import Page, SignalsOf, page_fault, read_pages
from t5repro.c4.wet.url_filter import UrlReason
from t5repro.data.crawl_lists import LocalCopies
from t5repro.progress import Progress

MAX_GROUP_PAGES = 128  # cleaned together; small groups reuse the same memory
MAX_GROUP_BYTES = 8_000_000
MEGABYTE = 1_000_000
READ = "read"
EXCERPT_CHARS = 1000

FilePage = tuple[str, Page]  # with the name of its file


class CleanTally:
    """Counts of the pages that cleaning read and dropped, with examples.

    Args:
        on_bad_record: `c4.on_bad_record`, whether a fault of the crawl stops the run.
        signals: names of the signals that are counted, if pages have any.
    """

    def __init__(
        self, on_bad_record: faults.OnBadRecord = "skip", signals: Iterable[str] = ()
    ) -> None:
        self.faults = faults.FaultLog(on_bad_record)
        self.read: Counter[str] = Counter(dict.fromkeys((READ, *READ_REASONS), 0))
        self.cleaned: Counter[str] = Counter()
        self.signals: Counter[str] = Counter(dict.fromkeys(signals, 0))
        self.samples = Samples()

    def counters(self) -> dict[str, Any]:
        """Return the counters for the manifest of a shard."""
        return {**self._counts(), "samples": self.samples.readable()}

    def to_json(self) -> dict[str, Any]:
        """Return all counts and examples, for `merge`."""
        return {**self._counts(), "samples": self.samples.to_json()}

    def _counts(self) -> dict[str, Any]:
        # Without signals the counts are those from before there were any.
        signals = {"signals": self.signals} if self.signals else {}
        return {
            "read": self.read,
            "cleaned": self.cleaned,
            "faults": self.faults.to_json(),
            **signals,
        }

    def add_refused(self, paths: Iterable[str]) -> None:
        """Count paths of a list that leave the folder of the crawl as faults.

        Raises:
            CrawlError: there is one, and `on_bad_record` is `fail`.
        """
        for path in paths:
            detail = f"the list of WET files names {path!r}, which leaves c4.crawl_prefix; refused"
            self.faults.add(faults.Fault(path, "", faults.OUTSIDE_FOLDER, detail))

    def merge(self, tally: Mapping[str, Any]) -> None:
        """Add the result of `to_json` of another part of the crawl."""
        self.read.update(tally["read"])
        self.cleaned.update(tally["cleaned"])
        self.signals.update(tally.get("signals", {}))
        self.samples.join(tally["samples"])
        self.faults.merge(tally["faults"])


class Reader:
    """Reads WET files, counts all pages and drops unusable ones.

    Args:
        max_chars: longer pages are dropped.
        tally: counts pages and faults.
        limits: maximum sizes of a record; None uses the defaults of the settings.
        reads_warc_1_1: whether files of WARC/1.1 are read (`c4.warc_1_1`).
        url_reason: returns the reason to skip a normalised URL; None reads every page.
        is_withdrawn: returns whether the page of a URL is withdrawn; None without a list.
        progress: shows bytes and pages.
    """

    def __init__(
        self,
        max_chars: int,
        tally: CleanTally,
        *,
        limits: Limits | None = None,
        reads_warc_1_1: bool = True,
        url_reason: UrlReason | None = None,
        is_withdrawn: Callable[[str], bool] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._max_chars = max_chars
        self._limits = limits
        self._reads_warc_1_1 = reads_warc_1_1
        self._tally = tally
        self._url_reason = url_reason
        self._is_withdrawn = is_withdrawn
        self._progress = progress
        self._bytes_read = 0
        self._started = time.monotonic()

    def usable_pages(self, path: Path, signals_of: SignalsOf | None = None) -> Iterator[FilePage]:
        """Yield the pages of a file that are intact, short enough and selected by URL.

        Args:
            path: the file.
            signals_of: returns the signals of a page, which are counted; None counts none.

        Raises:
            CrawlError: the file cannot be read, or a fault stops the run.
        """
        tally = self._tally
        pages = read_pages(
            path,
            advance=self._advance,
            limits=self._limits,
            reads_warc_1_1=self._reads_warc_1_1,
            on_fault=tally.faults.add,
            is_withdrawn=self._is_withdrawn,
            signals_of=signals_of,
        )
        for page in pages:
            tally.read[READ] += 1
            reason = page.fault
            if reason is None and page.is_longer_than(self._max_chars):
                reason = TOO_LONG
            if reason is None and self._url_reason is not None:
                reason = self._url_reason(normalize_url(page.url))
            if reason is None:
                if signals_of is not None:
                    tally.signals.update(page.signals)
                yield path.name, page
                continue
            tally.read[reason] += 1
            if reason == WITHDRAWN:
                continue
            url = _printable(page.url)
            rank = (md5(url).hex(), path.name, page.record)
            tally.samples.offer(reason, rank, url, _printable(page.text[:EXCERPT_CHARS]))
            if fault := page_fault(path, page):
                tally.faults.add(fault)
        self._advance(0)  # the pages of the last bytes

    def _advance(self, count: int) -> None:
        advanced = _megabytes_of(self._bytes_read + count) - _megabytes_of(self._bytes_read)
        self._bytes_read += count
        if self._progress is not None:
            read = self._tally.read[READ]
            rate = read / max(time.monotonic() - self._started, 1e-9)
            self._progress.advance(advanced, pages=read, pages_per_second=round(rate))


def _printable(text: str) -> str:
    """Return `text` with a question mark for every byte that was not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def megabytes(copies: LocalCopies) -> int | None:
    """Return the size of the existing files on disk; None if they are still to arrive."""
    if copies.are_remote:
        return None
    # A listed name may be none that a file can have, which `Path.is_file` of Python 3.11 raises.
    files = filter(os.path.isfile, copies.paths)
    return _megabytes_of(sum(path.stat().st_size for path in files))


def _megabytes_of(count: int) -> int:
    """Return a number of bytes in megabytes, rounded up: small files do not show 0 of 0 MB."""
    return -(-count // MEGABYTE)


def groups(pages: Iterable[FilePage]) -> Iterator[list[FilePage]]:
    """Divide pages into groups that are cleaned together."""
    group: list[FilePage] = []
    size = 0
    for file, page in pages:
        group.append((file, page))
        size += len(page.body)
        if len(group) >= MAX_GROUP_PAGES or size >= MAX_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
