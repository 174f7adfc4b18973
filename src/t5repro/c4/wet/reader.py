"""Pages of WET files for one cleaning job: counted, sorted out, divided into groups."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.samples import Samples
from t5repro.c4.wet import faults
from t5repro.c4.wet import pages as wet_files
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.url_filter import SELECT_REASONS, Fault
from t5repro.progress import Progress

WORK_PAGES = 128  # cleaned together: few, for memory that is used again is fast
WORK_BYTES = 8_000_000
MEGABYTE = 1_000_000
READ = "read"
READ_REASONS = (*wet_files.PAGE_FAULTS, *SELECT_REASONS)

NamedPage = tuple[str, wet_files.Page]  # with the name of its file


class CleanTally:
    """What cleaning took in and dropped, with examples: of a shard, or of a part of one.

    Args:
        on_bad_record: what a fault of the crawl does.
    """

    def __init__(self, on_bad_record: faults.OnBadRecord = "skip") -> None:
        self.faults = faults.FaultLog(on_bad_record)
        self.read: Counter[str] = Counter(dict.fromkeys((READ, *READ_REASONS), 0))
        self.cleaned: Counter[str] = Counter()
        self.samples = Samples()

    def counters(self) -> dict[str, Any]:
        """Return what the manifest of a shard says."""
        return {**self._counts(), "samples": self.samples.readable()}

    def to_json(self) -> dict[str, Any]:
        """Return everything, for `merge`."""
        return {**self._counts(), "samples": self.samples.to_json()}

    def _counts(self) -> dict[str, Any]:
        return {"read": self.read, "cleaned": self.cleaned, "faults": self.faults.to_json()}

    def add_refused(self, paths: Iterable[str]) -> None:
        """Take in paths of a list that leave the folder of the crawl.

        Raises:
            CrawlError: there is one, and faults are to stop the run.
        """
        for path in paths:
            detail = f"the list of WET files names {path!r}, which leaves c4.crawl_prefix; refused"
            self.faults.add(faults.Fault(path, "", faults.OUTSIDE_FOLDER, detail))

    def merge(self, other: Mapping[str, Any]) -> None:
        """Take in what `to_json` of another part of the crawl returned."""
        self.read.update(other["read"])
        self.cleaned.update(other["cleaned"])
        self.samples.join(other["samples"])
        self.faults.merge(other["faults"])


class Reader:
    """Reads WET files; counts all pages and sorts out those that cannot be used.

    Args:
        max_chars: longer pages are sorted out.
        tally: gets what is read and sorted out.
        limits: what one record may need; None: as the settings have it by default.
        address_fault: says why a normalised URL is not read; None: every one is.
        withdrawn: tells of a URL whether its page may not be used; None: every page may.
        progress: is told of bytes and pages.
    """

    def __init__(
        self,
        max_chars: int,
        tally: CleanTally,
        *,
        limits: Limits | None = None,
        address_fault: Fault | None = None,
        withdrawn: Callable[[str], bool] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._max_chars = max_chars
        self._limits = limits
        self._tally = tally
        self._address_fault = address_fault
        self._withdrawn = withdrawn
        self._progress = progress
        self._bytes_read = 0
        self._started = time.monotonic()

    def usable_pages(self, path: Path) -> Iterator[NamedPage]:
        """Yield the pages of a file that can be read, are short enough and are asked for.

        Raises:
            CrawlError: the file cannot be read, or a fault is to stop the run.
        """
        tally = self._tally
        pages = wet_files.read_pages(
            path,
            advance=self._advance,
            limits=self._limits,
            on_fault=tally.faults.add,
            withdrawn=self._withdrawn,
        )
        for page in pages:
            tally.read[READ] += 1
            reason = page.fault
            if reason is None and page.is_longer_than(self._max_chars):
                reason = wet_files.TOO_LONG
            if reason is None and self._address_fault is not None:
                reason = self._address_fault(dedup_spans.normalize_url(page.url))
            if reason is None:
                yield path.name, page
                continue
            tally.read[reason] += 1
            url = _printable(page.url)
            rank = (dedup_spans.digest(url).hex(), path.name, page.record)
            tally.samples.offer(reason, rank, url, _printable(page.text[:1000]))
            if wrong := wet_files.page_fault(path, page):
                tally.faults.add(wrong)

    def _advance(self, count: int) -> None:
        whole = (self._bytes_read + count) // MEGABYTE - self._bytes_read // MEGABYTE
        self._bytes_read += count
        if self._progress is not None:
            read = self._tally.read[READ]
            rate = read / max(time.monotonic() - self._started, 1e-9)
            self._progress.advance(whole, pages=read, pages_per_second=round(rate))


def _printable(text: str) -> str:
    """Return `text` with a question mark for every byte that was no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def megabytes(files: Iterable[Path]) -> int:
    """Return what the files take on the disk, without those that are missing."""
    return sum(path.stat().st_size for path in files if path.is_file()) // MEGABYTE


def groups(pages: Iterable[NamedPage]) -> Iterator[list[NamedPage]]:
    """Divide pages into groups that fit in memory."""
    group: list[NamedPage] = []
    size = 0
    for item in pages:
        group.append(item)
        size += len(item[1].body)
        if len(group) >= WORK_PAGES or size >= WORK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
