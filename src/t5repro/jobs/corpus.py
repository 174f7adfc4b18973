"""The jobs of the corpus: raw files, cleaned pages, vocabulary, ids, sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from t5repro.config.sections.c4 import C4Stage, CleanStage, DedupStage, Engine, PunktStage
from t5repro.config.sections.corpus import CorpusStage
from t5repro.config.sections.data import DataStage
from t5repro.config.sections.sentences import SentencesStage
from t5repro.config.sections.tokens import TokensStage
from t5repro.config.sections.vocab import VocabSampleStage, VocabStage
from t5repro.jobs.fields import (
    IDS,
    OPTION,
    OUTPUT,
    RAW,
    RESOURCE,
    STAGE,
    UNVERIFIED,
    WILDCARD,
    WORK,
    DataManifest,
    Folder,
    Manifest,
    Read,
    Vocabulary,
    Work,
)

Withdrawn = Annotated[Path | None, UNVERIFIED]  # git tracks it
CrawlPart = Annotated[Sequence[Path], RAW]
PathList = Annotated[Path | None, RAW]
BadWords = Annotated[Mapping[str, Path], RAW]
Punkt = Annotated[Mapping[str, Path], Read("either")]
EngineOf = Annotated[Engine, RESOURCE]
CorpusManifest = Annotated[Path, Read(listed=("*.parquet",))]


@dataclass(frozen=True)
class FetchJob:
    """Copy or download the raw inputs.

    Attributes:
        settings: settings of the stage.
        downloads: folder that keeps archives between runs, with the complete downloads of an
            interrupted run.
    """

    settings: DataStage
    downloads: Work


@dataclass(frozen=True)
class DataJob:
    """Check the raw inputs against the run file.

    Attributes:
        settings: settings of the stage.
        manifest: manifest to write.
    """

    settings: DataStage
    manifest: Manifest


@dataclass(frozen=True)
class PunktJob:
    """Train Punkt parameters on a part of the crawl.

    Attributes:
        settings: settings of the stage.
        folder: gets a folder of parameters for each language.
        manifest: manifest to write.
        wet: WET files to train on, if the job has no path list.
        wat: WAT file of each of them, if `c4.signals.source` is `wat`.
        path_list: list of the WET paths of the whole crawl, from which a sample is drawn.
        data: manifest of the rule data, which has the hashes of the raw files.
        withdrawn: list of withdrawn URLs and domains.
        work: keeps downloaded WET files until the job is done; if absent, a folder beside the
            manifest.
    """

    settings: PunktStage
    folder: Folder
    manifest: Manifest
    wet: CrawlPart = ()
    wat: CrawlPart = ()
    path_list: PathList = None
    data: DataManifest = None
    withdrawn: Withdrawn = None
    work: Annotated[Path | None, WORK] = None


@dataclass(frozen=True)
class CleanJob:
    """Clean the pages of one shard of the crawl.

    Attributes:
        settings: settings of the stage.
        pages: Parquet files to write, columns `tables.CLEANED`; `c4.clean_parts` of them.
        manifest: manifest to write.
        wet: WET files of the job, if it has no path list.
        wat: WAT file of each of them, if `c4.signals.source` is `wat`.
        path_list: list of the WET paths of the whole crawl; the job reads its part of it.
        shard: number of the job, from 0.
        bad_words: language -> list of bad words.
        punkt: language -> folder of its Punkt parameters (punkt_tab layout).
        select: name of a setting of `c4.select` -> its list.
        data: manifest of the rule data, which has the hashes of the raw files.
        withdrawn: list of withdrawn URLs and domains.
        work: keeps downloaded WET files until the job is done; if absent, a folder beside the
            manifest.
        engine: `c4.engine` and `c4.spark` as JSON, or a run file that contains them.
    """

    settings: CleanStage
    pages: Annotated[Sequence[Path], OUTPUT]
    manifest: Manifest
    wet: CrawlPart = ()
    wat: CrawlPart = ()
    path_list: PathList = None
    shard: Annotated[int, WILDCARD] = 0
    bad_words: BadWords = field(default_factory=dict)
    punkt: Punkt = field(default_factory=dict)
    select: Annotated[Mapping[str, Path], RAW] = field(default_factory=dict)
    data: DataManifest = None
    withdrawn: Withdrawn = None
    work: Annotated[Path | None, WORK] = None
    engine: EngineOf = field(default_factory=Engine)


@dataclass(frozen=True)
class OwnTextJob:
    """Read the user's own text in place of a crawl.

    Attributes:
        settings: settings of the stage.
        files: files of own text; for training, if `validation_files` are given.
        root: folder of the raw inputs, `data.folder`.
        folder: folder to write to; it gets the files of `row_files`.
        manifest: manifest to write.
        validation_files: files of the validation split.
        bad_words: language -> list of bad words.
        punkt: language -> folder of its Punkt parameters (punkt_tab layout).
        data: manifest of the rule data, which has the hashes of the raw files.
        withdrawn: list of withdrawn URLs, ids and domains.
    """

    settings: CorpusStage
    files: Annotated[Sequence[Path], RAW]
    root: Annotated[Path, OPTION]
    folder: Folder
    manifest: Manifest
    validation_files: Annotated[Sequence[Path], RAW] = ()
    bad_words: BadWords = field(default_factory=dict)
    punkt: Punkt = field(default_factory=dict)
    data: DataManifest = None
    withdrawn: Withdrawn = None


@dataclass(frozen=True)
class DedupJob:
    """Decide which pages and spans to remove.

    Attributes:
        settings: settings of the stage.
        cleaned: outputs of `c4_clean`, in any order.
        folder: folder of the decisions; it gets a file, columns `tables.DECISIONS`, with the name
            of each cleaned file.
        manifest: manifest to write.
        engine: `c4.engine` and `c4.spark` as JSON, or a run file that contains them.
    """

    settings: DedupStage
    cleaned: Annotated[Sequence[Path], STAGE]
    folder: Folder
    manifest: Manifest
    engine: EngineOf = field(default_factory=Engine)


@dataclass(frozen=True)
class CorpusJob:
    """Write the corpus by language and split.

    Attributes:
        settings: settings of the stage.
        cleaned: outputs of `c4_clean`, in any order.
        decisions: folder of the output of `c4_dedup` for them.
        folder: folder of the corpus; it gets ``{language}-{split}-{i}-of-{n}.parquet``.
        manifest: manifest to write.
        punkt: language -> folder of its Punkt parameters (punkt_tab layout).
        bad_words: language -> list of bad words.
        data: manifest of the rule data, which has the hashes of the raw files.
        engine: `c4.engine` and `c4.spark` as JSON, or a run file that contains them.
    """

    settings: C4Stage
    cleaned: Annotated[Sequence[Path], STAGE]
    decisions: Annotated[Path, STAGE]
    folder: Folder
    manifest: Manifest
    punkt: Punkt = field(default_factory=dict)
    bad_words: BadWords = field(default_factory=dict)
    data: DataManifest = None
    engine: EngineOf = field(default_factory=Engine)


@dataclass(frozen=True)
class VocabSampleJob:
    """Draw the text that the vocabulary is trained on.

    Attributes:
        settings: parts per language, characters, seed.
        corpus: manifest of the corpus.
        sample: text to write.
        manifest: manifest to write.
    """

    settings: VocabSampleStage
    corpus: CorpusManifest
    sample: Annotated[Path, OUTPUT]
    manifest: Manifest


@dataclass(frozen=True)
class VocabJob:
    """Train the SentencePiece vocabulary, or use a given one.

    Attributes:
        settings: numbers of pieces and sentinels, characters that get a piece.
        model: SentencePiece model to write.
        pieces: list of pieces to write, one ``piece<TAB>score`` a line, by id.
        manifest: manifest to write.
        sample: text to train on, unless there is a model file.
        model_file: SentencePiece model to use instead of training one.
        tokenizer: files next to the model file that may state tokens in addition to its pieces.
    """

    settings: VocabStage
    model: Annotated[Path, OUTPUT]
    pieces: Annotated[Path, OUTPUT]
    manifest: Manifest
    sample: Annotated[Path | None, STAGE] = None
    model_file: Annotated[Path | None, UNVERIFIED] = None  # the rule data compared its hash
    tokenizer: Annotated[Sequence[Path], UNVERIFIED] = ()


@dataclass(frozen=True)
class TokensJob:
    """Write the corpus as ids.

    Attributes:
        settings: languages to encode.
        corpus: manifest of the corpus.
        vocabulary: SentencePiece model.
        folder: receives ``train.ids``, ``train.offsets`` and the same files of ``validation``.
        manifest: manifest to write; counts documents and tokens of each split and language.
    """

    settings: TokensStage
    corpus: CorpusManifest
    vocabulary: Vocabulary
    folder: Folder
    manifest: Manifest


@dataclass(frozen=True)
class SentencesJob:
    """Find the sentences of the corpus in its ids.

    Attributes:
        settings: languages of the ids, and the language of the Punkt parameters of every page.
        corpus: manifest of the corpus.
        tokens: manifest of the ids of the corpus, which are in its folder.
        vocabulary: SentencePiece model.
        folder: receives ``train.sentences``, ``validation.sentences`` and ``word_starts``.
        manifest: manifest to write; counts documents and sentences of each split and language.
        punkt: language -> folder of its Punkt parameters; others are split without parameters.
        data: manifest of the rule data, which has the hashes of the raw files.
    """

    settings: SentencesStage
    corpus: CorpusManifest
    tokens: Annotated[Path, Read(listed=IDS)]
    vocabulary: Vocabulary
    folder: Folder
    manifest: Manifest
    punkt: Punkt = field(default_factory=dict)
    data: DataManifest = None
