"""The vocabulary of an exported model: files for other libraries, and the order of its ids there.

A vocabulary that this project trained has our order; an adopted one goes back to the order that it
came with, and so do the rows of the weights that belong to its ids.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import MERGES, SPECIAL_PIECES, VocabSettings
from t5repro.errors import VocabularyError
from t5repro.model.foreign_vocabulary import AXES_OF_IDS, FACE_VOCABULARY
from t5repro.model.segment_rows import SUMMARY_TYPE
from t5repro.vocab.adopted.forms import Form
from t5repro.vocab.adopted.options import CONFIG, NAMES, SPECIAL_TOKENS
from t5repro.vocab.id_order import FIRST_IDS, MovedOrder
from t5repro.vocab.piece_model import PieceModel
from t5repro.vocab.special_ids import add_sentinels
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.tokenizer_model import TokenizerModel
from t5repro.vocab.vocabulary import Vocabulary

CLS, SEP, MASK = SPECIAL_PIECES[:3]
TOKENS = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
# Roles in rows; of other networks padding and EOS.
OF_NETWORK = dict.fromkeys(("encoder", "generator_detector", "two_stream"), ("pad", CLS, SEP, MASK))
Documents = dict[str, bytes | dict[str, Any]]  # name of a file -> content


class TokenizerFiles(Protocol):
    """A vocabulary for Hugging Face."""

    @property
    def total_ids(self) -> int:
        """Number of our pieces and sentinels, after which the special pieces follow."""
        ...

    def foreign_id(self, number: int) -> int | None:
        """Return the id there of one of ours."""
        ...

    def in_foreign_order(self, weights: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return weights by our names, with the rows of ids in the order there."""
        ...

    def documents(self, model: ModelSettings) -> Documents:
        """Return name -> content of the files of the tokenizer of a network."""
        ...

    def sentencepiece_model(self) -> bytes:
        """Return the SentencePiece model with its sentinels.

        Raises:
            VocabularyError: it is none.
        """
        ...


@dataclass(frozen=True)
class VocabularyFiles:
    """A SentencePiece vocabulary in the two variants that other libraries read.

    Attributes:
        with_sentinels: SentencePiece model of this project.
        without_sentinels: the same without the sentinels at its end.
        sentinels: number of sentinels.
        total_ids: pieces and sentinels.
    """

    with_sentinels: bytes
    without_sentinels: bytes
    sentinels: int
    total_ids: int = 0

    def foreign_id(self, number: int) -> int:
        """Return the id: the order is ours."""
        return number

    def in_foreign_order(self, weights: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the weights: the order is ours."""
        return weights

    def sentencepiece_model(self) -> bytes:
        """Return the SentencePiece model with its sentinels."""
        return self.with_sentinels

    def documents(self, model: ModelSettings) -> Documents:
        """Return the files of ``T5Tokenizer``, or of ``BigBirdTokenizer`` for an encoder only.

        The latter writes ``[CLS] a [SEP] b [SEP]``, with types if the network has them; RoBERTa's
        second separator has to be added by the caller. So have XLNet's special pieces, whose ids
        follow the vocabulary's: ``a [SEP] b [SEP] [CLS]``, padded on the left.
        """
        if not model.family.predicts_inputs:
            values: dict[str, Any] = {
                "tokenizer_class": "T5Tokenizer",
                "extra_ids": self.sentinels,
                "legacy": True,
            }
            return _documents(self.without_sentinels, TOKENS, values)
        names = {"bos_token": CLS, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
        # Their ids follow the vocabulary's, which must contain its sentinels.
        added = {
            str(special_id(piece, self.total_ids)): _added_token(
                piece, includes_space=piece == MASK
            )
            for piece in (CLS, SEP, MASK)
        }
        values = {
            "tokenizer_class": "BigBirdTokenizer",
            "added_tokens_decoder": added,
            "model_input_names": _input_names(types=model.token_types > 0),
        }
        return _documents(self.with_sentinels, TOKENS | names, values)


def _documents(proto: bytes, tokens: Mapping[str, str], values: Mapping[str, Any]) -> Documents:
    return {FACE_VOCABULARY: proto, CONFIG: {**tokens, **values}, SPECIAL_TOKENS: dict(tokens)}


@dataclass(frozen=True)
class AdoptedFiles:
    """An adopted vocabulary, with the special tokens that rows of the network have.

    Attributes:
        pieces: the vocabulary.
        roles: roles of tokens in rows of the network.
    """

    pieces: TokenizerModel
    roles: Sequence[str]

    @property
    def total_ids(self) -> int:
        """Number of our pieces."""
        return self.pieces.total_ids

    @cached_property
    def tokens(self) -> dict[str, str]:
        """Role -> token; a role that the vocabulary lacks has a new token after its ids."""
        added = {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
        tokens = dict(self.pieces.special_tokens)
        for role in self.roles:
            tokens.setdefault(role, added.get(role, role))
        return tokens

    @cached_property
    def _order(self) -> MovedOrder:
        return self.pieces.order.with_rows([self._number(role) for role in self.tokens])

    def _number(self, role: str) -> int:
        return FIRST_IDS[role] if role in FIRST_IDS else special_id(role, self.total_ids)

    def _id(self, role: str) -> int:
        return int(self._order.ours.tolist().index(self._number(role)))

    def foreign_id(self, number: int) -> int | None:
        """Return the id there of one of ours."""
        return self._order.foreign_id(number)

    def in_foreign_order(self, weights: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return weights by our names, with the rows of ids in the order of the vocabulary."""
        moved = {
            name: self._order.to_foreign(weights[name], axis)
            for name, axis in AXES_OF_IDS.items()
            if name in weights
        }
        return {**weights, **moved}

    def sentencepiece_model(self) -> bytes:
        """Refuse: it is none."""
        return self.pieces.sentencepiece_model()

    def documents(self, model: ModelSettings) -> Documents:
        """Return the files of the tokenizer of the family that the vocabulary is from."""
        form = self.pieces.form
        # Others have no name there, such as <eod>.
        names = {NAMES[role][0]: token for role, token in self.tokens.items() if role in NAMES}
        entries = {
            self._id(role): _added_token(
                token, includes_space=role == MASK and form.mask_includes_space
            )
            for role, token in self.tokens.items()
        }
        added = {str(number): entry for number, entry in sorted(entries.items())}
        definition = {
            **self.pieces.tokenizer,
            "added_tokens": [{"id": int(number), **entry} for number, entry in added.items()],
            "post_processor": self._template(model),
        }
        values = {
            **names,
            **form.options_of(definition),
            "tokenizer_class": form.classes[0],
            "added_tokens_decoder": added,
            "model_input_names": _input_names(
                types=model.token_types > 0 or model.family.ends_with_summary
            ),
        }
        return {**self._piece_files(form), "tokenizer.json": definition, CONFIG: values} | {
            SPECIAL_TOKENS: names
        }

    def _piece_files(self, form: Form) -> Documents:
        model = self.pieces.tokenizer["model"]
        files: Documents = {}
        if "vocab.txt" in form.files:
            pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
            files["vocab.txt"] = "".join(f"{piece}\n" for piece in pieces).encode()
        if "vocab.json" in form.files:
            files["vocab.json"] = json.dumps(model["vocab"], ensure_ascii=False).encode()
            merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
            files[MERGES] = f"#version: 0.2\n{merges}".encode()
        return files

    def _template(self, model: ModelSettings) -> dict[str, Any] | None:
        """Return how the tokenizer writes rows, as this project does; none for texts."""
        if not model.family.predicts_inputs:
            return None
        cls, sep = (self.tokens[role] for role in (CLS, SEP))
        types = int(model.token_types > 1 or model.family.ends_with_summary)
        start, end = [_special(cls, 0)], []
        if model.family.ends_with_summary:
            start, end = [], [_special(cls, SUMMARY_TYPE)]
        first = [*start, _sequence("A", 0), _special(sep, 0)]
        between = [_special(sep, 0)] * (model.pair_separators - 1)
        second = [_sequence("B", types), _special(sep, types)]
        return {
            "type": "TemplateProcessing",
            "single": [*first, *end],
            "pair": [*first, *between, *second, *end],
            "special_tokens": {
                token: {"id": token, "ids": [self._id(role)], "tokens": [token]}
                for role, token in ((CLS, cls), (SEP, sep))
            },
        }


def _special(token: str, kind: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": kind}}


def _sequence(name: str, kind: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": kind}}


def _added_token(token: str, *, includes_space: bool) -> dict[str, Any]:
    return {
        "content": token,
        "lstrip": includes_space,  # includes the space before it, as a word does
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }


def _input_names(*, types: bool) -> list[str]:
    return ["input_ids", *(["token_type_ids"] if types else []), "attention_mask"]


def vocabulary_files(path: Path, vocab: VocabSettings, model: ModelSettings) -> TokenizerFiles:
    """Return a vocabulary for other libraries.

    Args:
        path: the vocabulary of the run.
        vocab: its size in the settings of the training.
        model: the network.

    Raises:
        VocabularyError: its size is not the one of the settings.
    """
    vocabulary = Vocabulary.load(path)
    if vocabulary.total_ids != vocab.total_ids:
        raise VocabularyError(
            f"{path} has {vocabulary.total_ids} ids, the weights were trained with "
            f"{vocab.total_ids}; give the vocabulary of the same run"
        )
    return _files_of(vocabulary.pieces, vocabulary, model)


@singledispatch
def _files_of(pieces: PieceModel, vocabulary: Vocabulary, _: ModelSettings) -> TokenizerFiles:
    proto = pieces.sentencepiece_model()
    # A serialised message followed by another is their merge, so sentinels are a plain suffix.
    sentinels = add_sentinels(b"", vocabulary.extra_ids)
    return VocabularyFiles(
        with_sentinels=proto,
        without_sentinels=proto.removesuffix(sentinels),
        sentinels=vocabulary.extra_ids,
        total_ids=vocabulary.total_ids,
    )


@_files_of.register
def _(pieces: TokenizerModel, _: Vocabulary, model: ModelSettings) -> TokenizerFiles:
    return AdoptedFiles(pieces, OF_NETWORK.get(model.family.name, ("pad", "eos")))
