"""The rule `c4`: remove duplicates, filter by language and bad words, write the corpus.

Pages are ordered by the MD5 of their normalised URL, so the bytes of the corpus depend on the crawl
and the settings only: not on the order of files, their division into jobs, or workers.
"""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.dedup.spill import TableSpill, bucket_count, bucket_of, spill_folder
from t5repro.c4.malloc import return_freed_memory
from t5repro.c4.page_filter import SELECTED, PageFilter
from t5repro.c4.text.sentences import parameter_files
from t5repro.config.corpus_files import SPLITS, corpus_file
from t5repro.config.sections.c4 import C4Stage, corpus_files
from t5repro.files import atomic_path, by_name, write_manifest
from t5repro.jobs.corpus import CorpusJob
from t5repro.progress import Progress

GROUP_PAGES = 512  # pages of a row group
BUCKET_TEXT_BYTES = 8_000_000  # text of the pages sorted together
MAX_COLUMN_BYTES = 1 << 30  # of a column of them; Arrow can address 2 GB in one array of strings
KEY_LIMIT = 1 << 64


def inputs_of(job: CorpusJob) -> list[Path]:
    """Return the cleaned files and the decisions about each, ordered."""
    shards = by_name(job.cleaned)
    return [*shards, *(job.decisions / path.name for path in shards)]


def page_filter_of(job: CorpusJob) -> PageFilter:
    """Return a new filter with all counts at zero.

    Raises:
        RawDataError: the Punkt parameters or a list cannot be read.
    """
    return PageFilter(job.settings, job.punkt, job.bad_words)


def write_corpus(job: CorpusJob) -> None:
    """Write the corpus by language and split.

    Raises:
        CorpusError: a language of `c4.languages` has no page.
        ArtifactError: a file of an earlier rule is missing or damaged.
    """
    return_freed_memory()
    shards = by_name(job.cleaned)
    text_bytes = sum(tables.column_bytes(path, "text") for path in shards)
    buckets = bucket_count(text_bytes, BUCKET_TEXT_BYTES)
    with spill_folder(job.manifest) as folder:
        spill = TableSpill(folder / "pages", SELECTED, buckets)
        page_filter = page_filter_of(job)
        pages = sum(map(tables.page_count, shards))
        with Progress("c4", total=pages, unit="pages") as progress:
            for batch in page_filter.batches(shards, job.decisions, progress):
                spill.add(batch, bucket_of(batch.column("high").to_numpy(), buckets))
        page_filter.check_languages()
        outputs = write_files(job.settings, spill, job.folder)
    write_corpus_manifest(job, inputs_of(job), outputs, page_filter)


def write_corpus_manifest(
    job: CorpusJob,
    inputs: Sequence[Path | Mapping[str, Any]],
    outputs: Sequence[Path | Mapping[str, Any]],
    page_filter: PageFilter,
) -> None:
    """Delete files of an earlier run and write the manifest of the corpus.

    Args:
        job: the job.
        inputs: cleaned files, ordered, and decisions; paths or `files.describe_file`.
        outputs: files of the corpus; paths or `files.describe_file`.
        page_filter: filter that selected all pages.
    """
    remove_stale_files(job.folder, corpus_files(job.settings.c4))
    write_manifest(
        job.manifest,
        rule="c4",
        settings=job.settings.model_dump(mode="json"),
        inputs=[*inputs, *parameter_files(job.punkt), *page_filter.word_lists],
        outputs=outputs,
        counters=page_filter.counts.counters(job.settings),
    )


def file_numbers(high: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
    """Return, for each page, the number of its file among the `shards` of its language and split.

    Args:
        high: upper halves of the keys of the pages, shape ``(pages,)``.
        shards: number of files; each covers an equal range of keys.
    """
    starts = [-(-number * KEY_LIMIT // shards) for number in range(1, shards)]
    return np.searchsorted(np.array(starts, dtype=np.uint64), high, side="right")


def write_files(settings: C4Stage, spill: TableSpill, folder: Path) -> list[Path]:
    """Write the selected pages in order; return the files, including empty ones."""
    shards = settings.c4.output_shards
    paths = [folder / name for name in corpus_files(settings.c4)]
    # The order of `corpus_files`: language, split, number.
    divisions = [(name, split) for name in settings.c4.languages for split in SPLITS]
    with contextlib.ExitStack() as stack:
        temporary = [stack.enter_context(atomic_path(path)) for path in paths]
        writers = {
            division: SplitWriter(temporary[index * shards : (index + 1) * shards])
            for index, division in enumerate(divisions)
        }
        # Buckets are ranges of keys, so sorting each bucket orders the whole corpus.
        for table in itertools.chain.from_iterable(map(_addressable_parts, spill.drain())):
            high, low = table.column("high").to_numpy(), table.column("low").to_numpy()
            ordered = table.take(pa.array(np.lexsort((low, high))))
            numbers = file_numbers(ordered.column("high").to_numpy(), shards)
            for (name, split), writer in writers.items():
                is_in_division = pc.and_(
                    pc.equal(ordered.column("language"), name),
                    pc.equal(ordered.column("validation"), split == "validation"),
                )
                rows = np.flatnonzero(is_in_division.to_numpy())
                pages = ordered.select(tables.CORPUS.names).take(pa.array(rows))
                writer.append(pages, numbers[rows])
        for writer in writers.values():
            writer.close()
    return paths


def _addressable_parts(table: pa.Table) -> Iterator[pa.Table]:
    """Divide pages into consecutive ranges of keys with columns of at most `MAX_COLUMN_BYTES`.

    The number of buckets is limited, so buckets of many terabytes of text are larger.
    """
    high = table.column("high").to_numpy()
    if len(table) < 2 or max(column.nbytes for column in table.columns) <= MAX_COLUMN_BYTES:
        yield table
        return
    # The median of the keys halves the pages; `partition` finds it without sorting.
    middle = np.partition(high, len(high) // 2)[len(high) // 2]
    is_lower = high < middle
    # More than half of the keys are the smallest one: it becomes the lower range.
    if not is_lower.any():
        is_lower = high == middle
    if is_lower.all():  # equal keys cannot be divided
        yield table
        return
    for rows in (is_lower, ~is_lower):
        yield from _addressable_parts(table.filter(pa.array(rows)))


class SplitWriter:
    """Writes the ordered pages of one language and split into its files, one after another.

    Args:
        paths: the files.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._number = -1
        self._writer: Any = None
        self._buffer = tables.CORPUS.empty_table()

    def append(self, table: pa.Table, numbers: NDArray[np.int64]) -> None:
        """Write pages.

        Args:
            table: pages, columns `tables.CORPUS`.
            numbers: for each page the number of its file, ascending.
        """
        for number in np.unique(numbers).tolist():
            self._open(number)
            rows = np.flatnonzero(numbers == number)
            self._buffer = pa.concat_tables([self._buffer, table.slice(rows[0], len(rows))])
            self._flush(min_rows=GROUP_PAGES)

    def close(self) -> None:
        """Write buffered pages and the files without pages."""
        self._open(len(self._paths))

    def _open(self, number: int) -> None:
        """Close the files before a number, also empty ones, and open the file of this number."""
        while self._number < number:
            if self._writer is not None:
                self._flush(min_rows=1)
                self._writer.close()
                self._writer = None
            self._number += 1
            if self._number < len(self._paths):
                self._writer = tables.open_writer(self._paths[self._number], tables.CORPUS)

    def _flush(self, *, min_rows: int) -> None:
        """Write row groups of `GROUP_PAGES` while at least `min_rows` rows are buffered."""
        # Row groups of a fixed size keep the bytes independent of how the pages arrive.
        while len(self._buffer) >= min_rows:
            group = self._buffer.slice(0, GROUP_PAGES).combine_chunks()
            self._writer.write_table(group, row_group_size=GROUP_PAGES)
            self._buffer = self._buffer.slice(GROUP_PAGES)


def remove_stale_files(folder: Path, names: Sequence[str]) -> None:
    """Delete corpus files that an earlier run with other settings wrote to the folder."""
    for path in folder.iterdir():
        if corpus_file(path) and path.name not in names:
            path.unlink()
