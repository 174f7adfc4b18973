"""The interface of a vocabulary's pieces, behind which SentencePiece and `tokenizers` stand.

Nothing outside this package asks which of them it is; `read_piece_model` decides from the file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from t5repro.vocab.id_order import IdOrder

SPACE = "\u2581"  # sign for a space in the spelling of a piece
Ranges = list[tuple[int, int]]


class PieceModel(Protocol):
    """Pieces with ids in our order, see `id_order`."""

    @property
    def total_ids(self) -> int:
        """Number of pieces and sentinels."""
        ...

    @property
    def order(self) -> IdOrder:
        """Order of the ids in the files that the vocabulary came from."""
        ...

    def piece_id(self, piece: str) -> int | None:
        """Return the id of a piece, as its file spells it; None if there is no such piece."""
        ...

    def spelling(self, number: int) -> str:
        """Return the text of a piece, with `SPACE` for the spaces that it includes."""
        ...

    def score(self, number: int) -> float:
        """Return the log probability of a piece, 0 if the vocabulary has none."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        ...

    def encode_batch(self, texts: Sequence[str], threads: int) -> list[list[int]]:
        """Return the ids of each text, without EOS; the ids do not depend on `threads`."""
        ...

    def encode_ranges(self, texts: Sequence[str], threads: int) -> list[tuple[list[int], Ranges]]:
        """Return the ids of each text, and the characters of the text that each id stands for."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids below `total_ids`."""
        ...

    def word_starts(self) -> list[bool]:
        """Return for each id whether its piece begins a word or is not text.

        Raises:
            VocabularyError: a piece does not tell.
        """
        ...

    def sentencepiece_model(self) -> bytes:
        """Return the serialised SentencePiece model.

        Raises:
            VocabularyError: it is none.
        """
        ...

    def with_sentinels(self, count: int) -> bytes:
        """Return the file with sentinels at its end.

        Raises:
            VocabularyError: it cannot have any.
        """
        ...


def read_piece_model(data: bytes, where: Path, cure: str) -> PieceModel:
    """Return the pieces of a vocabulary's file.

    Args:
        data: content of the file.
        where: the file, for messages.
        cure: instruction to the user if it is damaged.

    Raises:
        ArtifactError: it is damaged.
        VocabularyError: its special ids are not T5's.
    """
    # A serialised SentencePiece model begins with the length of its first piece.
    if data.startswith(b"{"):
        from t5repro.vocab.tokenizer_model import TokenizerModel

        return TokenizerModel.from_bytes(data, where, cure)
    from t5repro.vocab.sentencepiece_model import SentencePieceModel

    return SentencePieceModel.from_bytes(data, where, cure)
