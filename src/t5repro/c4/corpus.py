"""The last step: apply the decisions, choose pages by language, write them in order.

`Selection` takes every cleaned page through the rules that are left, counts, and keeps examples;
`write_files` sorts what it let pass by the MD5 of the normalised URL and writes Parquet.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from t5repro.c4 import tables
from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.dedup.removals import DUPLICATE_URL, Losses, check_shards
from t5repro.c4.dedup.spill import TableSpill
from t5repro.c4.prefetch import overlapped
from t5repro.c4.samples import Rank, Samples
from t5repro.c4.text import bad_words as word_lists
from t5repro.c4.text import language
from t5repro.c4.text import rules as page_rules
from t5repro.c4.text.sentences import SentenceSplitter, Splitters
from t5repro.c4.wet import faults
from t5repro.c4.wet import pages as wet_pages
from t5repro.c4.wet.reader import READ_REASONS
from t5repro.config.sections.c4 import UNDETERMINED, C4Stage
from t5repro.errors import CorpusError
from t5repro.files import atomic_path
from t5repro.progress import Progress

SPLITS = ("train", "validation")
GROUP_PAGES = 512  # of a row group of the corpus
FILE_NAME = re.compile(r"[a-z]{2,3}(-[a-z]{2})?-(train|validation)-\d{5}-of-\d{5}\.parquet")
HIGHEST_KEY = 1 << 64

REPEATED_TEXT = "repeated_text"
NOTHING_LEFT = "nothing_left"
FEW_SENTENCES_LEFT = "few_sentences_left"
BAD_WORD = "bad_word"
KEPT = "kept"

LEFT_REASONS = (NOTHING_LEFT, FEW_SENTENCES_LEFT)
DOUBTS = (language.UNDETECTED, language.UNCERTAIN)
LANGUAGE_REASONS = (language.UNDETECTED, language.UNCERTAIN, language.NOT_WANTED)

SELECTED = pa.schema(
    [("high", pa.uint64()), ("low", pa.uint64()), ("validation", pa.bool_()), *tables.CORPUS]
)


class _Candidate(NamedTuple):
    """A page that the rules up to the language let pass."""

    url: str
    text: str
    timestamp: str
    url_key: bytes
    rank: Rank
    lines: Mapping[str, int]  # how many of the page's lines stayed, and went for each reason
    detected: language.Detected | None  # None: not yet, or text was removed since then


class Selection:
    """Chooses the pages of the corpus and counts what it drops.

    Args:
        settings: what the rule `c4` reads.
        splitter: counts sentences.
        bad_words: language -> list of bad words.
    """

    def __init__(
        self,
        settings: C4Stage,
        splitter: SentenceSplitter | Splitters,
        bad_words: Mapping[str, Path],
    ) -> None:
        self._settings = settings.c4
        self._splitter = splitter
        chosen = _chosen_lists(settings, bad_words)
        self.lists = list(chosen.values())
        self._matchers = {name: _matcher(settings, name, path) for name, path in chosen.items()}
        self._samples = Samples()
        self._faults = faults.FaultLog()
        self._pages: Counter[str] = Counter()
        self._lines: Counter[str] = Counter()
        self._units: Counter[str] = Counter()
        self._detected: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._seen: Counter[tuple[str, str]] = Counter()  # by the language that is most probable
        self._split_pages: Counter[tuple[str, str]] = Counter()
        self._split_chars: Counter[tuple[str, str]] = Counter()

    def batches(
        self, shards: Sequence[Path], decisions: Path, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pages of the corpus, columns `SELECTED`, in the order of the shards.

        Raises:
            ArtifactError: a file is missing or damaged, or the decisions are about other shards.
        """
        check_shards(decisions, shards)
        losses = Losses(decisions)
        self.add_units(losses)
        for pages, found in overlapped(_languages_of, self._prepared(shards, losses, progress)):
            yield self._choose_languages(pages, found)

    def _prepared(
        self, shards: Sequence[Path], losses: Losses, progress: Progress
    ) -> Iterator[list[_Candidate]]:
        """Yield the pages that the rules up to the language let pass."""
        for shard, path in enumerate(shards):
            parquet = tables.opened(path, tables.CLEANED)
            self.add_shard(parquet, path)
            first = 0
            for batch in tables.batches(parquet, path, READ_COLUMNS):
                yield self._candidates(shard, first, batch, losses)
                first += len(batch)
                progress.advance(len(batch))

    def add_units(self, losses: Losses) -> None:
        """Count the units of text that were compared and removed; once for a corpus."""
        self._units.update(losses.counts)

    def add_shard(self, parquet: pq.ParquetFile, path: Path) -> None:
        """Count what cleaning read and dropped, and take its examples; once for a shard.

        Raises:
            ArtifactError: the file has no counts.
        """
        self._pages.update(tables.metadata_of(parquet, tables.COUNTS_KEY, path))
        self._samples.merge(tables.metadata_of(parquet, tables.SAMPLES_KEY, path))
        self._faults.merge(tables.metadata_of(parquet, tables.FAULTS_KEY, path))

    def choose(
        self, shard: int, first: int, batch: pa.RecordBatch, losses: Losses
    ) -> pa.RecordBatch:
        """Return the pages of `batch`, columns `READ_COLUMNS`, that stay, columns `SELECTED`."""
        pages = self._candidates(shard, first, batch, losses)
        return self._choose_languages(pages, _languages_of(pages))

    def to_json(self) -> dict[str, Any]:
        """Return everything that was counted and sampled, for `merge`."""
        return {
            **self._counters(),
            **{
                name: [[*key, count] for key, count in counter.items()]
                for name, counter in self._split_counters().items()
            },
            "samples": self._samples.to_json(),
            "faults": self._faults.to_json(),
        }

    def merge(self, other: Mapping[str, Any]) -> None:
        """Take in what `to_json` of a selection from another part of the crawl returned."""
        for name, counter in self._counters().items():
            counter.update(other[name])
        for name, split_counter in self._split_counters().items():
            split_counter.update({(key, split): count for key, split, count in other[name]})
        self._samples.join(other["samples"])
        self._faults.merge(other["faults"])

    def _counters(self) -> dict[str, Counter[str]]:
        return {
            "pages": self._pages,
            "lines": self._lines,
            "units": self._units,
            "detected": self._detected,
            "bad": self._bad,
        }

    def _split_counters(self) -> dict[str, Counter[tuple[str, str]]]:
        return {
            "seen": self._seen,
            "split_pages": self._split_pages,
            "split_chars": self._split_chars,
        }

    def _candidates(
        self, shard: int, first: int, batch: pa.RecordBatch, losses: Losses
    ) -> list[_Candidate]:
        """Return the pages that are the newest of their URL, clean, and long enough still."""
        candidates: list[_Candidate] = []
        newest = np.ones(len(batch), dtype=bool)
        for at, page in enumerate(batch.to_pylist()):
            loss = losses.of(shard, first + at)
            rank = (page["owner"].hex(), page["file"], page["record"])
            if loss is not None and loss[0]:
                newest[at] = False
                self._drop(DUPLICATE_URL, rank, page["url"], page["text"] or "")
            elif page["reason"] is not None:
                self._pages[page["reason"]] += 1  # an example of it came with the shard
            else:
                text = self._what_is_left(page, rank, None if loss is None else loss[1])
                if text:
                    lines = {name: page[name] for name in LINE_COUNTS}
                    known = (page["url"], text, page["timestamp"], page["url_key"])
                    detected = None
                    if loss is None and page["language"] is not None:
                        detected = language.Detected(page["language"], page["probability"])
                    candidates.append(_Candidate(*known, rank, lines, detected))
        rows = batch.filter(pa.array(newest))
        for name in LINE_COUNTS:
            self._lines[name] += pc.sum(rows.column(name)).as_py() or 0
        return candidates

    def _what_is_left(self, page: Mapping[str, Any], rank: Rank, places: Any) -> str:
        """Return the text without its repeats; empty if the page is dropped for that."""
        text: str = page["text"]
        unit = self._settings.dedup.unit
        splitter = self._splitter.of(page["language"])
        if places is not None:
            if self._samples.wants(REPEATED_TEXT, rank):
                repeat = dedup_spans.text_at(text, places[0], splitter)
                self._samples.offer(REPEATED_TEXT, rank, page["url"], repeat)
            if unit == "line":
                text = dedup_spans.remove_lines(text, places)
            else:
                text = dedup_spans.remove_spans(text, places, splitter)
        if not text:
            self._drop(NOTHING_LEFT, rank, page["url"], page["text"])
        elif unit != "off" and not dedup_spans.has_enough_sentences(
            text,
            count=self._settings.dedup.min_sentences,
            whole_text=unit == "line",
            splitter=splitter,
        ):
            self._drop(FEW_SENTENCES_LEFT, rank, page["url"], text)
            return ""
        return text

    def _choose_languages(
        self, pages: Sequence[_Candidate], found: Sequence[language.Detected]
    ) -> pa.RecordBatch:
        """Return the pages in a wanted language and without bad words; `found`: their languages."""
        columns: list[list[Any]] = [[] for _ in SELECTED.names]
        wanted = frozenset(self._settings.languages)
        for page, detected in zip(pages, found, strict=True):
            reason = language.language_fault(
                detected, wanted=wanted, min_probability=self._settings.min_language_probability
            )
            self._seen[detected.language, reason or KEPT] += 1
            for name, count in page.lines.items():
                self._seen[detected.language, name] += count
            if reason in DOUBTS and UNDETERMINED in self._settings.languages:
                detected, reason = language.Detected(UNDETERMINED, 1.0), None
            if reason is None or reason == language.NOT_WANTED:
                self._detected[detected.language] += 1
            if reason is None and self._has_bad_word(page, detected.language):
                self._bad[detected.language] += 1
                reason = BAD_WORD if self._drops_bad(page.url_key) else None
                self._seen[detected.language, BAD_WORD] += reason is not None
            if reason is not None:
                self._drop(reason, page.rank, page.url, page.text)
                continue
            held_out = dedup_spans.is_held_out(page.url_key, self._settings.validation_modulus)
            where = (detected.language, SPLITS[held_out])
            self._split_pages[where] += 1
            self._split_chars[where] += len(page.text)
            high, low = dedup_spans.key_halves(page.url_key)[0].tolist()
            row = (high, low, held_out, page.url, page.text, page.timestamp, detected.language)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        return pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, SELECTED, strict=True)],
            schema=SELECTED,
        )

    def _has_bad_word(self, page: _Candidate, name: str) -> bool:
        matcher = self._matchers.get(name) or self._matchers.get(name.partition("-")[0])
        return matcher is not None and matcher(page.text)

    def _drops_bad(self, url_key: bytes) -> bool:
        """Return whether a page with a listed word goes: all do, or a share of them by URL.

        Source: released code, ``c4_utils.get_badwords_filter_fn``.
        """
        dropped, of = self._settings.clean.bad_word_fraction.as_integer_ratio()
        return int.from_bytes(url_key, "big") % of < dropped

    def _drop(self, reason: str, rank: Rank, url: str, text: str) -> None:
        self._pages[reason] += 1
        self._samples.offer(reason, rank, url, text)

    def check_languages(self) -> None:
        """Refuse a corpus in which a language has nothing to train on.

        Raises:
            CorpusError: a language of `c4.languages` has no page in train.
        """
        for name in self._settings.languages if self._settings.require_pages else ():
            held_out = self._split_pages[name, "validation"]
            if self._split_pages[name, "train"]:
                continue
            if held_out:
                raise CorpusError(
                    f"c4.languages asks for {name!r}, but all of its {held_out} pages are held out "
                    f"for validation by c4.validation_modulus {self._settings.validation_modulus}; "
                    "raise it, or add WET files with pages in this language"
                )
            counts = ", ".join(f"{key} {count}" for key, count in sorted(self._detected.items()))
            raise CorpusError(
                f"c4.languages asks for {name!r}, but no page of the crawl is left in it; pages by "
                f"detected language, before bad words: {counts or 'none'}; add WET files with "
                f"pages in {name!r}, or take it out of c4.languages"
            )

    def counters(self) -> dict[str, Any]:
        """Return what every rule took in, dropped and kept, for the manifest."""
        return {
            "rules": list(self._rules()),
            "languages": {
                name: {
                    "detected_pages": self._detected[name],
                    "pages_with_bad_words": self._bad[name],
                    "rules": self._rules_of(name),
                    **{
                        f"{split}_{what}": counter[name, split]
                        for split in SPLITS
                        for what, counter in (
                            ("pages", self._split_pages),
                            ("characters", self._split_chars),
                        )
                    },
                }
                for name in self._settings.languages
            },
            "other_languages": {
                name: count
                for name, count in sorted(self._detected.items())
                if name not in self._settings.languages
            },
            "faults": self._faults.to_json(),
            "detector": language.detector_version(),
            "samples": self._samples.readable(),
        }

    def _rules_of(self, name: str) -> list[dict[str, Any]]:
        """Return what the rules did to the pages that are most probably in a language.

        Of pages that are dropped before their language is looked for nothing is known.
        """
        lines = {reason: self._seen[name, f"lines_{reason}"] for reason in page_rules.LINE_REASONS}
        seen = self._seen[name, "kept_lines"] + sum(lines.values())
        doubts = {reason: self._seen[name, reason] for reason in LANGUAGE_REASONS}
        pages = self._seen[name, KEPT] + sum(doubts.values())
        return [
            _rule("clean_lines", "lines", seen, lines),
            _rule("language", "pages", pages, doubts),
            _rule(
                "bad_words", "pages", self._detected[name], {BAD_WORD: self._seen[name, BAD_WORD]}
            ),
        ]

    def _rules(self) -> Iterator[dict[str, Any]]:
        """Yield the rules in the order in which they are applied."""
        pages = self._pages
        came_in = pages["read"]
        if pages[wet_pages.WITHDRAWN]:
            yield (
                rule := _rule(
                    "withdrawn", "pages", came_in, {wet_pages.WITHDRAWN: pages["withdrawn"]}
                )
            )
            came_in = rule["kept"]
        rule = _rule("read", "pages", came_in, {key: pages[key] for key in READ_REASONS})
        yield rule
        rule = _rule("newest_of_url", "pages", rule["kept"], {DUPLICATE_URL: pages[DUPLICATE_URL]})
        yield rule
        if self._settings.clean.enabled or self._settings.clean.min_paragraphs:
            lines = {reason: self._lines[f"lines_{reason}"] for reason in page_rules.LINE_REASONS}
            seen = self._lines["kept_lines"] + sum(lines.values())
            yield _rule("clean_lines", "lines", seen, lines)
            dropped = {reason: pages[reason] for reason in page_rules.PAGE_REASONS}
            rule = _rule("clean_pages", "pages", rule["kept"], dropped)
            yield rule
        if self._settings.dedup.unit != "off":
            unit = {"line": "lines"}.get(self._settings.dedup.unit, "three-sentence spans")
            removed = {REPEATED_TEXT: self._units["removed_units"]}
            yield _rule("dedup_text", unit, self._units["units"], removed)
        rule = _rule(
            "dedup_pages", "pages", rule["kept"], {key: pages[key] for key in LEFT_REASONS}
        )
        yield rule
        rule = _rule(
            "language", "pages", rule["kept"], {key: pages[key] for key in LANGUAGE_REASONS}
        )
        yield rule
        yield _rule("bad_words", "pages", rule["kept"], {BAD_WORD: pages[BAD_WORD]})


def _languages_of(pages: Sequence[_Candidate]) -> list[language.Detected]:
    """Return the languages of pages, most of which cleaning may have found already."""
    unknown = (page.text for page in pages if page.detected is None)
    found = iter(language.detect_languages(list(unknown)))
    return [page.detected or next(found) for page in pages]


def _rule(name: str, unit: str, came_in: int, dropped: Mapping[str, int]) -> dict[str, Any]:
    """Return one rule's counts."""
    return {
        "rule": name,
        "unit": unit,
        "in": came_in,
        "dropped": dict(dropped),
        "kept": came_in - sum(dropped.values()),
    }


LINE_COUNTS = ("kept_lines", *(f"lines_{reason}" for reason in page_rules.LINE_REASONS))
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
    *LINE_COUNTS,
)


def _chosen_lists(settings: C4Stage, bad_words: Mapping[str, Path]) -> dict[str, Path]:
    """Return the lists whose words are looked for in finished pages."""
    rules = settings.c4.clean
    if rules.bad_words == "off":
        return {}
    return {
        name: path
        for name, path in sorted(bad_words.items())
        # By the rule of 2019, that one was applied to each line while cleaning.
        if rules.bad_words == "page" or name != word_lists.LINE_LANGUAGE
    }


def _matcher(settings: C4Stage, name: str, path: Path) -> word_lists.Matcher:
    words = word_lists.read_words(path, name)
    if settings.c4.clean.bad_words == "page":
        return word_lists.page_matcher(words, name)
    return word_lists.any_line(word_lists.line_matcher(words))


def file_names(settings: C4Stage) -> list[str]:
    """Return the names of the files of the corpus: those of a language and split together."""
    shards = settings.c4.output_shards
    return [
        f"{name}-{split}-{number:05d}-of-{shards:05d}.parquet"
        for name in settings.c4.languages
        for split in SPLITS
        for number in range(shards)
    ]


def file_numbers(high: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
    """Return which of the `shards` files of its language and split each page is in."""
    begins = [-(-number * HIGHEST_KEY // shards) for number in range(1, shards)]
    return np.searchsorted(np.array(begins, dtype=np.uint64), high, side="right")


def write_files(settings: C4Stage, spill: TableSpill, folder: Path) -> list[Path]:
    """Write the selected pages, sorted, and return the files, empty ones included."""
    shards = settings.c4.output_shards
    paths = [folder / name for name in file_names(settings)]
    with contextlib.ExitStack() as stack:
        temporary = {path: stack.enter_context(atomic_path(path)) for path in paths}
        writers = {
            (name, split): SplitWriter(
                [temporary[path] for path in paths[at * shards : (at + 1) * shards]]
            )
            for at, (name, split) in enumerate(
                (name, split) for name in settings.c4.languages for split in SPLITS
            )
        }
        for table in spill.drain():
            high, low = table.column("high").to_numpy(), table.column("low").to_numpy()
            ordered = table.take(pa.array(np.lexsort((low, high))))
            numbers = file_numbers(ordered.column("high").to_numpy(), shards)
            for (name, split), writer in writers.items():
                chosen = pc.and_(
                    pc.equal(ordered.column("language"), name),
                    pc.equal(ordered.column("validation"), split == "validation"),
                )
                at = np.flatnonzero(chosen.to_numpy())
                writer.append(ordered.select(tables.CORPUS.names).take(pa.array(at)), numbers[at])
        for writer in writers.values():
            writer.close()
    return paths


class SplitWriter:
    """Writes the rows of one language and split, in order, into its files, one after another.

    Args:
        paths: the files.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._number = -1
        self._writer: Any = None
        self._held = tables.CORPUS.empty_table()

    def append(self, table: pa.Table, numbers: Any) -> None:
        """Write rows; `numbers` says for each which file it goes to, in order."""
        for number in np.unique(numbers).tolist():
            self._open(number)
            at = np.flatnonzero(numbers == number)
            self._held = pa.concat_tables([self._held, table.slice(at[0], len(at))])
            self._flush(least=GROUP_PAGES)

    def close(self) -> None:
        """Write what is held and the files that got no row."""
        self._open(len(self._paths))

    def _open(self, number: int) -> None:
        """Go on to the file of this number, closing those before it."""
        while self._number < number:
            if self._writer is not None:
                self._flush(least=1)
                self._writer.close()
                self._writer = None
            self._number += 1
            if self._number < len(self._paths):
                self._writer = tables.writer(self._paths[self._number], tables.CORPUS)

    def _flush(self, *, least: int) -> None:
        """Write row groups of `GROUP_PAGES` while at least `least` rows are held."""
        while len(self._held) >= least:
            group = self._held.slice(0, GROUP_PAGES).combine_chunks()
            self._writer.write_table(group, row_group_size=GROUP_PAGES)
            self._held = self._held.slice(GROUP_PAGES)


def remove_others(folder: Path, outputs: Sequence[Path]) -> None:
    """Delete corpus files that an earlier run with other settings left in the folder."""
    for path in folder.iterdir():
        if FILE_NAME.fullmatch(path.name) and path not in outputs:
            path.unlink()
