"""Settings of the user's own text (`corpus.*`) and of the stage `corpus`, which reads it."""

from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import Section
from t5repro.config.hub_address import FORM, hub_file
from t5repro.config.languages import LanguageOrNone
from t5repro.config.sections.c4 import (
    BadWordLists,
    C4Settings,
    CleanSettings,
    DedupUnit,
    PunktSettings,
)

Format = Literal["parquet", "json", "text"]
FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".json": "json",
    ".ndjson": "json",
    ".txt": "text",
}
COMPRESSIONS = (".gz", ".zst")
ENDINGS = ".parquet; .jsonl, .json, .ndjson and .txt, also with .gz or .zst"
PAGES = "pages.parquet"  # rows divided into splits by their id
ROWS_OF_SPLIT = ("train.parquet", "validation.parquet")  # if files of both splits are given


def format_of(name: str) -> Format | None:
    """Return the format of a file by the end of its name; None if it is not readable."""
    path = PurePosixPath(name)
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
        return FORMATS.get(path.suffix) if path.suffix != ".parquet" else None
    return FORMATS.get(path.suffix)


class TextRows(Section):
    """Files of the user's own text, and where a row has what."""

    files: list[str] = []
    """Files with own text, which replace the crawl: paths or patterns below `data.folder`, or
    folders there. Parquet, JSON lines (`.jsonl`, `.json`, `.ndjson`) or plain text (`.txt`); the
    last two may be compressed (`.gz`, `.zst`). `hf://datasets/OWNER/NAME/FILE` is a file of the
    Hugging Face Hub, which `data.download` fetches. If empty, the corpus is made from the crawl.
    """
    validation_files: list[str] = []
    """Files of the validation split. If set, all rows of `files` are for training. If empty,
    `c4.validation_modulus` divides the rows by their id.
    """
    text: str = Field("text", min_length=1)
    """Column with the text of a row."""
    id: str = ""
    """Column with the id of a row, such as its URL; ids must differ. If empty, the column `url` if
    the file has one, otherwise the file and the number of the row.
    """
    timestamp: str = ""
    """Column with the time of a row. If empty, the column `timestamp` if the file has one."""
    language: LanguageOrNone = ""
    """Language of all rows. If empty, `language_column` or langdetect decides."""
    language_column: str = ""
    """Column with the language of a row. If empty, `language` or langdetect decides."""
    documents: Literal["file", "paragraph", "line"] = "file"
    """Documents of a plain text: the whole file, paragraphs between blank lines, or lines."""

    @model_validator(mode="after")
    def _fits_together(self) -> "TextRows":
        for name in (*self.files, *self.validation_files):
            path = PurePosixPath(name)
            if "://" in name:
                file = hub_file(name)
                if file is None or format_of(file.path) is None:
                    raise ValueError(
                        f"corpus names the address {name!r}; allowed: {FORM}, with files that end "
                        f"in {ENDINGS}; list any other address in data.sources as the origin of a "
                        "file, and name its path here"
                    )
                continue
            if not name or path.is_absolute() or ".." in path.parts or "\0" in name:
                raise ValueError(f"corpus names {name!r}; write a path below data.folder")
        if self.validation_files and not self.files:
            raise ValueError(
                f"corpus.validation_files is {self.validation_files}, but corpus.files is empty; "
                "name the files for training too"
            )
        if self.language and self.language_column:
            raise ValueError(
                f"corpus.language is {self.language!r} and corpus.language_column is "
                f"{self.language_column!r}; keep one of them"
            )
        return self


class CorpusSettings(TextRows):
    """The user's own text instead of a crawl (`docs/own_text.md`)."""

    filters: Literal["off", "c4"] = "off"
    """Whether the rules of `c4` apply to own text. If `off`, every text is kept unchanged:
    `c4.clean.enabled`, `c4.clean.bad_words` and `c4.dedup.unit` are off unless the run file sets
    them.
    """


class CorpusC4(PunktSettings, BadWordLists):
    """The part of `c4` that reading own text needs."""

    clean: CleanSettings
    dedup: DedupUnit


class CorpusStage(Section):
    """Settings of `corpus`."""

    corpus: TextRows
    c4: CorpusC4


def row_files(corpus: TextRows) -> list[str]:
    """Return the names of the files that the stage `corpus` writes besides its manifest."""
    return list(ROWS_OF_SPLIT) if corpus.validation_files else [PAGES]


def check_text_source(corpus: CorpusSettings, c4: C4Settings) -> None:
    """Raise ValueError if own text has settings that only a crawl can have."""
    if not corpus.files:
        return
    if c4.engine != "local":
        raise ValueError(
            f"c4.engine is {c4.engine!r}, but own text (corpus.files) is read on this "
            "machine; use local"
        )
    if c4.punkt_training:
        raise ValueError(
            "c4.punkt_training is true, but Punkt is trained on the crawl, which corpus.files "
            "replaces; remove it, or name c4.punkt_parameters"
        )
    if corpus.language and corpus.language not in c4.languages:
        raise ValueError(
            f"corpus.language is {corpus.language!r}, which c4.languages "
            f"{c4.languages} does not build; add it there"
        )
