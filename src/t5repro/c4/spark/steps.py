"""The steps of the corpus on a Spark cluster: same kernels, same bytes as on one machine.

Each function here does what its namesake in `build` does, with the same arguments and a session.
The driver plans, merges counts and writes manifests; it never holds a page's text. Kernels run in
`mapInArrow`; every file is written by one task, under a temporary name, from rows that Spark has
sorted, and is renamed when it is whole, so a task that is lost and done again changes nothing.

Inputs and outputs are paths that driver and workers share; WET files may also be fetched by the
workers from an address. `docs/run_on_spark.md` says how to start a cluster.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from t5repro.c4 import build, tables
from t5repro.c4.corpus import READ_COLUMNS, SPLITS, Selection, SplitWriter, file_names, file_numbers
from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.dedup.removals import KEY_COLUMNS, Losses, check_shards
from t5repro.c4.dedup.spill import spill_folder
from t5repro.c4.spark import dedup
from t5repro.c4.spark.dedup import LOSERS, PIECE, URL, URLS, DedupJob, Piece, pieces_of
from t5repro.c4.spark.frames import MOST_TASKS, big_batches, hashed, mapped, over, partitions_for
from t5repro.c4.spark.rows import (
    NOTES,
    Batches,
    Context,
    column,
    context_here,
    error_of,
    note_batch,
    notes_first,
    numbers_in,
    plain_schema,
    rows_of,
    runs_of,
    signed,
    with_columns,
)
from t5repro.c4.spark.session import notes_of
from t5repro.c4.text.sentences import Splitters
from t5repro.c4.wet.reader import CleanTally
from t5repro.config.sections.c4 import C4Stage, CleanStage, DedupStage
from t5repro.files import TEMPORARY_PREFIX, atomic_path, describe_file

Fetch = Callable[[str, Path], None]

PIECE_KEY_BYTES = 16_000_000  # keys of units compared together in a task: a million rows
PIECE_TEXT_BYTES = 32_000_000

CLEANED = plain_schema(tables.CLEANED, ("source", pa.int64()), ("size", pa.int64()))
PAGES = plain_schema(tables.CORPUS, ("file", pa.int64()), ("high", pa.int64()), ("low", pa.int64()))


# Clean


class CleanJob(NamedTuple):
    """What the kernels of cleaning need: the arguments of `clean_shard`."""

    settings: CleanStage
    wet: Sequence[Path]
    punkt: Mapping[str, Path]
    bad_words: Mapping[str, Path]
    withdrawn: Path | None
    addresses: Mapping[Path, str]
    fetch: Fetch | None
    select: Mapping[str, Path]


def clean_shard(
    spark: Any,
    settings: CleanStage,
    *,
    wet: Sequence[Path],
    punkt: Mapping[str, Path],
    bad_words: Mapping[str, Path],
    output: Path,
    manifest: Path,
    withdrawn: Path | None = None,
    addresses: Mapping[Path, str] | None = None,
    fetch: Fetch | None = None,
    refused: Sequence[str] = (),
    select: Mapping[str, Path] | None = None,
) -> None:
    """Clean the pages of some WET files, a file to a task, and write a row for each.

    Args:
        spark: session.
        settings: as all others, of `build.clean_shard`.
        wet: WET files, in any order.
        punkt: language -> folder of its Punkt parameters.
        bad_words: language -> list of bad words.
        output: Parquet file to write.
        manifest: manifest to write.
        withdrawn: list of withdrawn URLs and domains; None: there is none.
        addresses: where those of `wet` are to be fetched from that are not files here.
        fetch: brings what is at an address into a file; runs on the workers.
        refused: listed paths that leave the folder of the crawl and are not read.
        select: the lists of `c4.select`, by the name of their setting.

    Raises:
        CrawlError: a WET file cannot be read, or `c4.on_bad_record` is `fail` and one is damaged.
        RawDataError: a WET file cannot be fetched, or a list cannot be read.
        ClusterError: the cluster could not finish the job.
    """
    context = context_here()
    files = tables.in_order(wet)
    tally = CleanTally(settings.c4.on_bad_record)
    tally.add_refused(refused)
    job = CleanJob(
        settings, files, punkt, bad_words, withdrawn, addresses or {}, fetch, select or {}
    )
    cleaned = over(spark, len(files), partial(_clean, job=job), CLEANED, context)
    together = cleaned.repartition(1).sortWithinPartitions("source", "record")
    write = partial(_write_cleaned, output=output, begin=tally.to_json())
    described: dict[str, Mapping[str, Any]] = {}
    for note in notes_of(mapped(together, write, NOTES, context), "c4_clean"):
        tally.merge(note["tally"])
        if note["wet"] is not None:  # one that is missing was told of
            described[note["wet"]["path"]] = note["wet"]
    build.write_clean_manifest(
        settings,
        wet=[described[name] for path in files if (name := path.as_posix()) in described],
        punkt=punkt,
        bad_words=bad_words,
        output=output,
        manifest=manifest,
        tally=tally,
        withdrawn=withdrawn,
        select=select,
    )


def _clean(batches: Batches, job: CleanJob) -> Batches:
    """Clean WET files; yield rows `CLEANED`, and note what was counted in each file."""
    rules = build.clean_rules(
        job.settings, job.punkt, job.bad_words, select=job.select, withdrawn=job.withdrawn
    )
    for number in numbers_in(batches):
        path = job.wet[number]
        tally = CleanTally(job.settings.c4.on_bad_record)
        with _here(path, job) as local:
            for batch, sizes in build.cleaned_batches(
                [local],
                rules,
                tally,
                units=build.units_of(job.settings.c4.dedup.unit),
                limits=build.limits_of(job.settings),
            ):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                columns |= {"source": [number] * len(batch), "size": sizes}
                yield with_columns(CLEANED, columns)
            wet = describe_file(local) | {"path": path.as_posix()} if local.is_file() else None
        yield note_batch(CLEANED, {"tally": tally.to_json(), "wet": wet})


@contextlib.contextmanager
def _here(path: Path, job: CleanJob) -> Iterator[Path]:
    """Yield a path from which a WET file can be read, fetching it for the time of the task."""
    if path not in job.addresses or job.fetch is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="t5repro-wet-") as folder:
        local = Path(folder) / path.name
        job.fetch(job.addresses[path], local)
        yield local


def _write_cleaned(batches: Batches, output: Path, begin: Mapping[str, Any]) -> Batches:
    """Write cleaned pages, sorted by file and record, in the row groups of one machine."""
    notes, rows = notes_first(batches)
    if error := error_of(notes):
        yield note_batch(NOTES, error)
        return
    tally = CleanTally()
    tally.merge(begin)
    for note in notes:
        tally.merge(note["tally"])
    with build.cleaned_writer(output, tally) as writer:
        sized = ((rows_of(batch, tables.CLEANED), column(batch, "size").tolist()) for batch in rows)
        for group in tables.row_groups(sized):
            writer.write_table(group)
    yield from (note_batch(NOTES, note) for note in notes)


# Decide


def deduplicate(
    spark: Any,
    settings: DedupStage,
    *,
    cleaned: Sequence[Path],
    output: Path,
    manifest: Path,
    partitions: int = 0,
) -> None:
    """Decide which pages and which units of text are repeats, from hashes alone.

    Args:
        spark: session.
        settings: as all others, of `build.deduplicate`.
        cleaned: what `clean_shard` wrote, in any order.
        output: Parquet file to write.
        manifest: manifest to write.
        partitions: tasks of a sorting step; 0: by the number of rows and of cores.

    Raises:
        ArtifactError: a file of `cleaned` is missing, damaged, or without keys of the unit.
        ClusterError: the cluster could not finish the job.
    """
    from pyspark import StorageLevel

    context = context_here()
    shards = tables.in_order(cleaned)
    names = tables.shard_list(shards)
    unit = settings.c4.dedup.unit
    keys = KEY_COLUMNS.get(unit, "url_key")
    pieces = pieces_of(shards, (keys, "url_key"), PIECE_KEY_BYTES)
    pages = sum(count for _, count in names)
    units = sum(tables.column_bytes(tables.opened(path, tables.CLEANED), keys) for path in shards)
    job = DedupJob(pieces, unit, {})
    with big_batches(spark):
        noted = over(spark, len(pieces), partial(dedup.file_names, job=job), NOTES, context)
        found = notes_of(noted, "c4_dedup: files")
        files = sorted({name for note in found for name in note["files"]})
        job = job._replace(files={name: rank for rank, name in enumerate(files)})
        urls = over(spark, len(pieces), partial(dedup.first_urls, job=job), URLS, context)
        sort = partial(_losers, spark, context=context)
        older = sort(urls, URL, partitions_for(spark, partitions, pages))
        older = older.persist(StorageLevel.DISK_ONLY)
        losers = [older]
        if unit in KEY_COLUMNS:
            firsts = mapped(
                _by_piece(spark, len(pieces), losers),
                partial(dedup.first_units, job=job),
                dedup.UNITS,
                context,
            )
            rows = units // dedup_spans.KEY_BYTES
            losers.append(sort(firsts, dedup.UNIT, partitions_for(spark, partitions, rows)))
        decided = mapped(
            _by_piece(spark, len(pieces), losers),
            partial(dedup.decide, job=job),
            dedup.DECIDED,
            context,
        )
        together = decided.repartition(1).sortWithinPartitions("shard", "row")
        write = partial(dedup.write_decisions, output=output, shards=names)
        notes = notes_of(mapped(together, write, NOTES, context), "c4_dedup")
        older.unpersist()
    build.write_dedup_manifest(
        settings,
        inputs=hashed(spark, shards, context),
        output=output,
        manifest=manifest,
        counts=notes[0]["counts"],
    )


def _losers(spark: Any, rows: Any, kind: int, partitions: int, context: Context) -> Any:
    """Return the frame of all rows but the first of each key."""
    ordered = [name for name in rows.columns if name != "note"]
    by_key = rows.repartition(partitions, "key").sortWithinPartitions(*ordered)
    return mapped(by_key, partial(dedup.later_of_key, kind=kind), LOSERS, context)


def _by_piece(spark: Any, pieces: int, losers: Sequence[Any]) -> Any:
    """Return the losers of each piece in one partition, with a row for the piece itself."""
    from pyspark.sql import functions

    every = spark.range(0, pieces).select(
        functions.col("id").alias("piece"),
        functions.lit(PIECE).cast("bigint").alias("kind"),
        functions.lit(0).cast("bigint").alias("number"),
        functions.lit(None).cast("string").alias("note"),
    )
    for frame in losers:
        every = every.union(frame)
    # More partitions than pieces, so that few share one by the chance of their hash.
    partitions = min(max(2 * pieces, 1), MOST_TASKS)
    return every.repartition(partitions, "piece").sortWithinPartitions("piece", "kind", "number")


# Write


class CorpusJob(NamedTuple):
    """What the kernels of the last step need: the arguments of `write_corpus`."""

    settings: C4Stage
    pieces: Sequence[Piece]
    decisions: Path
    punkt: Mapping[str, Path]
    bad_words: Mapping[str, Path]

    def selection(self) -> Selection:
        """Return a selection that has counted nothing."""
        return Selection(
            self.settings,
            Splitters(self.punkt, only=self.settings.c4.punkt_language),
            self.bad_words,
        )


def write_corpus(
    spark: Any,
    settings: C4Stage,
    *,
    cleaned: Sequence[Path],
    decisions: Path,
    punkt: Mapping[str, Path],
    bad_words: Mapping[str, Path],
    folder: Path,
    manifest: Path,
    partitions: int = 0,
) -> None:
    """Remove repeats, choose pages by language, drop those with bad words, write the corpus.

    Args:
        spark: session.
        settings: as all others, of `build.write_corpus`.
        cleaned: what `clean_shard` wrote, in any order.
        decisions: what `deduplicate` wrote for them.
        punkt: language -> folder of its Punkt parameters.
        bad_words: language -> list of bad words.
        folder: where the Parquet files go.
        manifest: manifest to write.
        partitions: tasks of the sorting step; 0: one for each file of the corpus.

    Raises:
        CorpusError: a language of `c4.languages` has no page.
        ArtifactError: a file of an earlier step is missing or damaged.
        ClusterError: the cluster could not finish the job.
    """
    context = context_here()
    shards = tables.in_order(cleaned)
    check_shards(decisions, shards)
    job = CorpusJob(
        settings, pieces_of(shards, ("text",), PIECE_TEXT_BYTES), decisions, punkt, bad_words
    )
    selection = job.selection()
    selection.add_units(Losses(decisions))
    names = file_names(settings)
    _remove_left_over(manifest.parent)
    with spill_folder(manifest) as spilled:
        chosen = over(spark, len(job.pieces), partial(_select, job=job), PAGES, context)
        by_file = chosen.repartition(partitions or len(names), "file")
        ordered = by_file.sortWithinPartitions("file", "high", "low")
        write = partial(_write_files, names=names, folder=spilled)
        described: dict[str, Mapping[str, Any]] = {}
        for note in notes_of(mapped(ordered, write, NOTES, context), "c4"):
            if "file" in note:
                described[note["file"]] = note["described"]
            else:
                selection.merge(note["selection"])
        selection.check_languages()
        outputs = [folder / name for name in names]
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in zip(names, outputs, strict=True):
            if name not in described:
                described[name] = _write_pages([], spilled / name)
            os.replace(spilled / name, path)
    *inputs, decided = hashed(spark, [*shards, decisions], context)
    build.write_corpus_manifest(
        settings,
        cleaned=inputs,
        decisions=decided,
        punkt=punkt,
        selection=selection,
        folder=folder,
        outputs=outputs,
        manifest=manifest,
        described=[
            {**described[name], "path": path.as_posix()}
            for name, path in zip(names, outputs, strict=True)
        ],
    )


def _remove_left_over(folder: Path) -> None:
    """Delete what a driver that was killed had its workers write."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*-spill") if folder.is_dir() else ():
        shutil.rmtree(path, ignore_errors=True)


def _select(batches: Batches, job: CorpusJob) -> Batches:
    """Yield the pages that stay, columns `PAGES`, and note what was counted."""
    selection = job.selection()
    for number in numbers_in(batches):
        piece = job.pieces[number]
        parquet = tables.opened(piece.path, tables.CLEANED)
        if piece.first == 0:
            selection.add_shard(parquet, piece.path)
        losses = Losses(job.decisions, (piece.shard, piece.first))
        first = piece.first
        for batch in tables.batches(parquet, piece.path, READ_COLUMNS, groups=piece.groups):
            yield _with_file(selection.choose(piece.shard, first, batch, losses), job.settings)
            first += len(batch)
    yield note_batch(PAGES, {"selection": selection.to_json()})


def _with_file(batch: pa.RecordBatch, settings: C4Stage) -> pa.RecordBatch:
    """Return pages, columns `SELECTED`, with the number of the file that they belong to."""
    shards = settings.c4.output_shards
    high = batch.column("high").to_numpy()
    languages = {name: at for at, name in enumerate(settings.c4.languages)}
    language = np.array([languages[name] for name in batch.column("language").to_pylist()], int)
    held_out = batch.column("validation").to_numpy(zero_copy_only=False).astype(int)
    part = language * len(SPLITS) + held_out
    columns = {name: batch.column(name) for name in tables.CORPUS.names}
    return with_columns(
        PAGES,
        {
            "file": part * shards + file_numbers(high, shards),
            "high": signed(high),
            "low": signed(batch.column("low").to_numpy()),
            **columns,
        },
    )


def _write_files(batches: Batches, names: Sequence[str], folder: Path) -> Batches:
    """Write pages, sorted by file and key, into their files; note what each file is."""
    notes, rows = notes_first(batches)
    yield from (note_batch(NOTES, note) for note in notes)
    waiting = (run for batch in rows for run in runs_of(batch, "file"))
    number, batch = next(waiting, (-1, None))
    while batch is not None:
        with contextlib.ExitStack() as stack:
            path = folder / names[number]
            temporary = stack.enter_context(atomic_path(path))
            writer = SplitWriter([temporary])
            current = number
            while batch is not None and number == current:
                _append(writer, batch)
                number, batch = next(waiting, (-1, None))
            writer.close()
        yield note_batch(NOTES, {"file": path.name, "described": describe_file(path)})


def _append(writer: SplitWriter, batch: pa.RecordBatch) -> None:
    table = pa.Table.from_batches([rows_of(batch, tables.CORPUS)])
    writer.append(table, np.zeros(len(table), dtype=np.int64))


def _write_pages(batches: Sequence[pa.RecordBatch], path: Path) -> dict[str, Any]:
    with atomic_path(path) as temporary:
        writer = SplitWriter([temporary])
        for batch in batches:
            _append(writer, batch)
        writer.close()
    return describe_file(path)
