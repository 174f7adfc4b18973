"""Settings of the corpus (`c4.*`) and of its stages, from WET to Parquet (paper section 2.2)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from t5repro.config.field import Language, Section

VariantName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]*$")]
UNDETERMINED = "und"  # in `c4.languages`: pages whose language is not sure


class SelectSettings(Section):
    """Which addresses are read at all; the raw files are listed in `data.sources`."""

    domains: str = ""
    """Raw file with the domains whose pages are read, as JSON: domain -> list of its allowed
    subdomains, or anything else for all of them; empty: every domain.
    """
    urls: str = ""
    """Raw file with the addresses whose pages are read, one a line; empty: every address."""


class LimitsSettings(Section):
    """What one record of the crawl may need; bounds the memory of a cleaning job."""

    record_chars: int = Field(4_194_304, ge=1000)
    """A longer record is dropped as `record_too_large`; characters."""
    member_bytes: int = Field(16_777_216, ge=1000)
    """A gzip member up to this, uncompressed, is used only when its checksum is right; a longer one
    is read as a stream; bytes.
    """
    gzip_expansion: int = Field(200, ge=2)
    """A member longer than that which grows more than this is dropped as `gzip_bomb`; uncompressed
    bytes per compressed byte.
    """


class LineRules(Section):
    """Rules for pages and lines that training Punkt applies too."""

    max_page_chars: int = Field(190_000, ge=1)
    """Longer pages are dropped; characters."""
    max_word_chars: int = Field(1000, ge=0)
    """A line with a longer word is dropped; characters; 0: no such rule."""
    min_words_per_line: int = Field(5, ge=1)
    """Shorter lines are dropped; words."""


class CleanSettings(LineRules):
    """Rules for one page of the crawl (paper section 2.2)."""

    min_sentences: int = Field(3, ge=0)
    """Pages with fewer are dropped; sentences."""
    min_paragraphs: int = Field(0, ge=0)
    """Pages with fewer long paragraphs are dropped, as mC4 does with 3; lines."""
    paragraph_chars: int = Field(200, ge=1)
    """A line is a long paragraph from this on; characters."""
    bad_words: Literal["page", "line_2019", "off"] = "page"
    """Where listed words are looked for: the finished page, each line as the code of 2019 did, or
    nowhere (`en.noblocklist`).
    """
    bad_word_fraction: float = Field(1.0, gt=0, le=1)
    """Share of the pages with a listed word that are dropped, chosen by their URL; mC4: 0.999."""
    enabled: bool = True
    """False: no rule looks at lines or sentences, as in the paper's unfiltered C4."""


class DedupUnit(Section):
    """The part of `c4.dedup` that cleaning reads: what to hash."""

    unit: Literal["three_sentence_span", "line", "off"] = "three_sentence_span"
    """What is kept only once in the whole corpus: spans of three sentences as in the paper, lines
    as in TFDS 3, or nothing.
    """


class DedupSettings(DedupUnit):
    """Removal of repeated text (paper section 2.2)."""

    min_sentences: int = Field(3, ge=0)
    """Pages left with fewer are dropped; sentences."""


class SparkSettings(Section):
    """Apache Spark, when it builds the corpus (`docs/run_on_spark.md`)."""

    master: str = "local[*]"
    """The cluster: `spark://host:7077`, `yarn`, `k8s://…`, or `local[2]`."""
    partitions: int = Field(0, ge=0)
    """Tasks of a sorting step; 0: by the number of rows and of cores."""
    driver_memory: str = "2g"
    """Memory of the driver, which never holds a page's text."""
    executor_memory: str = "2g"
    """Memory of an executor's JVM; Python's is beside it."""
    python: str = ""
    """Interpreter on the workers, with this project's packages; empty: the path of this one."""
    packages: list[str] = []
    """Maven coordinates of further jars."""
    conf: dict[str, str] = {}
    """Further settings of Spark, by their names, `spark.…`."""


class Engine(Section):
    """What runs the steps of `c4`: decides no byte, so no stage receives it."""

    engine: Literal["local", "spark"] = "local"
    """What runs the steps: this machine or Apache Spark; both make the same bytes."""
    spark: SparkSettings = SparkSettings()
    """The cluster, if `c4.engine` is `spark`."""


class CrawlSettings(Section):
    """Which files of the crawl are read, and their limits."""

    crawl: list[str] = ["crawl/*"]
    """Which raw files are WET files: patterns over paths in `data.sources`."""
    crawl_paths: str = ""
    """Raw file that lists WET paths, one a line (`wet.paths.gz`); used instead of `c4.crawl`."""
    crawl_prefix: str = ""
    """Where the listed paths begin: a folder, or an address, `https://`, `s3://` or `gs://`."""
    limits: LimitsSettings = LimitsSettings()
    """What one record may need."""


class LanguagesSettings(Section):
    """The languages of the corpus."""

    languages: list[Language] = ["en", "de", "fr", "ro"]
    """Languages the corpus is split into; others are dropped."""


class PunktSettings(Section):
    """Which Punkt parameters split sentences."""

    punkt_parameters: dict[Language, str] = {}
    """Language -> folder below `data.folder` with its Punkt parameters in NLTK's `punkt_tab`
    layout; they go before trained ones.
    """
    punkt_training: bool = True
    """Train Punkt parameters on the crawl for every language without given ones; false: those are
    split by Punkt without parameters.
    """
    punkt_language: str = Field("", pattern=r"^([a-z]{2,3}(-[a-z]{2})?)?$")
    """Language whose parameters split every page, as the released code does with `en`; empty: those
    of the page's own language, guessed by langdetect.
    """


class PunktSample(Section):
    """The text that Punkt parameters are trained on."""

    punkt_sample_files: int = Field(8, ge=1)
    """WET files that Punkt parameters are trained on, evenly spread over the crawl."""
    punkt_sample_chars: int = Field(4_000_000, ge=1000)
    """Text that Punkt parameters are trained on; characters a language."""


class BadWordLists(Section):
    """Lists of bad words."""

    bad_word_lists: dict[Language, str] = {}
    """Language -> raw file with one listed word a line; languages without pass."""


class CleaningJobs(Section):
    """How the crawl is divided into cleaning jobs, and which of its records they read."""

    clean_shards: int = Field(1, ge=1)
    """Number of cleaning jobs; WET file i goes to job i modulo this."""
    on_bad_record: Literal["skip", "fail"] = "skip"
    """What damage in the crawl does: `skip` counts and names it and goes on with the next page that
    is whole, `fail` stops at the first.
    """
    select: SelectSettings = SelectSettings()
    """Which addresses are read at all."""


class CorpusFiles(Section):
    """Which pages the corpus has, and in which files."""

    min_language_probability: float = Field(0.99, gt=0, le=1)
    """Langdetect's probability under which a page is dropped."""
    require_pages: bool = True
    """A language of `c4.languages` without a page stops the run; false: its files are empty."""
    output_shards: int = Field(1, ge=1)
    """Parquet files per language and split."""
    validation_modulus: int = Field(1000, ge=2)
    """A page is held out when md5(normalised URL) modulo this is 0; pages."""


class C4Settings(
    CrawlSettings,
    LanguagesSettings,
    PunktSettings,
    PunktSample,
    BadWordLists,
    CleaningJobs,
    CorpusFiles,
    Engine,
):
    """From WET files to the corpus (`docs/decisions`, paper section 2.2)."""

    recipe: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")] = "paper"
    """File of parameters below `configs/c4/` to start from."""
    variant: VariantName = ""
    """File below `configs/c4/variants/` that is laid over the recipe; empty: none."""
    clean: CleanSettings = CleanSettings()
    """Rules for one page."""
    dedup: DedupSettings = DedupSettings()
    """Removal of repeated text."""


class PunktC4(CrawlSettings, LanguagesSettings, PunktSettings, PunktSample):
    """The part of `c4` that training Punkt reads."""

    clean: LineRules


class PunktStage(Section):
    """Settings of `c4_punkt`."""

    c4: PunktC4


class CleanC4(CrawlSettings, PunktSettings, BadWordLists, CleaningJobs):
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


def languages_to_train(c4: PunktC4 | C4Settings) -> list[str]:
    """Return the languages for which `c4_punkt` trains parameters."""
    if not c4.punkt_training:
        return []
    required = [c4.punkt_language] if c4.punkt_language else c4.languages
    return [name for name in required if name not in c4.punkt_parameters and name != UNDETERMINED]
