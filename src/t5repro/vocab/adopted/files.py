"""Reads the vocabulary of a published checkpoint, of whatever library, as the file of a run.

A SentencePiece model with T5's special ids stays as it is. Of the other forms `TokenizerModel` is
made, whose file has all that decides ids: pieces, merges, normalisation and special tokens.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from t5repro.config.sections.vocab import DEFINITION, MERGES, TOKENIZER_FILES
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_file, refuse_other_form
from t5repro.vocab.added_tokens import read_added_tokens
from t5repro.vocab.adopted.comparison import check_equal, read_definition
from t5repro.vocab.adopted.forms import (
    CHARSMAP,
    FORMS,
    OF_ENCODER,
    SPACE_BYTE,
    Form,
    Model,
    byte_pairs,
    unigram,
    unnamed_options_of,
    word_piece,
)
from t5repro.vocab.adopted.options import CONFIG, read_options, read_special_tokens
from t5repro.vocab.adopted.piece_files import (
    check_ids,
    check_merges,
    end_of_words,
    read_ids,
    read_merges,
    read_word_pieces,
)
from t5repro.vocab.id_order import IdOrder, SameOrder
from t5repro.vocab.special_ids import EOS_ID
from t5repro.vocab.tokenizer_model import TokenizerModel

NAMES = ("vocab.txt", "vocab.json", DEFINITION)  # of vocabularies, besides SentencePiece models
BYTES = 256
UNIGRAM = 1  # model_type of SentencePiece's trainer
UNIGRAMS = ("albert", "xlnet")  # forms of such models
# ALBERT's and XLNet's tokenizers cut a comma from the digit before it; a piece of both is so
# unlikely instead.
PENALTY_OF_NUMBER_AND_COMMA = 100.0


@dataclass(frozen=True)
class Pieces:
    """The pieces of a vocabulary, as its files have them.

    Attributes:
        form: how they are spelled.
        ids: piece -> id.
        model: returns the model for all pieces, with added tokens, and the unknown token.
        file_options: options that the files of the pieces state.
    """

    form: Form
    ids: Mapping[str, int]
    model: Callable[[Mapping[str, int], str | None], Model]
    file_options: Mapping[str, Any] = field(default_factory=dict)


class Published(NamedTuple):
    """The vocabulary of a published checkpoint.

    Attributes:
        data: the file of a run.
        order: of the ids in its files, and so of the rows of its weights.
    """

    data: bytes
    order: IdOrder


def find_vocabulary(folder: Path) -> Path | None:
    """Return the file of the vocabulary in a folder of another library, SentencePiece apart."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def files_beside(source: Path) -> list[Path]:
    """Return the files next to a vocabulary that may belong to it."""
    names = (MERGES, *TOKENIZER_FILES)
    return [path for name in names if (path := source.parent / name).is_file() and path != source]


def published_vocabulary(source: Path, sibling_files: Sequence[Path]) -> Published:
    """Return the vocabulary of a published checkpoint.

    Args:
        source: a SentencePiece model, ``vocab.txt``, ``vocab.json``, ``tokenizer.json``, or the
            vocabulary of a run.
        sibling_files: files next to it that may belong to it.

    Raises:
        ArtifactError: a file is missing or damaged.
        VocabularyError: the pieces, merges, options or special tokens cannot be used; names which.
    """
    refuse_other_form(source)
    if source.name == DEFINITION:
        return _adopted(_of_definition(source), source, [source, *sibling_files])
    if source.suffix == ".txt":
        return _adopted(_word_pieces(source, sibling_files), source, sibling_files)
    if source.suffix == ".json":
        return _adopted(_byte_pairs(source, sibling_files), source, sibling_files)
    data = read_file(source)
    if not (form := _form_of_model(data)):
        return Published(data, SameOrder())  # its reader checks it
    return _adopted(_unigram(data, form, source, sibling_files), source, sibling_files)


def _adopted(pieces: Pieces, source: Path, sibling_files: Sequence[Path]) -> Published:
    form = pieces.form
    options = read_options(form, sibling_files, pieces.file_options)
    ids = dict(pieces.ids)
    for token in read_added_tokens(sibling_files).tokens:
        # Others are compared later: a token of text, or one with another id, is refused.
        if token.id == len(ids) and token.text in form.special_tokens.values():
            ids.setdefault(token.text, token.id)
    special_tokens = read_special_tokens(form, sibling_files, ids, source)
    definition = form.definition(pieces.model(ids, special_tokens.get("unk")), options)
    for path in sibling_files:
        if path.name == DEFINITION:
            check_equal(definition, path, source)
    model = TokenizerModel(form, special_tokens, definition)
    return Published(model.to_bytes(), model.order)


def _word_pieces(source: Path, sibling_files: Sequence[Path]) -> Pieces:
    if not any(path.name in (CONFIG, DEFINITION) for path in sibling_files):
        raise VocabularyError(
            f"{source} has neither {CONFIG} nor {DEFINITION} next to it, which say whether text is "
            f'lower-cased; write {CONFIG} with {{"do_lower_case": true}} or false, as the '
            "checkpoint was trained, and list it in data.sources"
        )
    return _of_word_pieces(read_word_pieces(source))


def _of_word_pieces(ids: Mapping[str, int]) -> Pieces:
    return Pieces(FORMS["bert"], ids, lambda all_ids, unknown: word_piece(all_ids, str(unknown)))


def _byte_pairs(source: Path, sibling_files: Sequence[Path]) -> Pieces:
    merges = next((path for path in sibling_files if path.name == MERGES), None)
    if merges is None:
        raise ArtifactError(
            f"{source} has no {MERGES} next to it, without which its pieces cannot be made: put it "
            "there, and list it in data.sources"
        )
    ids, pairs = read_ids(source), read_merges(merges)
    return _of_byte_pairs(ids, pairs, merges)


def _of_byte_pairs(ids: Mapping[str, int], pairs: Sequence[Sequence[str]], where: Path) -> Pieces:
    end = end_of_words(ids)
    check_merges([(first, second) for first, second in pairs], ids, where, end=end)
    name = "gpt" if end else "roberta" if {"<s>", "</s>"} <= set(ids) else "gpt2"
    if not end:
        _check_bytes(ids, where)

    def model(all_ids: Mapping[str, int], unknown: str | None) -> Model:
        # Bytes spell every text: RoBERTa's unknown token is in no row.
        return byte_pairs(all_ids, pairs, unknown=unknown if end else None, end=end)

    return Pieces(FORMS[name], ids, model)


def _check_bytes(ids: Mapping[str, int], where: Path) -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    missing = sorted(letter for letter in ByteLevel.alphabet() if letter not in ids)
    if missing:
        raise VocabularyError(
            f"{where.parent} has a vocabulary that lacks {len(missing)} of the {BYTES} letters of "
            f"bytes, such as {missing[0]!r} ({SPACE_BYTE!r} is that of a space); text with them "
            "would be lost: get the files again"
        )


def _form_of_model(data: bytes) -> Form | None:
    """Return the form of a SentencePiece model by its special pieces; None if they are T5's."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(data)
    except RuntimeError:
        return None  # the reader of the vocabulary refuses it, and says why
    if processor.eos_id() == EOS_ID:
        return None
    return _unigram_form([processor.id_to_piece(number) for number in range(len(processor))])


def _unigram_form(pieces: Iterable[str]) -> Form | None:
    """Return the form whose separators and mask are all among some pieces."""
    present = set(pieces)
    forms = (FORMS[name] for name in UNIGRAMS)
    return next(
        (form for form in forms if present.issuperset(map(form.special_tokens.get, OF_ENCODER))),
        None,
    )


def _unigram(data: bytes, form: Form, source: Path, sibling_files: Sequence[Path]) -> Pieces:
    from sentencepiece import sentencepiece_model_pb2

    if not any(path.name in (CONFIG, DEFINITION) for path in sibling_files):
        lower = json.dumps(form.options["do_lower_case"])
        raise VocabularyError(
            f"{source} is of {form.title} and has neither {CONFIG} nor {DEFINITION} next to it, "
            f'which say whether text is lower-cased; write {CONFIG} with {{"do_lower_case": '
            f"{lower}}}, and list it in data.sources"
        )
    model = sentencepiece_model_pb2.ModelProto.FromString(data)
    if model.trainer_spec.model_type != UNIGRAM or model.trainer_spec.byte_fallback:
        raise VocabularyError(
            f"{source} is a SentencePiece model of type {model.trainer_spec.model_type} with "
            f"byte_fallback {model.trainer_spec.byte_fallback}; that of {form.title} is a unigram "
            "model (1) without: name the spiece.model of a released checkpoint"
        )
    scores = [(piece.piece, _score(piece.piece, piece.score)) for piece in model.pieces]
    charsmap = model.normalizer_spec.precompiled_charsmap
    file_options = {CHARSMAP: base64.b64encode(charsmap).decode()} if charsmap else {}
    return _of_scores(scores, form, model.trainer_spec.unk_id, source, file_options)


def _score(piece: str, score: float) -> float:
    is_number_and_comma = len(piece) >= 2 and piece[-1] == "," and piece[-2].isdigit()
    return score - PENALTY_OF_NUMBER_AND_COMMA if is_number_and_comma else score


def _of_scores(
    scores: Sequence[tuple[str, float]],
    form: Form,
    unknown_id: int,
    where: Path,
    file_options: Mapping[str, Any],
) -> Pieces:
    # SentencePiece's numbers; readers of JSON differ in the last digit of more.
    scores = [(piece, float(np.float32(score))) for piece, score in scores]
    ids = {piece: number for number, (piece, _) in enumerate(scores)}
    if len(ids) != len(scores):
        raise VocabularyError(
            f"{where} has {len(scores):,} pieces, of which only {len(ids):,} differ: get it again"
        )

    def model(all_ids: Mapping[str, int], _: str | None) -> Model:
        added = [(piece, 0.0) for piece in list(all_ids)[len(scores) :]]
        return unigram([*scores, *added], unknown_id)

    return Pieces(form, ids, model, file_options)


# A `tokenizer.json` without the other files


def _of_definition(path: Path) -> Pieces:
    """Return the pieces of a ``tokenizer.json``; the rest of it is compared with theirs."""
    definition = read_definition(path)
    model = definition["model"]
    kind = model["type"]
    if kind == "Unigram":
        scores = [(piece, score) for piece, score in model["vocab"]]
        pieces = _of_scores(
            scores,
            _unigram_form(piece for piece, _ in scores) or FORMS["albert"],
            model["unk_id"],
            path,
            unnamed_options_of(definition),
        )
    elif kind in ("WordPiece", "BPE"):
        check_ids(model["vocab"], path)
        pieces = (
            _of_word_pieces(model["vocab"])
            if kind == "WordPiece"
            else _of_byte_pairs(model["vocab"], model["merges"], path)
        )
    else:
        raise VocabularyError(
            f"{path} has a model of type {kind!r}; allowed are WordPiece, BPE and Unigram: name "
            "the vocabulary of a BERT, RoBERTa, GPT, ALBERT or XLNet"
        )
    return replace(
        pieces, file_options={**pieces.file_options, **pieces.form.options_of(definition)}
    )
