"""The pieces of a text with their positions in it, and the pieces that begin a word.

Stages that need only ids use `vocabulary`: reading positions takes eight times longer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from t5repro.array_types import Int64
from t5repro.vocab.vocabulary import Vocabulary


class Pieces(NamedTuple):
    """The pieces of a text.

    Attributes:
        ids: their ids, ``(pieces,)``.
        begins: position of the first character of each, ascending; the space before a word
            belongs to its first piece. A piece that only normalization inserts has the position of
            the next one.
    """

    ids: Int64
    begins: Int64


class PieceOffsets:
    """A vocabulary that reports positions.

    Attributes:
        total_ids: pieces and sentinels.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pieces = vocabulary.pieces
        self.total_ids = vocabulary.total_ids

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the vocabulary of a run.

        Raises:
            ArtifactError: it is missing or damaged.
            VocabularyError: its special ids are not T5's.
        """
        return cls(Vocabulary.load(path))

    def encode_batch(self, texts: Sequence[str], threads: int = 1) -> list[Pieces]:
        """Return the pieces of each text, without EOS; they do not depend on `threads`."""
        return [
            Pieces(np.array(ids, np.int64), np.array(ranges, np.int64).reshape(-1, 2)[:, 0])
            for ids, ranges in self._pieces.encode_ranges(texts, threads)
        ]

    def word_starts(self) -> npt.NDArray[np.uint8]:
        """Return 1 for ids of pieces that begin a word or are not text, else 0; ``(total_ids,)``.

        Pieces that are not text are the control pieces, the unknown piece and the sentinels.

        Raises:
            VocabularyError: the pieces of the vocabulary do not tell.
        """
        return np.array(self._pieces.word_starts(), np.uint8)
