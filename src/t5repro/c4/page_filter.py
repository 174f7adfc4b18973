"""Apply the last rules of the corpus (duplicates, language, bad words, split), count reasons."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from t5repro.c4 import tables
from t5repro.c4.dedup.removals import Removals, read_counts
from t5repro.c4.dedup.shorten import (
    Positions,
    has_enough_sentences,
    remove_lines,
    remove_spans,
    text_at,
)
from t5repro.c4.keys import is_validation, key_halves
from t5repro.c4.page_counts import PageCounts
from t5repro.c4.prefetch import overlapped
from t5repro.c4.reasons import (
    BAD_WORD,
    DUPLICATE_URL,
    FEW_SENTENCES_LEFT,
    KEPT,
    NOT_WANTED,
    NOTHING_LEFT,
    REPEATED_TEXT,
    UNCERTAIN,
    UNDETECTED,
)
from t5repro.c4.samples import Rank
from t5repro.c4.text import bad_words as word_lists
from t5repro.c4.text import language
from t5repro.c4.text.language import Detected
from t5repro.c4.text.sentences import Splitters
from t5repro.config.corpus_files import SPLITS
from t5repro.config.sections.c4 import UNDETERMINED, C4Stage
from t5repro.errors import CorpusError
from t5repro.progress import Progress

# A page of the corpus: the halves of its key order the pages.
SELECTED = pa.schema(
    [("high", pa.uint64()), ("low", pa.uint64()), ("validation", pa.bool_()), *tables.CORPUS]
)
READ_COLUMNS = (
    "file",
    "record",
    "url",
    "timestamp",
    "url_key",
    "owner",
    "reason",
    "text",
    "language",
    "probability",
    *tables.LINE_COUNTS,
)


class _Candidate(NamedTuple):
    """A page that passed all rules before language detection.

    Attributes:
        url: raw URL.
        text: text without duplicates.
        timestamp: date of the record.
        normalized_url_md5: 16 bytes.
        rank: of the page as an example.
        lines: `tables.LINE_COUNTS` of the page.
        detected: language from cleaning; None if it is unknown or text was removed since.
        split: split that its cleaned file states; empty if the URL decides.
    """

    url: str
    text: str
    timestamp: str
    normalized_url_md5: bytes
    rank: Rank
    lines: Mapping[str, int]
    detected: Detected | None
    split: str


class PageFilter:
    """Selects the pages of the corpus, and counts the others by reason.

    Args:
        settings: settings of the rule `c4`.
        punkt: language -> folder of its Punkt parameters.
        bad_words: language -> list of bad words.

    Attributes:
        word_lists: the lists that apply to whole pages.
        counts: counts of all rules.
    """

    def __init__(
        self, settings: C4Stage, punkt: Mapping[str, Path], bad_words: Mapping[str, Path]
    ) -> None:
        self._settings = settings.c4
        self._splitter = Splitters(punkt, only=settings.c4.punkt_language)
        lists = _page_lists(settings, bad_words)
        self.word_lists = list(lists.values())
        self._matchers = {name: _matcher(settings, name, path) for name, path in lists.items()}
        self.counts = PageCounts()

    def batches(
        self, shards: Sequence[Path], decisions: Path, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pages of the corpus, columns `SELECTED`, in the order of the shards.

        Args:
            shards: cleaned files, ordered.
            decisions: folder of the output of `c4_dedup` for them.
            progress: shows pages.

        Raises:
            ArtifactError: a file is missing or damaged, or the decisions are for other shards.
        """
        self.counts.units.update(read_counts(decisions, shards))
        candidates = self._candidates_of_shards(shards, decisions, progress)
        # Languages are detected in a thread while duplicates are removed from the next pages.
        for pages, languages in overlapped(_detect_missing, candidates):
            yield self._filter_languages(pages, languages)

    def _candidates_of_shards(
        self, shards: Sequence[Path], decisions: Path, progress: Progress
    ) -> Iterator[list[_Candidate]]:
        for path in shards:
            parquet = tables.open_parquet(path, tables.CLEANED)
            self.add_shard(parquet, path)
            removals = Removals(decisions / path.name)
            first_row, split = 0, tables.split_of(parquet)
            for batch in tables.read_batches(parquet, path, READ_COLUMNS):
                yield self._candidates(first_row, batch, removals, split)
                first_row += len(batch)
                progress.advance(len(batch))

    def add_shard(self, parquet: pq.ParquetFile, path: Path) -> None:
        """Add the counts and examples of cleaning; once for each shard.

        Raises:
            ArtifactError: the file has no counts.
        """
        self.counts.pages.update(tables.metadata_of(parquet, tables.COUNTS_KEY, path))
        self.counts.samples.merge(tables.metadata_of(parquet, tables.SAMPLES_KEY, path))
        self.counts.signals.update(tables.signals_of(parquet))
        self.counts.faults.merge(tables.metadata_of(parquet, tables.FAULTS_KEY, path))

    def apply(self, first_row: int, batch: pa.RecordBatch, removals: Removals) -> pa.RecordBatch:
        """Return the selected pages of a batch, columns `SELECTED`.

        Args:
            first_row: number of the first row of `batch`.
            batch: rows of a cleaned file, columns `READ_COLUMNS`.
            removals: decisions of deduplication about this file.
        """
        pages = self._candidates(first_row, batch, removals)
        return self._filter_languages(pages, _detect_missing(pages))

    def _candidates(
        self, first_row: int, batch: pa.RecordBatch, removals: Removals, split: str = ""
    ) -> list[_Candidate]:
        """Return the pages that are the newest of their URL, clean, and still long enough."""
        candidates: list[_Candidate] = []
        # Lines of older copies are not counted: the counts describe the pages that compete for the
        # corpus.
        newest = np.ones(len(batch), dtype=bool)
        for index, page in enumerate(batch.to_pylist()):
            removal = removals.of(first_row + index)
            is_older_copy, positions = removal or (False, None)
            rank = (page["owner"].hex(), page["file"], page["record"])
            # In the order of the rules: each page is counted once, by the first reason.
            if is_older_copy:
                newest[index] = False
                self.counts.drop(DUPLICATE_URL, rank, page["url"], page["text"] or "")
            elif page["reason"] is not None:
                # Its example is already in the metadata of the shard.
                self.counts.pages[page["reason"]] += 1
            elif text := self._remove_duplicates(page, rank, positions):
                detected = None
                # The language from cleaning holds for the unchanged text only.
                if positions is None and page["language"] is not None:
                    detected = Detected(page["language"], page["probability"])
                candidates.append(
                    _Candidate(
                        page["url"],
                        text,
                        page["timestamp"],
                        page["url_key"],
                        rank,
                        {name: page[name] for name in tables.LINE_COUNTS},
                        detected,
                        split,
                    )
                )
        rows = batch.filter(pa.array(newest))
        for name in tables.LINE_COUNTS:
            self.counts.lines[name] += pc.sum(rows.column(name)).as_py() or 0
        return candidates

    def _remove_duplicates(
        self, page: Mapping[str, Any], rank: Rank, positions: Positions | None
    ) -> str:
        """Return the text of a page without duplicates; empty if it is dropped as too short."""
        text: str = page["text"]
        unit = self._settings.dedup.unit
        splitter = self._splitter.of(page["language"])
        if positions is not None:
            # The duplicate is split into sentences for an example only; most offers are refused.
            if self.counts.samples.wants(REPEATED_TEXT, rank):
                duplicate = text_at(text, positions[0], splitter)
                self.counts.samples.offer(REPEATED_TEXT, rank, page["url"], duplicate)
            if unit == "line":
                text = remove_lines(text, positions)
            else:
                text = remove_spans(text, positions, splitter)
        if not text:
            self.counts.drop(NOTHING_LEFT, rank, page["url"], page["text"])
        # With deduplication off the minimum of cleaning holds already.
        elif unit != "off" and not has_enough_sentences(
            text,
            count=self._settings.dedup.min_sentences,
            whole_text=unit == "line",
            splitter=splitter,
        ):
            self.counts.drop(FEW_SENTENCES_LEFT, rank, page["url"], text)
            return ""
        return text

    def _filter_languages(
        self, pages: Sequence[_Candidate], languages: Sequence[Detected]
    ) -> pa.RecordBatch:
        """Return the pages in a language of the corpus and without bad words."""
        columns: list[list[Any]] = [[] for _ in SELECTED.names]
        for page, detected in zip(pages, languages, strict=True):
            name, reason = self._language_or_reason(page, detected)
            if reason is not None:
                self.counts.drop(reason, page.rank, page.url, page.text)
                continue
            validation = page.split == "validation" or (
                not page.split
                and is_validation(page.normalized_url_md5, self._settings.validation_modulus)
            )
            if not validation:
                # Pages of the corpus are ordered by this key, so the examples are its first pages.
                corpus_rank = (page.normalized_url_md5.hex(), *page.rank[1:])
                self.counts.kept.offer(name, corpus_rank, page.url, "")
            self.counts.split_pages[name, SPLITS[validation]] += 1
            self.counts.split_chars[name, SPLITS[validation]] += len(page.text)
            high, low = key_halves(page.normalized_url_md5)[0].tolist()
            row = (high, low, validation, page.url, page.text, page.timestamp, name)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        return pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, SELECTED, strict=True)],
            schema=SELECTED,
        )

    def _language_or_reason(self, page: _Candidate, detected: Detected) -> tuple[str, str | None]:
        """Return the language of the corpus for a page and the reason to drop it, if any."""
        counts, name = self.counts, detected.language
        reason = language.language_reason(
            detected,
            languages=frozenset(self._settings.languages),
            min_probability=self._settings.min_language_probability,
        )
        # Counted by the most probable language, however uncertain.
        counts.by_language[name, reason or KEPT] += 1
        for line_count, number in page.lines.items():
            counts.by_language[name, line_count] += number
        # mC4 keeps such pages in a corpus of their own (`und`).
        if reason in (UNDETECTED, UNCERTAIN) and UNDETERMINED in self._settings.languages:
            name, reason = UNDETERMINED, None
        if reason is None or reason == NOT_WANTED:
            counts.detected[name] += 1
        if reason is None and self._has_bad_word(page, name):
            counts.with_bad_words[name] += 1
            if self._drops_bad_words(page.normalized_url_md5):
                reason = BAD_WORD
                counts.by_language[name, BAD_WORD] += 1
        return name, reason

    def _has_bad_word(self, page: _Candidate, name: str) -> bool:
        # A list for `zh` also applies to langdetect's `zh-cn` and `zh-tw`.
        matcher = self._matchers.get(name) or self._matchers.get(name.partition("-")[0])
        return matcher is not None and matcher(page.text)

    def _drops_bad_words(self, normalized_url_md5: bytes) -> bool:
        """Return whether a page with bad words is dropped: all are, or a fraction by URL.

        Source: released code, ``c4_utils.get_badwords_filter_fn``.
        """
        dropped, total = self._settings.clean.bad_word_fraction.as_integer_ratio()
        return int.from_bytes(normalized_url_md5, "big") % total < dropped

    def check_languages(self) -> None:
        """Check that every language has pages for training.

        Raises:
            CorpusError: a language of `c4.languages` has no page in train.
        """
        for name in self._settings.languages if self._settings.require_pages else ():
            validation_pages = self.counts.split_pages[name, "validation"]
            if self.counts.split_pages[name, "train"]:
                continue
            if validation_pages:
                raise CorpusError(
                    f"c4.languages contains {name!r}, but all of its {validation_pages} pages are "
                    "in the validation split by c4.validation_modulus "
                    f"{self._settings.validation_modulus}; raise it, or add pages in this language"
                )
            detected = sorted(self.counts.detected.items())
            counts = ", ".join(f"{key} {count}" for key, count in detected)
            raise CorpusError(
                f"c4.languages contains {name!r}, but no page in it is left after all rules; "
                f"pages by detected language, before bad words: {counts or 'none'}; add pages in "
                f"{name!r}, or remove it from c4.languages"
            )


def _detect_missing(pages: Sequence[_Candidate]) -> list[Detected]:
    """Return the languages of pages; cleaning may have detected most of them."""
    missing = [page.text for page in pages if page.detected is None]
    detected = iter(language.detect_languages(missing))
    return [page.detected or next(detected) for page in pages]


def _page_lists(settings: C4Stage, bad_words: Mapping[str, Path]) -> dict[str, Path]:
    """Return the lists of bad words that apply to whole pages."""
    rule = settings.c4.clean.bad_words
    if rule == "off":
        return {}
    # The rule of 2019 for English was applied to each line by cleaning.
    return {
        name: path
        for name, path in sorted(bad_words.items())
        if rule == "page" or name != word_lists.LINE_LANGUAGE
    }


def _matcher(settings: C4Stage, name: str, path: Path) -> word_lists.Matcher:
    words = word_lists.read_words(path, name)
    if settings.c4.clean.bad_words == "page":
        return word_lists.page_matcher(words, name)
    return word_lists.any_line(word_lists.line_matcher(words))
