"""The pieces of a vocabulary of another library, run by `tokenizers`.

The file is JSON: `form`, a key of `adopted.forms.FORMS`; `special_tokens`, role to token; and
`tokenizer`, which `tokenizers` reads. Ids in that are the ones of the other library, and `encode`
moves them to our order (`id_order`). Text never makes a special id: what spells one is text, or the
unknown piece.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from t5repro.array_types import Int64
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.strict_json import parse_json
from t5repro.vocab.adopted.forms import FORMS, Form
from t5repro.vocab.id_order import ROLES, MovedOrder
from t5repro.vocab.piece_model import Ranges
from t5repro.vocab.special_ids import FIRST_PIECE_ID, UNK_ID

KEYS = ("form", "special_tokens", "tokenizer")
NAMES_OF_FIRST_IDS = ("<pad>", "</s>", "<unk>")  # shown where the vocabulary has no such token


class TokenizerModel:
    """Pieces of `tokenizers`; see `PieceModel`.

    Attributes:
        form: how the vocabulary spells pieces.
        special_tokens: role -> token, of the roles that the vocabulary has.
        tokenizer: the definition, for exports.
    """

    def __init__(
        self, form: Form, special_tokens: Mapping[str, str], tokenizer: Mapping[str, Any]
    ) -> None:
        import tokenizers

        self.form, self.special_tokens, self.tokenizer = form, special_tokens, tokenizer
        self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(tokenizer))
        foreign_ids = self._tokenizer.get_vocab_size()
        roles = {role: self._foreign_id(token) for role, token in special_tokens.items()}
        self.order = MovedOrder.of_roles(foreign_ids, roles)
        self.total_ids = self.order.total_ids
        self._ours = _ids_of_text(self.order)
        tokens = map(self._tokenizer.id_to_token, range(foreign_ids))
        self._tokens = dict(zip(self.order.ours.tolist(), tokens, strict=True))

    @classmethod
    def from_bytes(cls, data: bytes, where: Path, cure: str) -> Self:
        """Return the pieces of a file; see `read_piece_model`."""
        try:
            values = parse_json(data)
            form, special_tokens, tokenizer = (values[key] for key in KEYS)
            if set(special_tokens) - set(ROLES):
                raise KeyError(f"roles {sorted(special_tokens)}")
            return cls(FORMS[form], special_tokens, tokenizer)
        except VocabularyError:
            raise
        except Exception as error:  # `tokenizers` raises no class of its own
            raise ArtifactError(
                f"{where} is not an adopted vocabulary ({error}); {cure}"
            ) from error

    def _foreign_id(self, token: str) -> int:
        number: int | None = self._tokenizer.token_to_id(token)
        if number is None:
            raise ValueError(f"it lacks the piece {token!r}")
        return number

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        values = (self.form.name, self.special_tokens, self.tokenizer)
        document = dict(zip(KEYS, values, strict=True))
        return (json.dumps(document, ensure_ascii=False, sort_keys=True) + "\n").encode()

    def piece_id(self, piece: str) -> int | None:
        """Return our id of a piece; None if the vocabulary lacks it."""
        number: int | None = self._tokenizer.token_to_id(piece)
        return None if number is None else int(self.order.ours[number])

    def spelling(self, number: int) -> str:
        """Return the text of a piece; ids without a piece have a name in brackets."""
        token = self._tokens.get(number)
        if token is None:
            first = number < FIRST_PIECE_ID
            return NAMES_OF_FIRST_IDS[number] if first else f"[free {number}]"
        is_text = FIRST_PIECE_ID <= number < self.total_ids
        spelled = self.form.spelling(token) if is_text else token
        # A list of pieces has one a line.
        return spelled if spelled.isprintable() else token

    def score(self, number: int) -> float:
        """Return the log probability of a piece, 0 for pieces of merges."""
        vocabulary = self.tokenizer["model"]["vocab"]
        foreign = self.order.foreign_id(number)
        # A unigram model has a list of pieces with their scores, other models only ids.
        has_score = isinstance(vocabulary, list) and foreign is not None
        return float(vocabulary[foreign][1]) if has_score else 0.0

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self.encode_batch([text], 1)[0]

    def encode_batch(self, texts: Sequence[str], threads: int) -> list[list[int]]:
        """Return the ids of each text; the library chooses the number of threads itself."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._ours[text.ids].tolist() for text in encoded]

    def encode_ranges(self, texts: Sequence[str], threads: int) -> list[tuple[list[int], Ranges]]:
        """Return the ids of each text with their characters."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [(self._ours[text.ids].tolist(), list(text.offsets)) for text in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; padding and special pieces are left out."""
        shown = [
            foreign
            for number in ids
            if UNK_ID <= number < self.total_ids
            and (foreign := self.order.foreign_id(number)) is not None
        ]
        text: str = self._tokenizer.decode(shown, skip_special_tokens=False)
        return text

    def word_starts(self) -> list[bool]:
        """Return for each id whether its piece begins a word or is not text."""
        begins_word = self.form.begins_word
        if begins_word is None:
            raise VocabularyError(
                f"the pieces of the vocabulary of {self.form.title} mark the ends of words, so "
                "that none tells whether it begins one, which pretrain.objective masked_lm needs; "
                "choose another objective, or the vocabulary of a BERT, RoBERTa or ALBERT"
            )
        tokens = (self._tokens.get(number) for number in range(self.total_ids))
        return [
            number < FIRST_PIECE_ID or token is None or begins_word(token)
            for number, token in enumerate(tokens)
        ]

    def sentencepiece_model(self) -> bytes:
        """Refuse: it is none."""
        raise VocabularyError(
            f"the vocabulary is one of {self.form.title}, and only SentencePiece models can be "
            "part of a SavedModel or a keras-hub preset; write the weights for Hugging Face: "
            "t5repro weights export --form huggingface"
        )

    def with_sentinels(self, count: int) -> bytes:
        """Return the file, if no sentinels are to be added."""
        if count:
            raise VocabularyError(
                f"vocab.extra_ids is {count}, but the vocabulary of {self.form.title} has no "
                "sentinels, so T5's objectives cannot use it; set vocab.extra_ids to 0 for another "
                "network, or name the SentencePiece model of a T5"
            )
        return self.to_bytes()


def _ids_of_text(order: MovedOrder) -> Int64:
    """Return our id of each other one as text makes it: the unknown one in place of special ids."""
    is_text = (order.ours >= UNK_ID) & (order.ours < order.total_ids)
    return np.where(is_text, order.ours, UNK_ID)
