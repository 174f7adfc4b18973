"""Names of the corpus's files: ``{language}-{split}-{number}-of-{count}.parquet``."""

import re
from pathlib import PurePath
from typing import NamedTuple

from t5repro.config.languages import PATTERN

SPLITS = ("train", "validation")
_NAME = re.compile(
    rf"(?P<language>{PATTERN})-(?P<split>{'|'.join(SPLITS)})-"
    r"(?P<number>\d{5})-of-(?P<total>\d{5})\.parquet"
)


class CorpusFile(NamedTuple):
    """The parts of the name of a file.

    Attributes:
        language: code, perhaps with a region, such as ``zh-cn``.
        split: ``train`` or ``validation``.
        number: of the file among the files of its language and split, from 0.
        total: number of these files.
    """

    language: str
    split: str
    number: int
    total: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.language}-{self.split}-{self.number:05d}-of-{self.total:05d}.parquet"


def corpus_file(path: PurePath | str) -> CorpusFile | None:
    """Return the parts of the name of a path; None if it is not a file of the corpus."""
    match = _NAME.fullmatch(PurePath(path).name)
    if match is None:
        return None
    return CorpusFile(match["language"], match["split"], int(match["number"]), int(match["total"]))
