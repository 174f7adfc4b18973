"""Train Punkt's parameters on the crawl itself, one set a language (Kiss and Strunk 2006).

Punkt learns from text alone which words are abbreviations, so a language without published
parameters needs nothing but pages, and a run needs no download. It trains before the pages are
cleaned, because cleaning counts sentences. What it trains on:

- `c4.punkt_sample_files` WET files, evenly spread over the crawl;
- of each page the lines that the rules for lines let pass; whether it has enough sentences is not
  asked;
- the language that langdetect guesses for them, where it is as sure as `MIN_PROBABILITY`;
- of each language the pages with the smallest MD5 of their URL, up to `c4.punkt_sample_chars`, and
  of equal lines the first.

So the parameters depend on the crawl and the settings and on no order.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nltk.tokenize.punkt import PunktTrainer

from t5repro.c4 import tables
from t5repro.c4.dedup import spans as dedup_spans
from t5repro.c4.text import language
from t5repro.c4.text import rules as page_rules
from t5repro.c4.text.sentences import PARAMETER_FILES, SentenceSplitter
from t5repro.c4.wet.gzip_members import Limits
from t5repro.c4.wet.reader import CleanTally, NamedPage, Reader, groups, megabytes
from t5repro.config.sections.c4 import CleanSettings, PunktStage, languages_to_train
from t5repro.config.withdrawn import read_pages
from t5repro.files import describe_file, write_manifest, write_text
from t5repro.progress import Progress

MIN_PROBABILITY = 0.99  # of the guess; a page of doubtful language teaches little

Rank = tuple[bytes, str, int]  # MD5 of the URL, name of the file, record


def train_punkt(
    settings: PunktStage,
    *,
    wet: Sequence[Path],
    folder: Path,
    manifest: Path,
    withdrawn: Path | None = None,
    names: Mapping[Path, str] | None = None,
) -> None:
    """Write parameters in NLTK's ``punkt_tab`` layout for every language that is given none.

    Args:
        settings: what the rule `c4_punkt` reads.
        wet: the WET files to train on, in any order.
        folder: gets a folder for each language.
        manifest: manifest to write.
        withdrawn: list of withdrawn URLs and domains; None: there is none.
        names: what the manifest calls WET files that lie under a temporary path.

    Raises:
        CrawlError: a WET file cannot be read; damage is skipped, whatever cleaning does with it.
    """
    files = tables.in_order(wet)
    samples = {
        name: _Sample(settings.c4.punkt_sample_chars) for name in languages_to_train(settings.c4)
    }
    with Progress("c4_punkt", total=megabytes(files), unit="MB") as progress:
        for rank, text, found in _guessed(settings, files, withdrawn, progress):
            if found in samples:
                samples[found].add(rank, text)
    outputs: list[Path] = []
    counters: dict[str, Any] = {}
    for name, sample in sorted(samples.items()):
        text = sample.text()
        parameters = trained(text)
        for file, rows in parameters.items():
            outputs.append(folder / name / file)
            write_text(outputs[-1], "".join(f"{row}\n" for row in rows))
        counters[name] = {
            "pages": sample.pages,
            "characters": len(text),
            **{file.partition(".")[0]: len(rows) for file, rows in parameters.items()},
        }
    write_manifest(
        manifest,
        rule="c4_punkt",
        settings=settings.model_dump(mode="json"),
        inputs=[
            {**describe_file(path), "path": (names or {}).get(path, path.as_posix())}
            for path in files
            if path.is_file()
        ]
        + ([withdrawn] if withdrawn and read_pages(withdrawn) else []),
        outputs=outputs,
        counters={"languages": counters, "detector": language.detector_version()},
    )


def trained(text: str) -> dict[str, list[str]]:
    """Return the rows of each file of ``punkt_tab`` that Punkt learns from `text`, sorted.

    Source: NLTK, ``PunktTrainer`` with its own thresholds; `text` is taken in one piece, since
    what Punkt learns from pieces depends on where they begin.
    """
    trainer = PunktTrainer()
    if text:
        trainer.train(text, finalize=True)
    found = trainer.get_params() if text else trainer._params  # the empty ones
    rows = {
        "abbrev_types.txt": sorted(found.abbrev_types),
        "collocations.tab": sorted(f"{first}\t{second}" for first, second in found.collocations),
        "ortho_context.tab": sorted(f"{word}\t{int(f)}" for word, f in found.ortho_context.items()),
        "sent_starters.txt": sorted(found.sent_starters),
    }
    return {name: rows[name] for name in PARAMETER_FILES}


def _guessed(
    settings: PunktStage, files: Iterable[Path], withdrawn: Path | None, progress: Progress
) -> Iterator[tuple[Rank, str, str]]:
    """Yield rank, good lines and language of the pages of which the latter is clear."""
    chosen = settings.c4
    rules = page_rules.CleanRules(
        CleanSettings(**chosen.clean.model_dump(), min_sentences=0), SentenceSplitter()
    )
    limits = Limits(
        chosen.limits.record_chars, chosen.limits.member_bytes, chosen.limits.gzip_expansion
    )
    gone = read_pages(withdrawn)
    reader = Reader(
        chosen.clean.max_page_chars,
        CleanTally(),
        limits=limits,
        withdrawn=gone.holds if gone else None,
        progress=progress,
    )
    for group in groups(page for path in files for page in reader.usable_pages(path)):
        texts = [page_rules.clean_body(page.body, rules, page.other_ends).text for _, page in group]
        found = language.detect_languages(texts)
        for item, text, guess in zip(group, texts, found, strict=True):
            if text and guess.probability >= MIN_PROBABILITY:
                yield _rank(item), text, guess.language


def _rank(item: NamedPage) -> Rank:
    file, page = item
    return dedup_spans.digest(page.url), file, page.record


class _Sample:
    """The pages with the smallest ranks that together have enough characters."""

    def __init__(self, chars: int) -> None:
        self._wanted = chars
        self._held: list[tuple[Rank, str]] = []
        self._chars = 0

    @property
    def pages(self) -> int:
        """Pages of the sample."""
        self._prune()
        return len(self._held)

    def add(self, rank: Rank, text: str) -> None:
        """Offer a page."""
        self._held.append((rank, text))
        self._chars += len(text)
        if self._chars > 2 * self._wanted:
            self._prune()

    def _prune(self) -> None:
        """Let go of every page that is not needed for the characters that are wanted."""
        self._held.sort()
        total = kept = 0
        while kept < len(self._held) and total < self._wanted:
            total += len(self._held[kept][1])
            kept += 1
        del self._held[kept:]
        self._chars = total

    def text(self) -> str:
        """Return the lines of all pages in order, each line once, pages with a line between."""
        self._prune()
        seen: set[bytes] = set()
        pages = []
        for _, text in self._held:
            lines = [line for line in text.split("\n") if _is_new(line, seen)]
            pages.append("\n".join(lines))
        return "\n\n".join(filter(None, pages))


def _is_new(line: str, seen: set[bytes]) -> bool:
    key = hashlib.md5(line.encode(), usedforsecurity=False).digest()
    if key in seen:
        return False
    seen.add(key)
    return True
