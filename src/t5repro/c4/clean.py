"""The rule `c4_clean`: clean the pages of one shard of the crawl (paper section 2.2).

Pages are read, cleaned, and written with the hashes that deduplication compares. A page that a rule
drops has a row too: if it is the newest of its URL, no older copy replaces it.

Source: released code, ``c4.C4._get_pages_pcollection``.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from t5repro.c4 import tables
from t5repro.c4.dedup.spans import Unit, hashed_unit, line_keys, span_keys
from t5repro.c4.keys import md5, normalize_url
from t5repro.c4.malloc import return_freed_memory
from t5repro.c4.page_signals import (
    NO_SIGNALS,
    clean_unreserved,
    limits_of,
    new_tally,
    signals_by_file,
    wat_files,
)
from t5repro.c4.prefetch import overlapped
from t5repro.c4.reasons import KEPT, LINE_REASONS
from t5repro.c4.samples import Samples
from t5repro.c4.text.fast_rules import clean_bodies
from t5repro.c4.text.language import Detected
from t5repro.c4.text.rules import Cleaned, CleanRules, first_dropped_lines, line_lists, load_rules
from t5repro.c4.text.sentences import Splitters, parameter_files
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.pages import Page, SignalsOf
from t5repro.c4.wet.reader import CleanTally, FilePage, Reader, groups, megabytes
from t5repro.c4.wet.url_filter import UrlReason, url_filter
from t5repro.config.withdrawn import WithdrawnPages
from t5repro.config.withdrawn import read_pages as read_withdrawn
from t5repro.data.crawl_lists import (
    CrawlFiles,
    LocalCopies,
    default_work,
    files_of_shard,
    local_copies,
    shard_of_crawl,
)
from t5repro.errors import ArtifactError
from t5repro.files import write_manifest
from t5repro.jobs.corpus import CleanJob
from t5repro.progress import Progress, announce

CleanedPage = tuple[FilePage, Cleaned]


class Cleaner(NamedTuple):
    """The rules of a job with their lists loaded.

    Attributes:
        rules: for the text of one page.
        unit: unit of text to hash; None hashes none.
        limits: maximum sizes of a record.
        reads_warc_1_1: whether files of WARC/1.1 are read.
        url_reason: returns the reason to skip a normalised URL; None reads every page.
        withdrawn: pages to drop by their URL or text; None without a list.
        drop: signals that drop a page (`c4.signals.drop`).
    """

    rules: CleanRules
    unit: Unit | None
    limits: Limits = Limits()
    reads_warc_1_1: bool = True
    url_reason: UrlReason | None = None
    withdrawn: WithdrawnPages | None = None
    drop: Sequence[str] = ()


def clean_shard(job: CleanJob) -> None:
    """Clean the pages of some WET files and write a row for each.

    Raises:
        CrawlError: a WET file cannot be read, or `c4.on_bad_record` is `fail` and one is damaged.
        RawDataError: a list or the Punkt parameters cannot be read, or a download fails.
    """
    cleaner = load_cleaner(job)
    c4, crawl = job.settings.c4, crawl_of(job)
    tally, total = start_tally(job, crawl), CleanTally()
    work = job.work or default_work(job.manifest)
    files: dict[str, Mapping[str, Any]] = {}
    for number, output in enumerate(job.pages):
        part = _files_of_output(job, crawl, number)
        # One output at a time, so the disk holds the files of one, not of the whole job.
        with (
            local_copies(part, work / output.stem) as wet,
            signals_by_file(c4, wat_files(job, part), work / f"{output.stem}-wat", tally) as (
                signals,
                wat,
            ),
        ):
            _clean_files(wet, output, cleaner, tally, signals)
            files |= {**wet.described(), **wat.described()}
        # Each output stores its own counts; the manifest has their sum.
        total.merge(tally.to_json())
        tally = new_tally(c4)
    # Downloads outlive a failed job, so that a rerun does not fetch them again.
    shutil.rmtree(work, ignore_errors=True)
    write_clean_manifest(job, crawl, files, total)


def _clean_files(
    copies: LocalCopies,
    output: Path,
    cleaner: Cleaner,
    tally: CleanTally,
    signals: Iterator[SignalsOf | None],
) -> None:
    """Write the cleaned pages of WET files into one file."""
    with (
        Progress("c4_clean", total=megabytes(copies), unit="MB") as progress,
        cleaned_writer(output, tally) as writer,
    ):
        files = copies.as_they_arrive()
        batches = cleaned_batches(files, cleaner, tally, signals=signals, progress=progress)
        # A thread compresses and writes a row group while the next one is cleaned.
        for _ in overlapped(writer.write_table, tables.row_groups(batches)):
            pass


def crawl_of(job: CleanJob) -> CrawlFiles:
    """Return the WET files of a job.

    Raises:
        RawDataError: the path list is empty or cannot be read.
    """
    c4 = job.settings.c4
    return shard_of_crawl(
        job.wet, job.path_list, prefix=c4.crawl_prefix, shard=job.shard, shards=c4.clean_shards
    )


def _files_of_output(job: CleanJob, files: CrawlFiles, number: int) -> CrawlFiles:
    """Return the WET files of `files` that output `number` is written from."""
    return files.only(*files_of_shard(files.paths, number, len(job.pages)))


def load_cleaner(job: CleanJob) -> Cleaner:
    """Load the lists and parameters of a job.

    Raises:
        RawDataError: a list or the Punkt parameters cannot be read.
    """
    c4 = job.settings.c4
    withdrawn = read_withdrawn(job.withdrawn)
    return Cleaner(
        load_rules(c4.clean, Splitters(job.punkt, only=c4.punkt_language), job.bad_words),
        hashed_unit(c4.dedup),
        limits_of(c4),
        c4.warc_1_1 == "read",
        url_filter(job.select.get("domains"), job.select.get("urls")),
        withdrawn or None,
        c4.signals.drop,
    )


def start_tally(job: CleanJob, crawl: CrawlFiles) -> CleanTally:
    """Return the counts of a job before it reads a file.

    Raises:
        ArtifactError: the number of outputs is not `c4.clean_parts`.
        CrawlError: a path of the list is refused, and `c4.on_bad_record` is `fail`.
    """
    if len(job.pages) != (count := job.settings.c4.clean_parts):
        raise ArtifactError(
            f"c4_clean has {len(job.pages)} files to write, but c4.clean_parts is {count}; pass "
            "as many to --output"
        )
    tally = new_tally(job.settings.c4)
    tally.add_refused(crawl.refused)
    return tally


def cleaned_writer(output: Path, tally: CleanTally) -> AbstractContextManager[Any]:
    """Return a writer of rows of `tables.CLEANED`; it stores `tally` in the file at the end."""
    return tables.atomic_writer(
        output,
        tables.CLEANED,
        lambda: {
            tables.COUNTS_KEY: tally.read,
            tables.SAMPLES_KEY: tally.samples.to_json(),
            tables.FAULTS_KEY: tally.faults.to_json(),
            **({tables.SIGNALS_KEY: tally.signals} if tally.signals else {}),
        },
    )


def write_clean_manifest(
    job: CleanJob, crawl: CrawlFiles, files: Mapping[str, Mapping[str, Any]], tally: CleanTally
) -> None:
    """Write the manifest of a cleaning job.

    Args:
        job: the job.
        crawl: its WET files.
        files: path -> description of each WET and WAT file that exists (`files.describe_file`).
        tally: counts of all files.
    """
    names = [path.as_posix() for path in (*crawl.paths, *wat_files(job, crawl).paths)]
    if faults := tally.faults.summary():
        announce(f"c4_clean: faults of the crawl ({faults}); see {job.manifest}")
    # An empty list is no input: a run without withdrawals keeps its manifest.
    withdrawn = [job.withdrawn] if job.withdrawn and read_withdrawn(job.withdrawn) else []
    write_manifest(
        job.manifest,
        rule="c4_clean",
        settings=job.settings.model_dump(mode="json"),
        inputs=[
            *(files[name] for name in names if name in files),
            *parameter_files(job.punkt),
            *line_lists(job.settings.c4.clean, job.bad_words),
            *withdrawn,
            *(path for _, path in sorted(job.select.items())),
        ],
        outputs=job.pages,
        counters=tally.counters(),
    )


def cleaned_batches(
    files: Iterable[Path],
    cleaner: Cleaner,
    tally: CleanTally,
    *,
    signals: Iterator[SignalsOf | None] = NO_SIGNALS,
    progress: Progress | None = None,
) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """Yield rows of `tables.CLEANED`, with the bytes of each page's text before cleaning.

    Args:
        files: WET files, ordered.
        cleaner: the rules.
        tally: counts pages, lines, signals and faults.
        signals: returns the signals of the pages of each file.
        progress: shows bytes and pages.

    Raises:
        CrawlError: a file cannot be read, or a fault stops the run.
    """
    return_freed_memory()
    rules = cleaner.rules
    reader = Reader(
        rules.settings.max_page_chars,
        tally,
        limits=cleaner.limits,
        reads_warc_1_1=cleaner.reads_warc_1_1,
        url_reason=cleaner.url_reason,
        withdrawn=cleaner.withdrawn,
        progress=progress,
    )
    read = (
        page
        for path, signals_of in zip(files, signals, strict=False)
        for page in reader.usable_pages(path, signals_of)
    )
    clean = partial(clean_unreserved, drop=cleaner.drop) if cleaner.drop else clean_pages
    # Generators all the way: memory has a few groups of pages, whatever the size of the crawl.
    # A thread cleans a group, mostly in operations on columns, while the next one is read.
    cleaned = (pages for _, pages in overlapped(partial(clean, rules=rules), groups(read)))
    yield from batches_of(cleaned, partial(languages_of, rules=rules), cleaner, tally)


def batches_of(
    cleaned: Iterable[list[CleanedPage]],
    languages: Callable[[list[CleanedPage]], list[Detected | None]],
    cleaner: Cleaner,
    tally: CleanTally,
) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """Yield rows of `tables.CLEANED`, with the bytes of each page's text before cleaning.

    Args:
        cleaned: groups of cleaned pages.
        languages: returns the language of each kept page of a group.
        cleaner: the rules.
        tally: counts pages and lines.
    """
    rules = cleaner.rules
    # Languages are detected in a thread while the next group is read and cleaned.
    for group, detected in overlapped(languages, cleaned):
        batch = to_batch(group, detected, cleaner)
        # The smallest rank first: examples offered later are refused before their lines are found.
        offers = zip(group, _reasons_by_page(batch), strict=True)
        for (file_page, _), (url_md5, reasons) in sorted(offers, key=lambda offer: offer[1][0]):
            _offer_samples(tally.samples, *file_page, url_md5, reasons, rules)
        tally.cleaned.update(reason or KEPT for reason in batch.column("reason").to_pylist())
        tally.cleaned.update(_line_counts(batch))
        yield batch, [len(page.body) for (_, page), _ in group]


def clean_pages(pages: Sequence[FilePage], rules: CleanRules) -> list[CleanedPage]:
    """Clean pages, each with the name of its file."""
    return list(zip(pages, clean_bodies([page for _, page in pages], rules), strict=True))


def languages_of(pages: Sequence[CleanedPage], rules: CleanRules) -> list[Detected | None]:
    """Return the language of each kept page, or None if Punkt does not need it."""
    texts = [cleaned.text for _, cleaned in pages if cleaned.reason is None]
    return rules.splitter.languages_of(texts)


def to_batch(
    pages: Sequence[CleanedPage], languages: Sequence[Detected | None], cleaner: Cleaner
) -> pa.RecordBatch:
    """Return the rows of `tables.CLEANED` of some pages.

    Args:
        pages: cleaned pages.
        languages: result of `languages_of`, one for each kept page.
        cleaner: the rules.
    """
    columns: list[list[Any]] = [[] for _ in tables.CLEANED.names]
    remaining_languages = iter(languages)
    for (file, page), cleaned in pages:
        # Dropped pages have a row too: a newer copy without text still replaces an older one.
        is_kept = cleaned.reason is None
        detected = next(remaining_languages) if is_kept else None
        # Keys are computed here, in parallel over the shards, so that deduplication reads no text.
        lines = line_keys(cleaned.text) if is_kept and cleaner.unit == "line" else None
        spans: tuple[bytes | None, bytes | None] = (None, None)
        if is_kept and cleaner.unit == "three_sentence_span":
            splitter = cleaner.rules.splitter.of(detected and detected.language)
            spans = span_keys(cleaned.text, splitter)
        row = (
            file,
            page.record,
            page.url,
            page.timestamp,
            md5(normalize_url(page.url)),
            md5(page.url),
            cleaned.reason,
            cleaned.text if is_kept else None,
            *(detected or (None, None)),
            cleaned.kept_lines,
            *cleaned.dropped_lines,
            lines,
            *spans,
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, tables.CLEANED, strict=True)
    ]
    return pa.record_batch(arrays, schema=tables.CLEANED)


def _reasons_by_page(batch: pa.RecordBatch) -> Iterator[tuple[bytes, list[str]]]:
    """Yield, for each page, the MD5 of its URL and all reasons that dropped a part of it."""
    counts = [batch.column(f"lines_{reason}").to_pylist() for reason in LINE_REASONS]
    for url_md5, reason, *lines in zip(
        batch.column("owner").to_pylist(), batch.column("reason").to_pylist(), *counts, strict=True
    ):
        reasons = [name for name, count in zip(LINE_REASONS, lines, strict=True) if count]
        yield url_md5, reasons if reason is None else [*reasons, reason]


def _offer_samples(
    samples: Samples,
    file: str,
    page: Page,
    url_md5: bytes,
    reasons: Sequence[str],
    rules: CleanRules,
) -> None:
    """Offer, for each reason, the first line that it dropped, or else the page, as an example."""
    # A hash decides which pages become examples, so the number of workers does not.
    rank = (url_md5.hex(), file, page.record)
    missing = [reason for reason in reasons if samples.wants(reason, rank)]
    if missing:
        text = page.text
        # Cleaning keeps no dropped lines, so they are found again for the few pages that become
        # examples.
        lines = first_dropped_lines(text, rules, missing)
        for reason in missing:
            samples.offer(reason, rank, page.url, lines.get(reason, text))


def _line_counts(rows: pa.RecordBatch) -> dict[str, int]:
    """Return the number of kept lines and of dropped lines for each reason."""
    return {name: pc.sum(rows.column(name)).as_py() or 0 for name in tables.LINE_COUNTS}
