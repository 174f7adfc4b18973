"""Settings of the corpus (`c4.*`) and of its stages, from WET to Parquet (paper section 2.2)."""

from collections.abc import Collection
from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.corpus_files import SPLITS, CorpusFile
from t5repro.config.field import Section, check_names
from t5repro.config.languages import Language, LanguageOrNone
from t5repro.config.sections.tokens import TokensSettings
from t5repro.config.sections.vocab import RunVocab

PUNKT_FILES = (  # of one language, in NLTK's `punkt_tab` layout
    "abbrev_types.txt",
    "collocations.tab",
    "ortho_context.tab",
    "sent_starters.txt",
)
DroppingSignal = Literal["tdm_reserved", "usage_refused", "noai", "noindex", "unknown"]
UNDETERMINED = "und"  # in `c4.languages`: pages without a certain language


class SelectSettings(Section):
    """Selection of pages by URL. The raw files must be listed in `data.sources`."""

    domains: str = ""
    """Raw JSON file with the domains to read: domain -> list of its allowed subdomains; any other
    value allows all of them. If empty, every domain is read.
    """
    urls: str = ""
    """Raw file with the URLs to read, one per line. If empty, every URL is read."""


class LimitsSettings(Section):
    """Limits on a record of the crawl, which bound the memory of a cleaning job."""

    record_chars: int = Field(4_194_304, ge=1000)
    """Maximum length of a record; characters. Longer ones are dropped as `record_too_large`."""
    member_bytes: int = Field(16_777_216, ge=1000)
    """Maximum size of a gzip member that is read at once and used only with a correct checksum;
    uncompressed bytes. Larger ones are read as a stream.
    """
    gzip_expansion: int = Field(200, ge=2)
    """Maximum expansion of a gzip member larger than `member_bytes`; uncompressed bytes per
    compressed byte. Others are dropped as `gzip_bomb`.
    """


class LineRules(Section):
    """Rules for pages and lines that the training of Punkt also applies."""

    max_page_chars: int = Field(190_000, ge=1)
    """Maximum length of a page; characters. Longer pages are dropped."""
    max_word_chars: int = Field(1000, ge=0)
    """Maximum length of a word; characters. Lines with a longer one are dropped. 0 means no limit.
    """
    min_words_per_line: int = Field(5, ge=1)
    """Minimum length of a line; words. Shorter lines are dropped."""


class CleanSettings(LineRules):
    """Rules for one page of the crawl (paper section 2.2)."""

    min_sentences: int = Field(3, ge=0)
    """Minimum length of a page; sentences. Shorter pages are dropped."""
    min_paragraphs: int = Field(0, ge=0)
    """Minimum number of long paragraphs of a page; lines. mC4 uses 3."""
    paragraph_chars: int = Field(200, ge=1)
    """Minimum length of a long paragraph; characters."""
    bad_words: Literal["page", "line_2019", "off"] = "page"
    """Scope of the bad-word filter: the cleaned page, each line as in the code of 2019, or off
    (`en.noblocklist`).
    """
    bad_word_fraction: float = Field(1.0, gt=0, le=1)
    """Fraction of the pages with a bad word that are dropped, selected by URL. mC4 uses 0.999."""
    enabled: bool = True
    """Whether rules for lines and sentences apply. If false, as in the paper's unfiltered C4."""


class DedupUnit(Section):
    """The part of `c4.dedup` that cleaning reads: the unit to hash."""

    unit: Literal["three_sentence_span", "line", "off"] = "three_sentence_span"
    """Unit of deduplication, kept once in the whole corpus: spans of three sentences as in the
    paper, lines as in TFDS 3, or none.
    """


class DedupSettings(DedupUnit):
    """Deduplication (paper section 2.2)."""

    min_sentences: int = Field(3, ge=0)
    """Minimum length of a page after deduplication; sentences. Shorter pages are dropped."""


class SparkSettings(Section):
    """Apache Spark as the engine of `c4` (`docs/run_on_spark.md`)."""

    master: str = "local[*]"
    """Master URL: `spark://host:7077`, `yarn`, `k8s://…` or `local[2]`."""
    partitions: int = Field(0, ge=0)
    """Partitions of a shuffle. 0 means a number derived from the rows and cores."""
    driver_memory: str = "2g"
    """Memory of the driver, such as `2g`. It never contains the text of pages."""
    executor_memory: str = "2g"
    """Memory of an executor's JVM, such as `2g`. Python workers need additional memory."""
    python: str = ""
    """Python interpreter of the workers, with this project's packages. If empty, the current one.
    """
    packages: list[str] = []
    """Maven coordinates of additional jars."""
    conf: dict[str, str] = {}
    """Additional properties of Spark: `spark.…` -> value."""


class Engine(Section):
    """Engine of `c4`. It affects no byte of the corpus, so no stage receives it."""

    engine: Literal["local", "spark"] = "local"
    """Engine: this machine or Apache Spark. Both produce the same bytes."""
    spark: SparkSettings = SparkSettings()
    """Apache Spark, if `c4.engine` is `spark`."""


class CrawlSettings(Section):
    """Files of the crawl and limits on their records."""

    crawl: list[str] = ["crawl/*"]
    """WET files: patterns for paths in `data.sources`."""
    crawl_paths: str = ""
    """Raw file with a list of WET paths, such as `wet.paths.gz`. If set, replaces `c4.crawl`."""
    crawl_prefix: str = ""
    """Prefix of the paths in `c4.crawl_paths`: a folder, or `https://…`, `s3://…`, `gs://…`."""
    limits: LimitsSettings = LimitsSettings()
    """Limits on a record."""
    warc_1_1: Literal["read", "refuse"] = "read"
    """Handling of WET files with records of WARC/1.1: `read`, as files of WARC/1.0, the only
    version that the released code knows; or `refuse`, which counts them as `not_wet`.
    """


class LanguagesSettings(Section):
    """The languages of the corpus."""

    languages: list[Language] = ["en", "de", "fr", "ro"]
    """Languages of the corpus. Pages in other languages are dropped."""


class PunktSettings(Section):
    """Punkt parameters for splitting sentences."""

    punkt_parameters: dict[Language, str] = {}
    """Language -> folder below `data.folder` with Punkt parameters in NLTK's `punkt_tab` layout.
    They take precedence over trained ones.
    """
    punkt_training: bool = True
    """Whether to train Punkt parameters on the crawl for languages without `punkt_parameters`. If
    false, Punkt splits these languages without parameters.
    """
    punkt_language: LanguageOrNone = ""
    """Language of the parameters that split every page; the released code uses `en`. If empty, the
    language that langdetect finds for the page.
    """


class PunktSample(Section):
    """Training sample of the Punkt parameters."""

    punkt_sample_files: int = Field(8, ge=1)
    """Number of WET files in the sample, evenly spaced over the crawl; files."""
    punkt_sample_chars: int = Field(4_000_000, ge=1000)
    """Maximum size of the sample; characters per language."""


class BadWordLists(Section):
    """Lists of bad words."""

    bad_word_lists: dict[Language, str] = {}
    """Language -> raw file with one bad word per line. Other languages are not filtered."""


class CleaningJobs(Section):
    """Division of the crawl into cleaning jobs, and selection of its records."""

    clean_shards: int = Field(1, ge=1)
    """Number of cleaning jobs; jobs. Job i % n reads WET file i."""
    clean_parts: int = Field(1, ge=1, le=1000)
    """Number of files that a cleaning job writes; files. File p has the pages of each n-th WET file
    of the job from p on. On Spark each file is written by a task of its own.
    """
    on_bad_record: Literal["skip", "fail"] = "skip"
    """Handling of damaged records: `skip` counts and reports them and continues with the next
    intact page; `fail` stops at the first.
    """
    select: SelectSettings = SelectSettings()
    """Selection of pages by URL."""


class CorpusFiles(Section):
    """Pages of the corpus and their division into files."""

    min_language_probability: float = Field(0.99, gt=0, le=1)
    """Minimum probability of langdetect. Pages below it are dropped."""
    require_pages: bool = True
    """Whether a language without pages stops the run. If false, its files are empty."""
    output_shards: int = Field(1, ge=1)
    """Number of Parquet files per language and split; files."""
    validation_modulus: int = Field(1000, ge=2)
    """One page in this many is in the validation split: md5(normalised URL) modulo this is 0."""


class SignalsSettings(Section):
    """Reservations of rights and licences that pages of the crawl state (D-060)."""

    source: Literal["none", "text", "wat"] = "none"
    """Where the signals of a page are read: nowhere; in its text (`text`: mentions of licences,
    which are counted and never drop a page); or in the WAT file beside its WET file (`wat`: HTTP
    headers, metadata for robots, links of licences).
    """
    drop: list[DroppingSignal] = []
    """Signals that drop a page: `tdm_reserved` (TDM-Reservation), `usage_refused` (Content-Usage),
    `noai`, `noindex`, and `unknown`, no record in the WAT file.
    """

    @model_validator(mode="after")
    def _can_drop(self) -> "SignalsSettings":
        check_names("c4.signals.drop", self.drop)
        if self.drop and self.source != "wat":
            raise ValueError(
                f"c4.signals.drop is {self.drop}, and c4.signals.source {self.source!r} drops no "
                "page; set c4.signals.source to wat, or empty c4.signals.drop"
            )
        return self


class PageSignals(Section):
    """Signals of pages."""

    # Left out of recorded settings where it is the default: corpora from before it was a setting
    # agree with those of today.
    signals: SignalsSettings = Field(
        SignalsSettings(), exclude_if=lambda signals: signals == SignalsSettings()
    )
    """Reservations and licences that pages state. If they are not read, the setting is not
    recorded.
    """


class C4Settings(
    CrawlSettings,
    PageSignals,
    LanguagesSettings,
    PunktSettings,
    PunktSample,
    BadWordLists,
    CleaningJobs,
    CorpusFiles,
    Engine,
):
    """The corpus, built from WET files (paper section 2.2)."""

    clean: CleanSettings = CleanSettings()
    """Rules for one page."""
    dedup: DedupSettings = DedupSettings()
    """Deduplication."""

    @model_validator(mode="after")
    def _allowed_pages_are_read(self) -> "C4Settings":
        if self.limits.record_chars < self.clean.max_page_chars:
            raise ValueError(
                f"c4.limits.record_chars {self.limits.record_chars} is less than "
                f"c4.clean.max_page_chars {self.clean.max_page_chars} and would drop pages that "
                "the rules allow; increase it"
            )
        return self


def check_languages(c4: C4Settings, tokens: TokensSettings, vocab: RunVocab) -> None:
    """Raise ValueError if a list of languages is empty or has a language that is not built."""
    lists: dict[str, Collection[str]] = {
        "c4.languages": c4.languages,
        "tokens.languages": tokens.languages,
        "vocab.language_parts": vocab.language_parts,
    }
    for key, languages in lists.items():
        if not languages:
            raise ValueError(f"{key} is empty; name at least one")
        # Another experiment's vocabulary has the languages of its corpus.
        other_corpus = key == "vocab.language_parts" and vocab.from_experiment
        if not other_corpus and (missing := sorted(set(languages) - set(c4.languages))):
            raise ValueError(
                f"{key} names {missing}, which c4.languages {sorted(c4.languages)} does not build"
            )


class PunktC4(CrawlSettings, PageSignals, LanguagesSettings, PunktSettings, PunktSample):
    """The part of `c4` that training Punkt reads."""

    clean: LineRules


class PunktStage(Section):
    """Settings of `c4_punkt`."""

    c4: PunktC4


class CleanC4(CrawlSettings, PageSignals, PunktSettings, BadWordLists, CleaningJobs):
    """The part of `c4` that cleaning reads."""

    clean: CleanSettings
    dedup: DedupUnit


class CleanStage(Section):
    """Settings of `c4_clean`."""

    c4: CleanC4


class DedupC4(Section):
    """The part of `c4` that deduplication reads."""

    dedup: DedupSettings


class DedupStage(Section):
    """Settings of `c4_dedup`."""

    c4: DedupC4


class WriteC4(LanguagesSettings, PunktSettings, BadWordLists, CorpusFiles):
    """The part of `c4` that writing the corpus reads."""

    clean: CleanSettings
    dedup: DedupSettings


class C4Stage(Section):
    """Settings of `c4`, which writes the corpus."""

    c4: WriteC4


def corpus_files(c4: WriteC4 | C4Settings) -> list[str]:
    """Return the names of the files of the corpus, grouped by language and split."""
    return [
        CorpusFile(name, split, number, c4.output_shards).name
        for name in c4.languages
        for split in SPLITS
        for number in range(c4.output_shards)
    ]


def languages_to_train(c4: PunktC4 | C4Settings) -> list[str]:
    """Return the languages for which `c4_punkt` trains parameters."""
    if not c4.punkt_training:
        return []
    required = [c4.punkt_language] if c4.punkt_language else c4.languages
    return [name for name in required if name not in c4.punkt_parameters and name != UNDETERMINED]
