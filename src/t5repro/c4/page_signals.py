"""Signals of the pages of a job: the source that the settings name, and the pages that are dropped.

Source `wat` reads one WAT file a WET file; a remote one arrives like its WET file.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from t5repro.c4.reasons import LINE_REASONS, SIGNAL_REASONS
from t5repro.c4.text.fast_rules import clean_bodies
from t5repro.c4.text.rules import Cleaned, CleanRules
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.pages import Page, SignalsOf
from t5repro.c4.wet.reader import CleanTally, FilePage
from t5repro.c4.wet.signals import OF_SOURCE
from t5repro.c4.wet.wat import mentions_of, read_wat
from t5repro.config.sections.c4 import CleanC4, PunktC4
from t5repro.data.crawl_lists import CrawlFiles, Fetch, LocalCopies, local_copies, wat_of_crawl
from t5repro.data.transfer import fetch_address
from t5repro.jobs.corpus import CleanJob, PunktJob

NO_SIGNALS: Iterator[None] = itertools.repeat(None)  # of any number of files


def limits_of(c4: CleanC4 | PunktC4) -> Limits:
    """Return the maximum sizes of a record."""
    return Limits(c4.limits.record_chars, c4.limits.member_bytes, c4.limits.gzip_expansion)


def new_tally(c4: CleanC4) -> CleanTally:
    """Return counts of a job at zero."""
    return CleanTally(c4.on_bad_record, OF_SOURCE[c4.signals.source])


def wat_files(job: CleanJob | PunktJob, crawl: CrawlFiles) -> CrawlFiles:
    """Return the WAT file of each WET file of a job, in their order; none if none is read.

    Raises:
        RawDataError: the files of the job are not pairs, or a name is not one of a WET file.
    """
    c4 = job.settings.c4
    if c4.signals.source != "wat":
        return CrawlFiles((), {})
    return wat_of_crawl(crawl, job.wet, job.wat, prefix=c4.crawl_prefix)


@contextlib.contextmanager
def signals_by_file(
    c4: CleanC4 | PunktC4,
    wat: CrawlFiles,
    folder: Path,
    tally: CleanTally,
    fetch: Fetch = fetch_address,
) -> Iterator[tuple[Iterator[SignalsOf | None], LocalCopies]]:
    """Yield the signals of the pages of each WET file of a job, and the WAT files on this machine.

    Args:
        c4: settings of the job.
        wat: result of `wat_files`.
        folder: receives remote files; it is deleted when the block succeeds.
        tally: counts faults of WAT files.
        fetch: transfers one file.
    """
    with local_copies(wat, folder, fetch) as copies:
        yield _by_file(c4, copies, tally), copies


def _by_file(
    c4: CleanC4 | PunktC4, copies: LocalCopies, tally: CleanTally
) -> Iterator[SignalsOf | None]:
    if c4.signals.source == "none":
        return NO_SIGNALS
    if c4.signals.source == "text":
        return itertools.repeat(mentions_of)
    files = copies.as_they_arrive()
    return (read_wat(path, limits_of(c4), tally.faults.add) for path in files)


def drop_reason(drop: Sequence[str]) -> Callable[[Page], str | None]:
    """Return the function from a page to the reason to drop it by its signals, if there is one."""
    reasons = {signal: SIGNAL_REASONS[signal] for signal in drop}
    return lambda page: next((reasons[name] for name in page.signals if name in reasons), None)


def clean_unreserved(
    pages: Sequence[FilePage], rules: CleanRules, drop: Sequence[str]
) -> list[tuple[FilePage, Cleaned]]:
    """Clean pages, each with the name of its file; those with a signal of `drop` lose their text.

    They keep their row, so that no older copy of the page replaces a newer one that reserves its
    rights, and the report shows their URL without a text.
    """
    reason_of = drop_reason(drop)
    reasons = [reason_of(page) for _, page in pages]
    kept = [page for (_, page), reason in zip(pages, reasons, strict=True) if reason is None]
    texts = iter(clean_bodies(kept, rules))
    cleaned: list[tuple[FilePage, Cleaned]] = []
    for (file, page), reason in zip(pages, reasons, strict=True):
        if reason is None:
            cleaned.append(((file, page), next(texts)))
        else:
            dropped = Cleaned("", reason, 0, (0,) * len(LINE_REASONS))
            cleaned.append(((file, page.without_text(reason)), dropped))
    return cleaned
