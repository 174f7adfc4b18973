"""The rule `c4_punkt`: train Punkt's parameters on the crawl (Kiss and Strunk 2006).

Punkt learns from plain text which words are abbreviations, so a language without published
parameters needs only pages, and a run needs no download. Training precedes cleaning, because
cleaning counts sentences. The training text consists of

- `c4.punkt_sample_files` WET files at equal distances in the crawl;
- of each page the lines that pass the rules for lines, without a minimum of sentences;
- pages with a language probability of at least `MIN_PROBABILITY` by langdetect;
- for each language the pages with the smallest MD5 of their URL, up to `c4.punkt_sample_chars`, and
  the first of equal lines.

The parameters therefore depend on the crawl and the settings, and not on any order.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nltk.tokenize.punkt import PunktTrainer

from t5repro.c4.keys import md5
from t5repro.c4.page_signals import drop_reason, limits_of, signals_by_file, wat_files
from t5repro.c4.text import language
from t5repro.c4.text.fast_rules import clean_bodies
from t5repro.c4.text.rules import CleanRules
from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet.pages import SignalsOf
from t5repro.c4.wet.reader import CleanTally, Reader, groups, megabytes
from t5repro.config.sections.c4 import PUNKT_FILES, CleanSettings, languages_to_train
from t5repro.config.withdrawn import read_pages as read_withdrawn
from t5repro.data.crawl_lists import CrawlFiles, default_work, local_copies, sample_of_crawl
from t5repro.files import write_manifest, write_text
from t5repro.jobs.corpus import PunktJob
from t5repro.progress import Progress

MIN_PROBABILITY = 0.99  # of the detected language

Rank = tuple[bytes, str, int]  # MD5 of the URL, name of the file, record


def train_punkt(job: PunktJob) -> None:
    """Write parameters in NLTK's ``punkt_tab`` layout for every language that has none.

    Raises:
        CrawlError: a WET file cannot be read; damage is skipped even if `c4.on_bad_record` is
            `fail`.
        RawDataError: the path list cannot be read, or a download fails.
    """
    c4 = job.settings.c4
    samples = {name: _Sample(c4.punkt_sample_chars) for name in languages_to_train(c4)}
    crawl, tally = _crawl_sample(job), CleanTally()
    work = job.work or default_work(job.manifest)
    with (
        local_copies(crawl, work) as wet,
        signals_by_file(c4, wat_files(job, crawl), work / "wat", tally) as (signals, wat),
    ):
        files = zip(wet.as_they_arrive(), signals, strict=False)
        with Progress("c4_punkt", total=megabytes(wet), unit="MB") as progress:
            for rank, text, name in _pages_by_language(job, files, tally, progress):
                if name in samples:
                    samples[name].add(rank, text)
        inputs: list[Any] = [*wet.described().values(), *wat.described().values()]
    outputs: list[Path] = []
    counters: dict[str, Any] = {}
    for name, sample in sorted(samples.items()):
        text = sample.text()
        parameters = train(text)
        for file, rows in parameters.items():
            outputs.append(job.folder / name / file)
            write_text(outputs[-1], "".join(f"{row}\n" for row in rows))
        counters[name] = {
            "pages": sample.pages,
            "characters": len(text),
            **{file.partition(".")[0]: len(rows) for file, rows in parameters.items()},
        }
    if job.withdrawn and read_withdrawn(job.withdrawn):
        inputs.append(job.withdrawn)
    write_manifest(
        job.manifest,
        rule="c4_punkt",
        settings=job.settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=outputs,
        counters={"languages": counters, "detector": language.detector_version()},
    )


def train(text: str) -> dict[str, list[str]]:
    """Return the rows of each file of ``punkt_tab`` that Punkt learns from `text`, sorted.

    Source: NLTK, ``PunktTrainer`` with its own thresholds. `text` is one piece, because the result
    of training on pieces depends on how they are divided.
    """
    trainer = PunktTrainer()
    if text:
        trainer.train(text, finalize=True)
    # Without text there is nothing to finalize: the initial parameters are empty.
    learned = trainer.get_params() if text else trainer._params
    context = learned.ortho_context.items()
    rows = {
        "abbrev_types.txt": sorted(learned.abbrev_types),
        "collocations.tab": sorted(f"{first}\t{second}" for first, second in learned.collocations),
        "ortho_context.tab": sorted(f"{word}\t{int(flags)}" for word, flags in context),
        "sent_starters.txt": sorted(learned.sent_starters),
    }
    return {name: rows[name] for name in PUNKT_FILES}


def _crawl_sample(job: PunktJob) -> CrawlFiles:
    """Return the WET files of the sample.

    Raises:
        RawDataError: the path list is empty or cannot be read.
    """
    c4 = job.settings.c4
    return sample_of_crawl(
        job.wet, job.path_list, prefix=c4.crawl_prefix, count=c4.punkt_sample_files
    )


def _pages_by_language(
    job: PunktJob,
    files: Iterable[tuple[Path, SignalsOf | None]],
    tally: CleanTally,
    progress: Progress,
) -> Iterator[tuple[Rank, str, str]]:
    """Yield rank, cleaned text and language of the pages in a clear language."""
    c4 = job.settings.c4
    # Sentences cannot be counted yet: their splitter is being trained.
    clean = CleanSettings(**c4.clean.model_dump(), min_sentences=0)
    rules = CleanRules(clean, SentenceSplitter())
    withdrawn = read_withdrawn(job.withdrawn)
    reader = Reader(
        c4.clean.max_page_chars,
        tally,
        limits=limits_of(c4),
        reads_warc_1_1=c4.warc_1_1 == "read",
        withdrawn=withdrawn or None,
        progress=progress,
    )
    pages = (page for path, signals in files for page in reader.usable_pages(path, signals))
    if c4.signals.drop:
        reason_of = drop_reason(c4.signals.drop)
        pages = (page for page in pages if not reason_of(page[1]))
    for group in groups(pages):
        texts = [cleaned.text for cleaned in clean_bodies([page for _, page in group], rules)]
        languages = language.detect_languages(texts)
        for (file, page), text, detected in zip(group, texts, languages, strict=True):
            if text and detected.probability >= MIN_PROBABILITY:
                yield (md5(page.url), file, page.record), text, detected.language


class _Sample:
    """The pages with the smallest ranks that together have `max_chars` characters."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._pages: list[tuple[Rank, str]] = []
        self._chars = 0

    @property
    def pages(self) -> int:
        """Number of pages of the sample."""
        self._prune()
        return len(self._pages)

    def add(self, rank: Rank, text: str) -> None:
        """Offer a page."""
        self._pages.append((rank, text))
        self._chars += len(text)
        # Pruning at twice the size keeps the number of sorts small.
        if self._chars > 2 * self._max_chars:
            self._prune()

    def _prune(self) -> None:
        """Drop every page beyond the first `max_chars` characters."""
        self._pages.sort()
        chars = pages = 0
        while pages < len(self._pages) and chars < self._max_chars:
            chars += len(self._pages[pages][1])
            pages += 1
        del self._pages[pages:]
        self._chars = chars

    def text(self) -> str:
        """Return the distinct lines of all pages in order, with a blank line between pages."""
        self._prune()
        line_keys: set[bytes] = set()
        pages = []
        for _, text in self._pages:
            lines = [line for line in text.split("\n") if _add_new(line, line_keys)]
            pages.append("\n".join(lines))
        return "\n\n".join(filter(None, pages))


def _add_new(line: str, keys: set[bytes]) -> bool:
    """Add the hash of a line and return whether it is new; hashes need less memory than lines."""
    key = md5(line)
    if key in keys:
        return False
    keys.add(key)
    return True
