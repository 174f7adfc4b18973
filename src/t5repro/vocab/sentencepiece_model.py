"""The pieces of a SentencePiece model with T5's special ids."""

import math
import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import sentencepiece

from t5repro.errors import ArtifactError, VocabularyError
from t5repro.vocab.id_order import SameOrder
from t5repro.vocab.piece_model import SPACE, Ranges
from t5repro.vocab.special_ids import (
    EOS_ID,
    NO_ID,
    PAD_ID,
    UNK_ID,
    add_sentinels,
    sentinel_id,
    sentinel_piece,
)

PLAIN_SENTINEL = re.compile(rb"<extra_id_\d+>")
PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')  # ALBERT's list has no apostrophe
ENGLISH_LETTERS = frozenset(string.ascii_lowercase)


class SentencePieceModel:
    """Pieces of SentencePiece; see `PieceModel`."""

    def __init__(self, proto: bytes, processor: Any) -> None:
        self._proto = proto
        self._processor = processor
        self.total_ids: int = processor.get_piece_size()
        self.order = SameOrder()

    @classmethod
    def from_bytes(cls, proto: bytes, where: Path, cure: str) -> Self:
        """Return the pieces of a serialised model; see `read_piece_model`."""
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.load_from_serialized_proto(proto)
        except RuntimeError as error:
            raise ArtifactError(f"{where} is not a SentencePiece model; {cure}") from error
        if not all(map(math.isfinite, processor.GetScore(list(range(len(processor)))))):
            raise ArtifactError(f"{where} has scores of pieces that are no numbers; {cure}")
        expected = (PAD_ID, EOS_ID, UNK_ID, NO_ID)
        actual = (processor.pad_id(), processor.eos_id(), processor.unk_id(), processor.bos_id())
        if actual != expected:
            raise VocabularyError(
                f"{where} has pad, eos, unk, bos {actual}, T5 needs {expected}; name the "
                "vocabulary of a T5, or have the rule vocab train one"
            )
        model = cls(proto, processor)
        model._check_sentinels(where)
        return model

    def _check_sentinels(self, where: Path) -> None:
        """Refuse sentinels that are not the last ids in descending order, or have no space sign."""
        # Where the model does not have them as pieces, the bytes name them in its settings only.
        texts = {text.decode() for text in PLAIN_SENTINEL.findall(self._proto)}
        plain = sorted(text for text in texts if self.piece_id(text) is not None)
        if plain:
            raise VocabularyError(
                f"{where} has the piece {plain[0]!r} as id {self.piece_id(plain[0])} "
                f"({len(plain)} such pieces); T5's sentinels are the last ids and begin with "
                f"SentencePiece's sign for a space, as {sentinel_piece(0)!r}: weights of this "
                "vocabulary cannot be used, and for a new training remove the pieces from its "
                "user-defined symbols"
            )
        number = 0
        while (actual := self.piece_id(sentinel_piece(number))) is not None:
            expected = sentinel_id(number, self.total_ids)
            if actual != expected:
                raise VocabularyError(
                    f"{where} has {sentinel_piece(number)!r} as id {actual}; T5's sentinels are "
                    f"the last ids in descending order, here {expected}: name "
                    "another vocabulary, or remove the pieces from its user-defined symbols"
                )
            number += 1

    def piece_id(self, piece: str) -> int | None:
        """Return the id of a piece; None if the model lacks it."""
        number: int = self._processor.piece_to_id(piece)
        # SentencePiece returns the unknown id for a piece that the model lacks.
        return None if number == UNK_ID else number

    def spelling(self, number: int) -> str:
        """Return the text of a piece."""
        piece: str = self._processor.id_to_piece(number)
        return piece

    def score(self, number: int) -> float:
        """Return the log probability of a piece."""
        score: float = self._processor.get_score(number)
        return score

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ids: list[int] = self._processor.encode(text)
        return ids

    def encode_batch(self, texts: Sequence[str], threads: int) -> list[list[int]]:
        """Return the ids of each text."""
        ids: list[list[int]] = self._processor.encode(list(texts), num_threads=threads)
        return ids

    def encode_ranges(self, texts: Sequence[str], threads: int) -> list[tuple[list[int], Ranges]]:
        """Return the ids of each text with their characters; the space belongs to the next word."""
        encoded = self._processor.encode(
            list(texts), out_type="immutable_proto", num_threads=threads
        )
        pieces = (text.pieces for text in encoded)
        return [
            ([piece.id for piece in text], [(piece.begin, piece.end) for piece in text])
            for text in pieces
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        text: str = self._processor.decode(list(ids))
        return text

    def word_starts(self) -> list[bool]:
        """Return for each id whether its piece begins a word or is not text."""
        model = self._processor
        return [
            begins_word(model.id_to_piece(number))
            or model.is_control(number)
            or model.is_unknown(number)
            for number in range(self.total_ids)
        ]

    def sentencepiece_model(self) -> bytes:
        """Return the serialised model."""
        return self._proto

    def with_sentinels(self, count: int) -> bytes:
        """Return the serialised model with sentinels at its end."""
        return add_sentinels(self._proto, count)


def begins_word(piece: str) -> bool:
    """Return whether a piece begins a word.

    One does after a space, as a single punctuation mark, and with a character that is neither a
    letter of English nor such a mark: a digit, an apostrophe, or a letter with an accent.

    Source: ALBERT, ``_is_start_piece_sp``.
    """
    if piece.startswith((SPACE, "<")) or piece in PUNCTUATION:
        return True
    return not all(char.lower() in ENGLISH_LETTERS | PUNCTUATION for char in piece)
