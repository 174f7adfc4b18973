"""The pieces of a text with their positions in it, and the pieces that begin a word.

Stages that need only ids use `vocabulary`: reading positions takes eight times longer.
"""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import sentencepiece

from t5repro.array_types import Int64
from t5repro.vocab.vocabulary import Vocabulary

SPACE = "\u2581"  # SentencePiece's sign for a space, at the start of a word
PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')  # ALBERT's list has no apostrophe
ENGLISH_LETTERS = frozenset(string.ascii_lowercase)


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

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._processor = processor
        self.total_ids: int = processor.get_piece_size()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a SentencePiece model.

        Raises:
            ArtifactError: it is missing or damaged.
            VocabularyError: its special ids are not T5's.
        """
        Vocabulary.load(path)
        processor = sentencepiece.SentencePieceProcessor()
        processor.load_from_serialized_proto(path.read_bytes())
        return cls(processor)

    def encode_batch(self, texts: Sequence[str], threads: int = 1) -> list[Pieces]:
        """Return the pieces of each text, without EOS; they do not depend on `threads`."""
        encoded = self._processor.encode(
            list(texts), out_type="immutable_proto", num_threads=threads
        )
        pairs = ([(piece.id, piece.begin) for piece in text.pieces] for text in encoded)
        arrays = (np.array(pair, np.int64).reshape(-1, 2) for pair in pairs)
        return [Pieces(array[:, 0], array[:, 1]) for array in arrays]

    def word_starts(self) -> npt.NDArray[np.uint8]:
        """Return 1 for ids of pieces that begin a word or are not text, else 0; ``(total_ids,)``.

        Pieces that are not text are the control pieces, the unknown piece and the sentinels.
        """
        model = self._processor
        return np.array(
            [
                begins_word(model.id_to_piece(number))
                or model.is_control(number)
                or model.is_unknown(number)
                for number in range(self.total_ids)
            ],
            np.uint8,
        )


def begins_word(piece: str) -> bool:
    """Return whether a piece begins a word.

    One does after a space, as a single punctuation mark, and with a character that is neither a
    letter of English nor such a mark: a digit, an apostrophe, or a letter with an accent.

    Source: ALBERT, ``_is_start_piece_sp``.
    """
    if piece.startswith((SPACE, "<")) or piece in PUNCTUATION:
        return True
    return not all(char.lower() in ENGLISH_LETTERS | PUNCTUATION for char in piece)
