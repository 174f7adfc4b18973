"""The rule `corpus`: read the user's own text in place of `c4_punkt` and `c4_clean`.

Its rows have the columns of cleaned pages (`tables.CLEANED`): the file below `data.folder`, the
number of the row, its id in place of the URL. So `c4_dedup`, `c4` and all later rules treat them as
pages, and a question about a page has the answer for a row. Texts are kept unchanged; with
`corpus.filters: c4` the rules of C4 apply to them.
"""

import json
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from t5repro.c4 import tables
from t5repro.c4.clean import (
    CleanedPage,
    Cleaner,
    batches_of,
    clean_pages,
    cleaned_writer,
    languages_of,
)
from t5repro.c4.dedup.spans import hashed_unit
from t5repro.c4.keys import key_halves, md5, normalize_url
from t5repro.c4.malloc import return_freed_memory
from t5repro.c4.own_text.rows import Row, read_rows
from t5repro.c4.reasons import LINE_REASONS, NO_CONTENT, TOO_LONG, WITHDRAWN
from t5repro.c4.text.language import Detected
from t5repro.c4.text.rules import Cleaned, CleanRules, line_lists, load_rules
from t5repro.c4.text.sentences import Splitters, parameter_files
from t5repro.c4.wet.pages import Page
from t5repro.c4.wet.reader import READ, CleanTally, FilePage, groups
from t5repro.c4.wet.warc_records import contains_other_newlines
from t5repro.config.sections.corpus import CorpusStage, row_files
from t5repro.config.withdrawn import WithdrawnPages
from t5repro.config.withdrawn import read_pages as read_withdrawn
from t5repro.errors import CorpusError, RawDataError
from t5repro.files import describe_file, write_manifest
from t5repro.jobs.corpus import OwnTextJob
from t5repro.progress import Progress

STATED = 1.0  # probability of a language that the user states
ALL_KEPT = (0,) * len(LINE_REASONS)


class RowPage(Page):
    """A row of own text as a page; `language` is None if langdetect is to find it."""

    def __init__(self, row: Row) -> None:
        other_newlines = contains_other_newlines(row.text)
        super().__init__(
            row.id,
            row.timestamp,
            row.text.encode("utf-8"),
            row.number,
            None,
            has_other_newlines=other_newlines,
        )
        self.language = row.language


class RowIds:
    """The ids of all rows, to find one that occurs twice; 32 bytes a row."""

    def __init__(self) -> None:
        self._keys = bytearray()
        self._rows = array("Q")  # for each id: number of its file, number of its row
        self._files: list[Path] = []

    def begin(self, path: Path) -> None:
        """Begin the next file."""
        self._files.append(path)

    def add(self, row: Row) -> None:
        """Add a row of the current file."""
        self._keys += md5(normalize_url(row.id))
        self._rows.extend((len(self._files) - 1, row.number))

    def check(self) -> None:
        """Check that no two rows have one id.

        Raises:
            RawDataError: two have; the message names both.
        """
        # Hashes of 16 bytes and not the ids, so that those of a large corpus fit into memory.
        keys = key_halves(bytes(self._keys))
        order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: rows of one id stay in order
        ordered = keys[order]
        repeated = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
        if len(repeated):
            first, second = int(order[repeated[0]]), int(order[repeated[0] + 1])
            raise RawDataError(
                f"{self._row_name(second)} has the id of {self._row_name(first)}; ids must "
                "differ (URLs are compared without scheme, www. and closing slash): name another "
                "column in corpus.id, or remove one of the rows"
            )

    def _row_name(self, index: int) -> str:
        file, number = self._rows[2 * index], self._rows[2 * index + 1]
        return f"{self._files[file]} row {number}"


class OwnText(NamedTuple):
    """What reading own text needs.

    Attributes:
        settings: settings of the rule.
        root: `data.folder`; names of files are relative to it.
        cleaner: the rules of C4.
        withdrawn: rows to drop by their id or text.
        ids: ids of all rows so far.
    """

    settings: CorpusStage
    root: Path
    cleaner: Cleaner
    withdrawn: WithdrawnPages
    ids: RowIds


def read_own_text(job: OwnTextJob) -> None:
    """Write a row of `tables.CLEANED` for every row of own text.

    The order of the files does not matter: they are read in the order of their names.

    Raises:
        RawDataError: a file is damaged, a row lacks a value, or two rows have one id.
        CorpusError: the list of files is empty, or every row lacks a text.
    """
    settings = job.settings
    return_freed_memory()
    withdrawn_pages = read_withdrawn(job.withdrawn)
    c4 = settings.c4
    splitter = Splitters(job.punkt, only=c4.punkt_language)
    cleaner = Cleaner(load_rules(c4.clean, splitter, job.bad_words), hashed_unit(c4.dedup))
    own = OwnText(settings, job.root, cleaner, withdrawn_pages, RowIds())
    if not job.files:
        raise CorpusError(
            f"corpus.files {settings.corpus.files} has no file that is not withdrawn; name others"
        )
    total = CleanTally("fail")
    outputs = [job.folder / name for name in row_files(settings.corpus)]
    # With `corpus.validation_files` there are two outputs, train and validation; else one.
    splits = [sorted(job.files), sorted(job.validation_files)][: len(outputs)]
    with Progress("corpus", total=sum(map(len, splits)), unit="files") as progress:
        for output, paths in zip(outputs, splits, strict=True):
            tally = CleanTally("fail")
            with cleaned_writer(output, tally) as writer:
                for table in tables.row_groups(_batches(own, paths, tally, progress)):
                    writer.write_table(table)
                if len(outputs) > 1:
                    # The rule `c4` reads the split here; without it the hash of the id decides.
                    split = json.dumps(output.stem)
                    writer.add_key_value_metadata({tables.SPLIT_KEY: split})
            total.merge(tally.to_json())
    own.ids.check()
    if not total.cleaned:
        raise CorpusError(
            f"corpus.files {settings.corpus.files}: none of {total.read[READ]} rows has a text: "
            f"{dict(total.read)}; name other files, or another column in corpus.text"
        )
    write_manifest(
        job.manifest,
        rule="corpus",
        settings=settings.model_dump(mode="json"),
        inputs=[
            *(describe_file(path) for paths in splits for path in paths),
            *parameter_files(job.punkt),
            *line_lists(c4.clean, job.bad_words),
            *([job.withdrawn] if job.withdrawn and withdrawn_pages else []),
        ],
        outputs=outputs,
        counters=total.counters(),
    )


def _batches(
    own: OwnText, paths: Sequence[Path], tally: CleanTally, progress: Progress
) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """Yield rows of `tables.CLEANED`, with the bytes of each text."""
    rules = own.cleaner.rules
    clean = partial(clean_pages, rules=rules) if rules.settings.enabled else _unchanged
    cleaned = map(clean, groups(_pages(own, paths, tally, progress)))
    return batches_of(cleaned, partial(_languages, rules=rules), own.cleaner, tally)


def _pages(
    own: OwnText, paths: Sequence[Path], tally: CleanTally, progress: Progress
) -> Iterator[FilePage]:
    """Yield the rows with a text as pages, and count the others."""
    for path in paths:
        name = path.relative_to(own.root).as_posix()
        own.ids.begin(path)
        for row in read_rows(path, name, own.settings.corpus, own.withdrawn.holds):
            tally.read[READ] += 1
            own.ids.add(row)
            page = RowPage(row)
            if reason := _reason(own, row, page):
                # Unlike pages of the crawl, dropped rows need no row in the output: ids are unique,
                # so no older copy could replace them.
                tally.read[reason] += 1
            else:
                yield name, page
        progress.advance(1)


def _reason(own: OwnText, row: Row, page: RowPage) -> str | None:
    """Return the reason to drop a row; None if it is a page."""
    if own.withdrawn.holds(row.id) or own.withdrawn.has_text(row.id, row.text):
        return WITHDRAWN
    if not row.text or row.text.isspace():
        return NO_CONTENT
    rules = own.cleaner.rules.settings
    return TOO_LONG if rules.enabled and page.is_longer_than(rules.max_page_chars) else None


def _unchanged(pages: Sequence[FilePage]) -> list[CleanedPage]:
    return [((file, page), Cleaned(_text(page), None, 0, ALL_KEPT)) for file, page in pages]


def _text(page: Page) -> str:
    return str(page.body, "utf-8")  # `page.text` is without blank lines


def _languages(pages: Sequence[CleanedPage], rules: CleanRules) -> list[Detected | None]:
    """Return the language of each kept row: as given, or detected if Punkt needs it."""
    kept_pages = [pair for pair in pages if pair[1].reason is None]
    row_languages = [
        page.language if isinstance(page, RowPage) else None for (_, page), _ in kept_pages
    ]
    unknown = [
        pair for pair, language in zip(kept_pages, row_languages, strict=True) if language is None
    ]
    # Only rows without a stated language are detected; the iterator gives them back in their order.
    detected = iter(languages_of(unknown, rules))
    return [
        Detected(language, STATED) if language else next(detected) for language in row_languages
    ]
