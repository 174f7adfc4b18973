"""The rules `c4_clean`, `c4_dedup` and `c4` on a Spark cluster, with the bytes of one machine.

Each function has the name and the job value of the function for one machine (`clean`,
`deduplicate`, `write`), and a session. The driver divides the work, merges counts and writes
manifests; it never has the text of a page in memory. Kernels run in `mapInArrow`. Every file is
written by one task, under a temporary name, from rows that Spark has sorted, and renamed when it is
complete, so repeating a lost task does not change the result.

Inputs and outputs are paths on storage that driver and workers share; workers may also download
WET files. `docs/run_on_spark.md` explains how to start a cluster.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.c4 import clean, tables, write
from t5repro.c4.dedup import removals
from t5repro.c4.dedup.key_rows import KEY_COLUMNS
from t5repro.c4.dedup.removals import read_counts
from t5repro.c4.dedup.spill import spill_folder
from t5repro.c4.deduplicate import cleaned_files, publish_decisions, write_dedup_manifest
from t5repro.c4.keys import KEY_BYTES
from t5repro.c4.page_signals import new_tally
from t5repro.c4.spark import dedup, kernels
from t5repro.c4.spark.dedup import PIECE, URL, PieceReader, divide
from t5repro.c4.spark.frames import (
    MAX_TASKS,
    from_numbers,
    hash_files,
    large_batches,
    map_frame,
    partitions_for,
)
from t5repro.c4.spark.rows import NOTES, Context, driver_context
from t5repro.c4.spark.session import collect_notes
from t5repro.config.sections.c4 import corpus_files
from t5repro.data.crawl_lists import Fetch
from t5repro.data.transfer import fetch_address
from t5repro.files import by_name
from t5repro.jobs.corpus import CleanJob, CorpusJob, DedupJob

PIECE_KEY_BYTES = 16_000_000  # keys compared in one task: a million units
PIECE_TEXT_BYTES = 32_000_000


def clean_shard(spark: Any, job: CleanJob, fetch: Fetch = fetch_address) -> None:
    """Clean the pages of some WET files, one file per task; another task writes each output.

    Args:
        spark: session.
        job: the job.
        fetch: downloads a WET file to a worker.

    Raises:
        CrawlError: a WET file cannot be read, or `c4.on_bad_record` is `fail` and one is damaged.
        RawDataError: a WET file cannot be downloaded, or a list cannot be read.
        ClusterError: the cluster could not finish the job.
    """
    context = driver_context()
    crawl = clean.crawl_of(job)
    tally = clean.start_tally(job, crawl)
    task = kernels.CleanTask(job, crawl, fetch)
    kernel = partial(kernels.clean_files, task=task)
    cleaned = from_numbers(spark, len(crawl.paths), kernel, kernels.CLEANED, context)
    by_output = cleaned.repartition(_spread_tasks(len(job.pages)), "output")
    ordered = by_output.sortWithinPartitions("output", "source", "record")
    names = [path.name for path in job.pages]
    with spill_folder(job.manifest) as folder:
        writer = partial(
            kernels.write_cleaned, names=names, folder=folder, initial_counts=tally.to_json()
        )
        files: dict[str, Mapping[str, Any]] = {}
        for number, name in enumerate(names[len(crawl.paths) :], len(crawl.paths)):
            # An output without a WET file has no task.
            empty = tally if number == 0 else new_tally(job.settings.c4)
            with clean.cleaned_writer(folder / name, empty):
                pass
        for note in collect_notes(map_frame(ordered, writer, NOTES, context), "c4_clean"):
            tally.merge(note["tally"])
            files |= note["files"]
        for path in job.pages:
            os.replace(folder / path.name, path)
    clean.write_clean_manifest(job, crawl, files, tally)


def deduplicate(spark: Any, job: DedupJob, *, partitions: int = 0) -> None:
    """Decide which pages and which units of text are duplicates.

    Args:
        spark: session.
        job: the job.
        partitions: tasks of a sorting step; 0 derives them from the numbers of rows and cores.

    Raises:
        ArtifactError: a cleaned file is missing, damaged, or has no keys of the unit.
        ClusterError: the cluster could not finish the job.
    """
    from pyspark import StorageLevel

    context = driver_context()
    shards = cleaned_files(job)
    names = [tables.name_and_pages(path) for path in shards]
    unit = job.settings.c4.dedup.unit
    keys = KEY_COLUMNS.get(unit, "url_key")
    pieces = divide(shards, (keys, "url_key"), PIECE_KEY_BYTES)
    with large_batches(spark), spill_folder(job.manifest) as folder:
        reader = PieceReader(pieces, unit, _file_ranks(spark, pieces, context))
        kernel = partial(dedup.first_urls, reader=reader)
        urls = from_numbers(spark, len(pieces), kernel, dedup.URLS, context)
        pages = sum(count for _, count in names)
        older = _later_copies(urls, URL, partitions_for(spark, partitions, pages), context)
        # Read twice below, by the units and by the decisions; on disk, since memory is for sorting.
        older = older.persist(StorageLevel.DISK_ONLY)
        copies = [older]
        # Units of later copies of a page do not count: URLs are decided first.
        if unit in KEY_COLUMNS:
            firsts = map_frame(
                _by_piece(spark, len(pieces), copies),
                partial(dedup.first_units, reader=reader),
                dedup.UNITS,
                context,
            )
            units = sum(tables.column_bytes(path, keys) for path in shards) // KEY_BYTES
            tasks = partitions_for(spark, partitions, units)
            copies.append(_later_copies(firsts, dedup.UNIT, tasks, context))
        decisions = map_frame(
            _by_piece(spark, len(pieces), copies),
            partial(dedup.decide, reader=reader),
            dedup.DECISIONS,
            context,
        )
        by_shard = decisions.repartition(_spread_tasks(len(shards)), "shard")
        ordered = by_shard.sortWithinPartitions("shard", "row")
        writer = partial(dedup.write_decisions, shards=names, folder=folder)
        notes = collect_notes(map_frame(ordered, writer, NOTES, context), "c4_dedup")
        older.unpersist()  # the notes have come, so every task is done
        counts = sum((Counter(note["counts"]) for note in notes), removals.zero_counts())
        for number in set(range(len(shards))) - {note["shard"] for note in notes}:
            # A cleaned file without pages has no piece.
            removals.write_decisions(folder / shards[number].name, names[number], {}, ())
        publish_decisions(job, folder)
    write_dedup_manifest(job, hash_files(spark, shards, context), counts)


def _spread_tasks(count: int) -> int:
    """Return a number of tasks for files or pieces: more, so that few get two by chance."""
    return min(max(2 * count, 1), MAX_TASKS)


def sha256_of_files(spark: Any, paths: Sequence[Path]) -> list[str]:
    """Return the SHA-256 of files, which the workers read."""
    return [entry["sha256"] for entry in hash_files(spark, paths, driver_context())]


def _file_ranks(spark: Any, pieces: Sequence[dedup.Piece], context: Context) -> dict[str, int]:
    """Return the rank of each WET file by name, which resolves ties between pages."""
    kernel = partial(dedup.file_names, reader=PieceReader(pieces, "off", {}))
    frame = from_numbers(spark, len(pieces), kernel, NOTES, context)
    notes = collect_notes(frame, "c4_dedup: files")
    names = sorted({name for note in notes for name in note["files"]})
    return {name: rank for rank, name in enumerate(names)}


def _later_copies(rows: Any, kind: int, partitions: int, context: Context) -> Any:
    """Return the frame of all rows but the first of each key."""
    order = [name for name in rows.columns if name != "note"]
    # All rows of a key in one task, the first in the order of one machine at their head.
    by_key = rows.repartition(partitions, "key").sortWithinPartitions(*order)
    return map_frame(by_key, partial(dedup.later_of_key, kind=kind), dedup.COPIES, context)


def _by_piece(spark: Any, pieces: int, copies: Sequence[Any]) -> Any:
    """Return the later copies of each piece in one partition, with a row for the piece itself."""
    from pyspark.sql import functions

    # The row for the piece makes sure that a piece without copies is processed too.
    rows = spark.range(0, pieces).select(
        functions.col("id").alias("piece"),
        functions.lit(PIECE).cast("bigint").alias("kind"),
        functions.lit(0).cast("bigint").alias("number"),
        functions.lit(None).cast("string").alias("note"),
    )
    for frame in copies:
        rows = rows.union(frame)
    return rows.repartition(_spread_tasks(pieces), "piece").sortWithinPartitions(
        "piece", "kind", "number"
    )


def write_corpus(spark: Any, job: CorpusJob, *, partitions: int = 0) -> None:
    """Write the corpus by language and split.

    Args:
        spark: session.
        job: the job.
        partitions: tasks of the sorting step; 0 uses one for each file of the corpus.

    Raises:
        CorpusError: a language of `c4.languages` has no page.
        ArtifactError: a file of an earlier rule is missing or damaged.
        ClusterError: the cluster could not finish the job.
    """
    context = driver_context()
    shards = by_name(job.cleaned)
    pieces = divide(shards, ("text",), PIECE_TEXT_BYTES)
    page_filter = write.page_filter_of(job)
    page_filter.counts.units.update(read_counts(job.decisions, shards))
    names = corpus_files(job.settings.c4)
    with spill_folder(job.manifest) as folder:
        kernel = partial(kernels.filter_pages, job=job, pieces=pieces)
        selected = from_numbers(spark, len(pieces), kernel, kernels.PAGES, context)
        by_file = selected.repartition(partitions or len(names), "file")
        ordered = by_file.sortWithinPartitions("file", "high", "low")
        writer = partial(kernels.write_files, names=names, folder=folder)
        descriptions: dict[str, Mapping[str, Any]] = {}
        for note in collect_notes(map_frame(ordered, writer, NOTES, context), "c4"):
            if "file" in note:
                descriptions[note["file"]] = note["description"]
            else:
                page_filter.counts.merge(note["counts"])
        # Before a file has its final name: a language without a page is a fault.
        page_filter.check_languages()
        job.folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            # A file without pages has no task.
            if name not in descriptions:
                descriptions[name] = kernels.write_empty_file(folder / name)
            os.replace(folder / name, job.folder / name)
    outputs = [{**descriptions[name], "path": (job.folder / name).as_posix()} for name in names]
    inputs = hash_files(spark, write.inputs_of(job), context)
    write.write_corpus_manifest(job, inputs, outputs, page_filter)
