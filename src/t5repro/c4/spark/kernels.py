"""The code of the rules `c4_clean` and `c4` that runs on the workers.

A kernel turns Arrow batches into Arrow batches (`rows`). Its keyword arguments are sent to the
workers with it.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from t5repro.c4 import clean, tables
from t5repro.c4.dedup.removals import Removals
from t5repro.c4.page_filter import READ_COLUMNS
from t5repro.c4.page_signals import new_tally, signals_by_file, wat_files
from t5repro.c4.spark.dedup import Piece
from t5repro.c4.spark.rows import (
    NO_VALUE,
    NOTES,
    Batches,
    cast_to,
    column,
    groups_of,
    note_batch,
    signed,
    spark_schema,
    task_numbers,
    with_columns,
)
from t5repro.c4.wet.reader import CleanTally
from t5repro.c4.write import SplitWriter, file_numbers, page_filter_of
from t5repro.config.corpus_files import SPLITS
from t5repro.config.sections.c4 import C4Stage
from t5repro.data.crawl_lists import CrawlFiles, Fetch, local_copies
from t5repro.files import atomic_path, describe_file
from t5repro.jobs.corpus import CleanJob, CorpusJob

CLEANED = spark_schema(
    tables.CLEANED, ("output", pa.int64()), ("source", pa.int64()), ("size", pa.int64())
)
PAGES = spark_schema(tables.CORPUS, ("file", pa.int64()), ("high", pa.int64()), ("low", pa.int64()))


class CleanTask(NamedTuple):
    """The arguments of `clean_files`.

    Attributes:
        job: job of `c4_clean`.
        crawl: its WET files.
        fetch: downloads a WET file to a worker.
    """

    job: CleanJob
    crawl: CrawlFiles
    fetch: Fetch


def clean_files(batches: Batches, task: CleanTask) -> Batches:
    """Clean WET files by their numbers; yield rows `CLEANED` and note the counts."""
    cleaner = clean.load_cleaner(task.job)
    for number in task_numbers(batches):
        path = task.crawl.paths[number]
        output = number % len(task.job.pages)  # as `files_of_shard` divides them
        c4, crawl = task.job.settings.c4, task.crawl.only(path)
        tally = new_tally(c4)
        # Deleted before the next one is fetched: a task has one WET file on the worker's disk.
        with (
            tempfile.TemporaryDirectory(prefix="t5repro-wet-", dir=_local_folder()) as scratch,
            local_copies(crawl, Path(scratch, "wet"), task.fetch) as wet,
            signals_by_file(
                c4, wat_files(task.job, crawl), Path(scratch, "wat"), tally, task.fetch
            ) as (signals, wat),
        ):
            files = wet.as_they_arrive()
            for batch, sizes in clean.cleaned_batches(files, cleaner, tally, signals=signals):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                keys = {"output": output, "source": number}
                columns |= {name: [key] * len(batch) for name, key in keys.items()}
                columns |= {"size": sizes}
                yield with_columns(CLEANED, columns)
            # Hashed before the copies are deleted; a file that could not be fetched has no hash.
            described = {**wet.described(), **wat.described()}
        yield note_batch(CLEANED, {"tally": tally.to_json(), "files": described}, output=output)


def _local_folder() -> str | None:
    """Return a folder that Spark deletes with the executor, even a killed one; else None."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return folder if os.path.isdir(folder) else None


def write_cleaned(
    batches: Batches, names: Sequence[str], folder: Path, initial_counts: Mapping[str, Any]
) -> Batches:
    """Write the cleaned pages of each output that arrives, in the row groups of one machine.

    Args:
        batches: rows `CLEANED`, sorted by output, file and record, the notes of `clean_files` for
            an output before its rows.
        names: names of the outputs of the job.
        folder: receives them.
        initial_counts: `CleanTally.to_json` before the first file.
    """
    for output, notes, rows in groups_of(batches, "output"):
        yield from (note_batch(NOTES, note) for note in notes)
        if output == NO_VALUE:
            continue
        tally = CleanTally()
        # The counts before the first file belong to one output only, or they would be added twice.
        for counts in ([initial_counts] if output == 0 else []) + [note["tally"] for note in notes]:
            tally.merge(counts)
        with clean.cleaned_writer(folder / names[output], tally) as writer:
            sized = (
                (cast_to(batch, tables.CLEANED), column(batch, "size").tolist()) for batch in rows
            )
            for group in tables.row_groups(sized):
                writer.write_table(group)


def filter_pages(batches: Batches, job: CorpusJob, pieces: Sequence[Piece]) -> Batches:
    """Yield the selected pages of pieces by their numbers, columns `PAGES`; note counts."""
    page_filter = page_filter_of(job)
    for number in task_numbers(batches):
        piece = pieces[number]
        parquet = tables.open_parquet(piece.path, tables.CLEANED)
        # The counts of cleaning are in the file's metadata: only its first piece adds them.
        if piece.first_row == 0:
            page_filter.add_shard(parquet, piece.path)
        removals = Removals(job.decisions / piece.path.name, piece.first_row)
        row = piece.first_row
        for batch in tables.read_batches(parquet, piece.path, READ_COLUMNS, groups=piece.groups):
            selected = page_filter.apply(row, batch, removals)
            yield _file_numbered(selected, job.settings)
            row += len(batch)
    yield note_batch(PAGES, {"counts": page_filter.counts.to_json()})


def _file_numbered(batch: pa.RecordBatch, settings: C4Stage) -> pa.RecordBatch:
    """Return pages, columns `page_filter.SELECTED`, with the number of their file."""
    shards = settings.c4.output_shards
    # The high half of a page's key decides its file, the rest its place there.
    high = batch.column("high").to_numpy()
    languages = {name: index for index, name in enumerate(settings.c4.languages)}
    language = np.array([languages[name] for name in batch.column("language").to_pylist()], int)
    validation = batch.column("validation").to_numpy(zero_copy_only=False).astype(int)
    # The order of `corpus_files`: language, split, number.
    first_file = (language * len(SPLITS) + validation) * shards
    columns = {name: batch.column(name) for name in tables.CORPUS.names}
    return with_columns(
        PAGES,
        {
            "file": first_file + file_numbers(high, shards),
            "high": signed(high),
            "low": signed(batch.column("low").to_numpy()),
            **columns,
        },
    )


def write_files(batches: Batches, names: Sequence[str], folder: Path) -> Batches:
    """Write pages, ordered by file and key, into their files; note a description of each file."""
    for number, notes, rows in groups_of(batches, "file"):
        yield from (note_batch(NOTES, note) for note in notes)
        if number == NO_VALUE:
            continue
        path = folder / names[number]
        with atomic_path(path) as temporary:
            writer = SplitWriter([temporary])
            for batch in rows:
                table = pa.Table.from_batches([cast_to(batch, tables.CORPUS)])
                writer.append(table, np.zeros(len(table), dtype=np.int64))
            writer.close()
        # Described by the task that wrote it: the driver would read the corpus again.
        yield note_batch(NOTES, {"file": path.name, "description": describe_file(path)})


def write_empty_file(path: Path) -> dict[str, Any]:
    """Write a file of the corpus without pages and return its description."""
    with atomic_path(path) as temporary:
        SplitWriter([temporary]).close()
    return describe_file(path)
