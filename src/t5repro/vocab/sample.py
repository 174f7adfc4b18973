"""Samples the corpus for the training of the vocabulary (paper section 2.2).

Reads the pages that the rule `c4` wrote, writes a text file of lines. English, German, French and
Romanian enter as 10 : 1 : 1 : 1 parts of characters. To train on another language, add it to
`c4.languages` and `vocab.language_parts`.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from t5repro.errors import CorpusError, SettingsError
from t5repro.files import atomic_path, write_manifest
from t5repro.jobs.corpus import VocabSampleJob
from t5repro.progress import Progress, announce
from t5repro.randomness import seed_pair
from t5repro.vocab.corpus import pages_in, read_pages, shards_of

MAX_LINE_BYTES = 4192  # SentencePiece skips longer lines


@dataclass
class Reservoir:
    """The pages with the smallest keys that together contain at least `target_chars` characters.

    The result depends on the set of pages, never on their order.

    Attributes:
        target_chars: characters to reach.
        chars: characters of the pages in the reservoir.
        pages: heap of (negated key, lines); the page with the largest key is on top.
    """

    target_chars: int
    chars: int = 0
    pages: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def accepts(self, key: int) -> bool:
        """Tell whether a page with this key belongs to the sample so far."""
        return self.chars < self.target_chars or key < -self.pages[0][0]

    def add(self, key: int, lines: tuple[str, ...]) -> None:
        """Add a page; drop the pages with the largest keys that the target no longer needs."""
        # A max-heap by negated keys. Dropping the top as soon as the rest suffices keeps the pages
        # with the smallest keys, whatever their order.
        heapq.heappush(self.pages, (-key, lines))
        self.chars += characters(lines)
        while self.chars - characters(self.pages[0][1]) >= self.target_chars:
            self.chars -= characters(heapq.heappop(self.pages)[1])

    def sorted_pages(self) -> list[tuple[str, ...]]:
        """Return the lines of each page, by ascending key."""
        return [lines for _, lines in sorted(self.pages, key=lambda page: (-page[0], page[1]))]


def characters(lines: tuple[str, ...]) -> int:
    """Return the number of characters of the lines, without line ends."""
    return sum(map(len, lines))


def sample_corpus(job: VocabSampleJob) -> None:
    """Write the training text of the vocabulary, one paragraph a line.

    Each language contributes its part of `sample_chars`: whole pages in a seeded order, the last
    one cut after the line that reaches the target. A language with too little text contributes all
    of it; the manifest counts requested and written characters. Memory grows with the sample.

    Raises:
        CorpusError: a language has no text in the training split.
        SettingsError: a language's part is less than 1.
    """
    language_parts = job.settings.vocab.language_parts
    for language, language_part in language_parts.items():
        if language_part < 1:
            raise SettingsError(
                f"vocab.language_parts.{language} is {language_part}; parts are whole numbers from "
                f"1: leave the language out to give it none"
            )
    all_parts = sum(language_parts.values())
    counters: dict[str, dict[str, int]] = {}
    inputs: list[Path] = [job.corpus]
    with atomic_path(job.sample) as temporary, temporary.open("w", encoding="utf-8") as handle:
        for language in sorted(language_parts):
            # Integer arithmetic: the same target on every machine.
            target_chars = max(
                1, job.settings.vocab.sample_chars * language_parts[language] // all_parts
            )
            shards = shards_of(job.corpus, language, "train")
            counts = {"asked_chars": target_chars, "given_chars": 0, "lines": 0, "pages": 0}
            # Only the last page is cut, so the sample has whole documents.
            for lines in _draw_pages(
                job.settings.vocab.sample_seed, language, shards, target_chars
            ):
                _write_page(handle, lines, counts)
            if not counts["given_chars"]:
                raise CorpusError(
                    f"{job.corpus}: the corpus has no {language!r} text to train the vocabulary "
                    f"on; crawl pages in this language or take it out of vocab.language_parts"
                )
            if counts["given_chars"] < target_chars:
                announce(
                    f"vocab_sample: {language} has {counts['given_chars']:,} characters, "
                    f"fewer than the target of {target_chars:,}"
                )
            counters[language] = counts
            inputs += shards
    write_manifest(
        job.manifest,
        rule="vocab_sample",
        settings=job.settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=[job.sample],
        counters=counters,
    )


def _draw_pages(
    seed: int, language: str, shards: list[Path], target_chars: int
) -> list[tuple[str, ...]]:
    reservoir = Reservoir(target_chars)
    with Progress(f"vocab_sample {language}", total=pages_in(shards), unit="pages") as progress:
        for shard in shards:
            for pages in read_pages(shard):
                for url, text in pages:
                    key = _page_key(seed, language, url)
                    if reservoir.accepts(key):
                        reservoir.add(key, lines_of(text))
                progress.advance(len(pages), chars=reservoir.chars)
    return reservoir.sorted_pages()


def _page_key(seed: int, language: str, url: str) -> int:
    # A hash of the address orders the pages in the same way for any number of shards.
    high, low = seed_pair(seed, "vocab_sample", language, url)
    return high << 31 | low


def _write_page(handle: TextIO, lines: tuple[str, ...], counts: dict[str, int]) -> None:
    """Write the lines of a page until the language reaches its target."""
    counts["pages"] += 1
    for line in lines:
        handle.write(line + "\n")
        counts["lines"] += 1
        counts["given_chars"] += len(line)
        if counts["given_chars"] >= counts["asked_chars"]:
            return


def lines_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of a page, long ones cut, as lines for the trainer."""
    return tuple(line for paragraph in text.split("\n") for line in cut_paragraph(paragraph))


def cut_paragraph(paragraph: str, max_bytes: int = MAX_LINE_BYTES) -> Iterator[str]:
    """Yield a paragraph as lines of at most `max_bytes`, cut between words.

    A single word longer than that is cut between characters; an empty paragraph yields nothing.
    """
    line, line_bytes = "", 0
    for word in paragraph.replace("\0", " ").split():  # SentencePiece drops lines with NUL
        for section in _cut_word(word, max_bytes):
            section_bytes = len(section.encode())
            if line and line_bytes + 1 + section_bytes > max_bytes:
                yield line
                line, line_bytes = "", 0
            line, line_bytes = (
                (f"{line} {section}", line_bytes + 1 + section_bytes)
                if line
                else (section, section_bytes)
            )
    if line:
        yield line


def _cut_word(word: str, max_bytes: int) -> Iterator[str]:
    if len(word.encode()) <= max_bytes:
        yield word
        return
    section_characters = max_bytes // 4  # UTF-8 takes at most four bytes a character
    for position in range(0, len(word), section_characters):
        yield word[position : position + section_characters]
