"""The order of the steps: clean a shard, decide on repeats, write the corpus (paper section 2.2).

1. `clean_shard` reads pages, drops those that cannot be read or are too long, and cleans the
   others. It writes a row for each, also for one that a rule drops: it may be the newest of its
   URL, and then no older copy takes its place.
2. `deduplicate` reads hashes alone and writes what each page loses.
3. `write_corpus` applies that, counts sentences again, detects the language where cleaning had no
   need of it or text went since, looks for bad words, writes Parquet files by language and split.

Pages of the corpus are in the order of the MD5 of their normalised URL, so its bytes depend on the
crawl and the settings only: not on the order of files, their division into jobs, or workers.

Source: released code, ``c4.C4._get_pages_pcollection``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from t5repro.c4 import tables
from t5repro.c4.corpus import KEPT, SELECTED, Selection, remove_others, write_files
from t5repro.c4.dedup import removals as decided
from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.dedup.spill import RowSpill, TableSpill, bucket_of, buckets_for, spill_folder
from t5repro.c4.malloc import return_freed_memory
from t5repro.c4.prefetch import overlapped
from t5repro.c4.samples import Samples
from t5repro.c4.text import rules as page_rules
from t5repro.c4.text.bad_words import LINE_LANGUAGE, Matcher, line_matcher, read_words
from t5repro.c4.text.language import Detected
from t5repro.c4.text.sentences import PARAMETER_FILES, Splitters
from t5repro.c4.wet import pages as wet_files
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.reader import CleanTally, NamedPage, Reader, groups, megabytes
from t5repro.c4.wet.url_filter import address_fault
from t5repro.config.sections.c4 import C4Stage, CleanSettings, CleanStage, DedupStage
from t5repro.config.withdrawn import read_pages
from t5repro.files import describe_file, write_manifest
from t5repro.progress import Progress, announce

Unit = Literal["three_sentence_span", "line"]
UNITS: tuple[Unit, ...] = ("three_sentence_span", "line")

CleanedPage = tuple[NamedPage, page_rules.Cleaned]

BUCKET_TEXT_BYTES = 8_000_000  # of pages sorted together


# Clean


def clean_shard(
    settings: CleanStage,
    *,
    wet: Sequence[Path],
    punkt: Mapping[str, Path],
    bad_words: Mapping[str, Path],
    output: Path,
    manifest: Path,
    withdrawn: Path | None = None,
    select: Mapping[str, Path] | None = None,
    names: Mapping[Path, str] | None = None,
    refused: Sequence[str] = (),
) -> None:
    """Clean the pages of some WET files and write a row for each.

    Args:
        settings: what the rule `c4_clean` reads.
        wet: WET files, in any order.
        punkt: language -> folder of its Punkt parameters.
        bad_words: language -> list of bad words.
        output: Parquet file to write, with the columns `tables.CLEANED`.
        manifest: manifest to write.
        withdrawn: list of withdrawn URLs and domains; None: there is none.
        select: the lists of `c4.select`, by the name of their setting.
        names: what the manifest calls WET files that lie under a temporary path.
        refused: listed paths that leave the folder of the crawl and are not read.

    Raises:
        CrawlError: a WET file cannot be read, or `c4.on_bad_record` is `fail` and one is damaged.
        RawDataError: the Punkt parameters or a list cannot be read.
    """
    rules = clean_rules(settings, punkt, bad_words, select=select, withdrawn=withdrawn)
    files = tables.in_order(wet)
    tally = CleanTally(settings.c4.on_bad_record)
    tally.add_refused(refused)
    with (
        Progress("c4_clean", total=megabytes(files), unit="MB") as progress,
        cleaned_writer(output, tally) as writer,
    ):
        batches = cleaned_batches(
            files,
            rules,
            tally,
            units=units_of(settings.c4.dedup.unit),
            limits=limits_of(settings),
            progress=progress,
        )
        for _ in overlapped(writer.write_table, tables.row_groups(batches)):
            pass
    named = names or {}
    write_clean_manifest(
        settings,
        wet=[
            {**describe_file(path), "path": named.get(path, path.as_posix())}
            for path in files
            if path.is_file()  # one that is missing was told of
        ],
        punkt=punkt,
        bad_words=bad_words,
        output=output,
        manifest=manifest,
        tally=tally,
        withdrawn=withdrawn,
        select=select,
    )


def cleaned_writer(output: Path, tally: CleanTally) -> AbstractContextManager[Any]:
    """Return a writer of rows of `tables.CLEANED`; `tally` goes into the file at the end."""
    return tables.written(
        output,
        tables.CLEANED,
        lambda: {
            tables.COUNTS_KEY: tally.read,
            tables.SAMPLES_KEY: tally.samples.to_json(),
            tables.FAULTS_KEY: tally.faults.to_json(),
        },
    )


def write_clean_manifest(
    settings: CleanStage,
    *,
    wet: Sequence[Mapping[str, Any]],
    punkt: Mapping[str, Path],
    bad_words: Mapping[str, Path],
    output: Path,
    manifest: Path,
    tally: CleanTally,
    withdrawn: Path | None = None,
    select: Mapping[str, Path] | None = None,
) -> None:
    """Write the manifest of a cleaned shard; `wet` are the described WET files, in order."""
    if wrong := tally.faults.summary():
        announce(f"c4_clean: skipped what is wrong with the crawl ({wrong}); see {manifest}")
    write_manifest(
        manifest,
        rule="c4_clean",
        settings=settings.model_dump(mode="json"),
        inputs=[
            *wet,
            *_punkt_files(punkt),
            *_line_lists(settings.c4.clean, bad_words),
            *([withdrawn] if withdrawn and read_pages(withdrawn) else []),
            *(path for _, path in sorted((select or {}).items())),
        ],
        outputs=[output],
        counters=tally.counters(),
    )


def clean_rules(
    settings: CleanStage,
    punkt: Mapping[str, Path],
    bad_words: Mapping[str, Path],
    select: Mapping[str, Path] | None = None,
    withdrawn: Path | None = None,
) -> page_rules.CleanRules:
    """Return the rules for one page, with the lists and parameters that they read.

    Raises:
        RawDataError: the Punkt parameters or a list cannot be read.
    """
    chosen = settings.c4.clean
    lists = _line_lists(chosen, bad_words)
    gone = read_pages(withdrawn)
    wanted = select or {}
    return page_rules.CleanRules(
        chosen,
        Splitters(punkt, only=settings.c4.punkt_language),
        _line_rule(lists),
        gone.holds if gone else None,
        address_fault(wanted.get("domains"), wanted.get("urls")),
    )


def limits_of(settings: CleanStage) -> Limits:
    """Return what one record may need."""
    chosen = settings.c4.limits
    return Limits(chosen.record_chars, chosen.member_bytes, chosen.gzip_expansion)


def units_of(unit: str) -> tuple[Unit, ...]:
    """Return the units of text to hash for `c4.dedup.unit`."""
    return tuple(known for known in UNITS if known == unit)


def cleaned_batches(
    files: Sequence[Path],
    rules: page_rules.CleanRules,
    tally: CleanTally,
    *,
    units: Sequence[Unit],
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """Yield rows of `tables.CLEANED`, with the bytes that the text of each had; count them.

    Args:
        files: WET files, in order.
        rules: for one page.
        tally: gets what is read and dropped.
        units: of text, to hash.
        limits: what one record may need; None: as the settings have it by default.
        progress: is told of bytes and pages.

    Raises:
        CrawlError: a file cannot be read, or a fault is to stop the run.
    """
    return_freed_memory()
    reader = Reader(
        rules.settings.max_page_chars,
        tally,
        limits=limits,
        address_fault=rules.address_fault,
        withdrawn=rules.withdrawn,
        progress=progress,
    )
    pages = groups(page for path in files for page in reader.usable_pages(path))
    cleaned = (clean_pages(group, rules) for group in pages)
    for group, languages in overlapped(partial(languages_of, rules=rules), cleaned):
        batch = batch_of(group, languages, rules, units=units)
        fates = zip(group, _fates(batch), strict=True)
        # The smallest rank first: what is offered later is refused without being made.
        for (page, _), fate in sorted(fates, key=lambda item: item[1][0]):
            _offer_cleaned(tally.samples, *page, *fate, rules)
        tally.cleaned.update(reason or KEPT for reason in batch.column("reason").to_pylist())
        tally.cleaned.update(_line_counts(batch))
        yield batch, [len(page.body) for (_, page), _ in group]


def clean_pages(pages: Sequence[NamedPage], rules: page_rules.CleanRules) -> list[CleanedPage]:
    """Clean pages, each with the name of its file."""
    return [
        (named, page_rules.clean_body(named[1].body, rules, named[1].other_ends)) for named in pages
    ]


def languages_of(
    pages: Sequence[CleanedPage], rules: page_rules.CleanRules
) -> list[Detected | None]:
    """Return the language of each page that stays, where it decides how the page is split."""
    staying = [cleaned.text for _, cleaned in pages if cleaned.reason is None]
    return rules.splitter.languages_of(staying)


def batch_of(
    pages: Sequence[CleanedPage],
    languages: Sequence[Detected | None],
    rules: page_rules.CleanRules,
    *,
    units: Sequence[Unit],
) -> pa.RecordBatch:
    """Return rows of `tables.CLEANED`; `languages`: of the pages that stay."""
    columns: list[list[Any]] = [[] for _ in tables.CLEANED.names]
    found = iter(languages)
    for (file, page), cleaned in pages:
        stays = cleaned.reason is None
        detected = next(found) if stays else None
        line_keys = dedup_spans.line_keys(cleaned.text) if stays and "line" in units else None
        spans: tuple[bytes | None, bytes | None] = (None, None)
        if stays and "three_sentence_span" in units:
            splitter = rules.splitter.of(detected and detected.language)
            spans = dedup_spans.span_units(cleaned.text, splitter)
        row = (
            file,
            page.record,
            page.url,
            page.timestamp,
            dedup_spans.digest(dedup_spans.normalize_url(page.url)),
            dedup_spans.digest(page.url),
            cleaned.reason,
            cleaned.text if stays else None,
            *(detected or (None, None)),
            cleaned.kept_lines,
            *cleaned.dropped_lines,
            line_keys,
            *spans,
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, tables.CLEANED, strict=True)
    ]
    return pa.record_batch(arrays, schema=tables.CLEANED)


def _line_lists(settings: CleanSettings, bad_words: Mapping[str, Path]) -> list[Path]:
    """Return the list that the rule of 2019 for a line reads, if it is chosen and there is one."""
    chosen = settings.enabled and settings.bad_words == "line_2019" and LINE_LANGUAGE in bad_words
    return [bad_words[LINE_LANGUAGE]] if chosen else []


def _line_rule(lists: Sequence[Path]) -> Matcher | None:
    return line_matcher(read_words(lists[0], LINE_LANGUAGE)) if lists else None


def _punkt_files(punkt: Mapping[str, Path]) -> list[Path]:
    return [folder / name for _, folder in sorted(punkt.items()) for name in PARAMETER_FILES]


def _fates(batch: pa.RecordBatch) -> Iterator[tuple[bytes, list[str]]]:
    """Yield, for each page, the MD5 of its URL and every reason that dropped something of it."""
    counted = [batch.column(f"lines_{reason}").to_pylist() for reason in page_rules.LINE_REASONS]
    for owner, reason, *lines in zip(
        batch.column("owner").to_pylist(), batch.column("reason").to_pylist(), *counted, strict=True
    ):
        reasons = [
            name for name, count in zip(page_rules.LINE_REASONS, lines, strict=True) if count
        ]
        yield owner, reasons if reason is None else [*reasons, reason]


def _offer_cleaned(
    samples: Samples,
    file: str,
    page: wet_files.Page,
    owner: bytes,
    reasons: Sequence[str],
    rules: page_rules.CleanRules,
) -> None:
    """Offer the first line that each reason dropped, or the page, as an example."""
    rank = (owner.hex(), file, page.record)
    wanted = [reason for reason in reasons if samples.wants(reason, rank)]
    if wanted:
        text = page.text
        lines = page_rules.first_dropped_lines(text, rules, wanted)
        for reason in wanted:
            samples.offer(reason, rank, page.url, lines.get(reason, text))


def _line_counts(rows: pa.RecordBatch) -> dict[str, int]:
    """Return the lines that each reason dropped, and those that stay."""
    names = ["kept_lines", *(f"lines_{reason}" for reason in page_rules.LINE_REASONS)]
    return {name: pc.sum(rows.column(name)).as_py() or 0 for name in names}


# Decide


def deduplicate(
    settings: DedupStage, *, cleaned: Sequence[Path], output: Path, manifest: Path
) -> None:
    """Decide which pages and which units of text are repeats, from hashes alone.

    Args:
        settings: what the rule `c4_dedup` reads.
        cleaned: what `clean_shard` wrote, in any order.
        output: Parquet file to write, with the columns `tables.DECISIONS`.
        manifest: manifest to write.

    Raises:
        ArtifactError: a file of `cleaned` is missing, damaged, or without keys of the unit.
    """
    return_freed_memory()
    shards = tables.in_order(cleaned)
    unit = settings.c4.dedup.unit
    counts = decided.dedup_counts()
    with spill_folder(output) as folder:
        with Progress("c4_dedup", total=2 * len(shards), unit="shards") as progress:
            urls = RowSpill(folder / "urls", dedup_spans.LOSER_ROW, len(shards))
            for rows in decided.spilled_urls(shards, folder, progress).drain():
                decided.add_losers(urls, dedup_spans.losing_urls(rows))
            losers = RowSpill(folder / "losers", dedup_spans.LOSER_ROW, len(shards))
            for rows in decided.spilled_units(shards, unit, urls, folder, progress).drain():
                counts["units"] += len(rows)
                decided.add_losers(losers, dedup_spans.losing_units(rows))
        with decided.decisions_writer(output, counts, tables.shard_list(shards)) as writer:
            for shard in range(len(shards)):
                batch = decided.decisions_of(shard, urls.read(shard), losers.read(shard))
                counts.update(decided.counts_of_decisions(batch))
                writer.write_batch(batch)
    write_dedup_manifest(settings, inputs=shards, output=output, manifest=manifest, counts=counts)


def write_dedup_manifest(
    settings: DedupStage,
    *,
    inputs: Sequence[Path | Mapping[str, Any]],
    output: Path,
    manifest: Path,
    counts: Mapping[str, int],
) -> None:
    """Write the manifest of deduplication; `inputs` are the cleaned files, in order."""
    write_manifest(
        manifest,
        rule="c4_dedup",
        settings=settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=[output],
        counters=counts,
    )


# Write


def write_corpus(
    settings: C4Stage,
    *,
    cleaned: Sequence[Path],
    decisions: Path,
    punkt: Mapping[str, Path],
    bad_words: Mapping[str, Path],
    folder: Path,
    manifest: Path,
) -> None:
    """Remove repeats, choose pages by language, drop those with bad words, write the corpus.

    Args:
        settings: what the rule `c4` reads.
        cleaned: what `clean_shard` wrote, in any order.
        decisions: what `deduplicate` wrote for them.
        punkt: language -> folder of its Punkt parameters.
        bad_words: language -> list of bad words.
        folder: where the Parquet files go, ``{language}-{split}-{i}-of-{n}.parquet``.
        manifest: manifest to write.

    Raises:
        CorpusError: a language of `c4.languages` has no page.
        ArtifactError: a file of an earlier step is missing or damaged.
    """
    return_freed_memory()
    shards = tables.in_order(cleaned)
    text_bytes = sum(
        tables.column_bytes(tables.opened(path, tables.CLEANED), "text") for path in shards
    )
    buckets = buckets_for(text_bytes, BUCKET_TEXT_BYTES)
    with spill_folder(manifest) as spilled:
        spill = TableSpill(spilled / "pages", SELECTED, buckets)
        splitters = Splitters(punkt, only=settings.c4.punkt_language)
        selection = Selection(settings, splitters, bad_words)
        pages = sum(tables.opened(path, tables.CLEANED).metadata.num_rows for path in shards)
        with Progress("c4", total=pages, unit="pages") as progress:
            for batch in selection.batches(shards, decisions, progress):
                high = batch.column("high").to_numpy()
                spill.add(batch, bucket_of(high, buckets))
        selection.check_languages()
        outputs = write_files(settings, spill, folder)
    write_corpus_manifest(
        settings,
        cleaned=shards,
        decisions=decisions,
        punkt=punkt,
        selection=selection,
        folder=folder,
        outputs=outputs,
        manifest=manifest,
    )


def write_corpus_manifest(
    settings: C4Stage,
    *,
    cleaned: Sequence[Path | Mapping[str, Any]],
    decisions: Path | Mapping[str, Any],
    punkt: Mapping[str, Path],
    selection: Selection,
    folder: Path,
    outputs: Sequence[Path],
    manifest: Path,
    described: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Remove files of an earlier run and write the manifest of the corpus.

    Args:
        settings: what the rule `c4` reads.
        cleaned: cleaned files, in order.
        decisions: of deduplication.
        punkt: folder of Punkt parameters, if there is one.
        selection: that chose the pages.
        folder: of the corpus.
        outputs: its files.
        manifest: to write.
        described: what is known of `outputs`, in their order; None: they are read for it.
    """
    remove_others(folder, outputs)
    write_manifest(
        manifest,
        rule="c4",
        settings=settings.model_dump(mode="json"),
        inputs=[*cleaned, decisions, *_punkt_files(punkt), *selection.lists],
        outputs=outputs if described is None else described,
        counters=selection.counters(),
    )
