"""Tokens that a tokenizer of Hugging Face has in addition to its vocabulary.

Files next to the model state them: `added_tokens.json` and `tokenizer.json` with ids,
`tokenizer_config.json` with ids, names or the number of sentinels, `special_tokens_map.json` with
names. Text is encoded with the vocabulary only, so a token that would get another id, or none,
makes other inputs than the weights were trained on. Ids are from the tokenizer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.config.sections.vocab import SPECIAL_PIECES, TOKENIZER_FILES
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json
from t5repro.vocab.special_ids import UNK_ID, sentinel_id
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.vocabulary import Vocabulary

SENTINEL = re.compile(r"\u2581?<extra_id_(\d{1,5})>")
CURE = (
    "the weights know ids that the vocabulary does not give: name a checkpoint without added "
    "tokens, or, if its network never saw the token, remove it from the file"
)


@dataclass(frozen=True)
class AddedToken:
    """A token of a tokenizer.

    Attributes:
        text: its text.
        id: its id, if the file states one.
        file: the file that states it.
    """

    text: str
    id: int | None
    file: Path

    @property
    def sentinel(self) -> int | None:
        """Its number, if it is a sentinel."""
        match = SENTINEL.fullmatch(self.text)
        return int(match[1]) if match else None


@dataclass(frozen=True)
class AddedTokens:
    """The statements of the files of a tokenizer in addition to its SentencePiece model.

    Attributes:
        tokens: the tokens, in the order of the files.
        extra_ids: number of sentinels, file that states it; absent if no file does, or it is 0,
            as for a model that contains its sentinels.
    """

    tokens: tuple[AddedToken, ...] = ()
    extra_ids: tuple[int, Path] | None = None

    @property
    def sentinels(self) -> int | None:
        """Number of sentinels; absent if no file names any."""
        # A name that several files repeat is one sentinel.
        numbers = {token.sentinel for token in self.tokens} - {None}
        if numbers:
            return len(numbers)
        return self.extra_ids[0] if self.extra_ids else None

    def check(self, vocabulary: Vocabulary) -> None:
        """Refuse tokens that a vocabulary, with its sentinels, does not encode as stated.

        Raises:
            VocabularyError: a token has another id there, or none; or the numbers of sentinels
                differ.
        """
        if self.extra_ids and self.extra_ids[0] != vocabulary.extra_ids:
            number, file = self.extra_ids
            raise VocabularyError(
                f"{file} states extra_ids {number}, the vocabulary has {vocabulary.extra_ids} "
                f"sentinels: set vocab.extra_ids to {number}, or correct the file"
            )
        for token in self.tokens:
            actual = _id_of(token, vocabulary)
            # Other names of padding, EOS and unknown change no id.
            if token.id is not None and token.id <= UNK_ID and token.sentinel is None:
                continue
            if actual is None or token.id not in (None, actual):
                id_text = "" if token.id is None else f" as id {token.id}"
                actual_text = "lacks it" if actual is None else f"has it as id {actual}"
                raise VocabularyError(
                    f"{token.file} has the token {token.text!r}{id_text}, the vocabulary of "
                    f"{vocabulary.total_ids:,} ids with {vocabulary.extra_ids} sentinels "
                    f"{actual_text}; {CURE}"
                )


def read_added_tokens(files: Iterable[Path]) -> AddedTokens:
    """Return the statements of the files of a tokenizer.

    Args:
        files: files; those with names in `TOKENIZER_FILES` are read.

    Raises:
        ArtifactError: a file is not JSON.
        VocabularyError: a file has a token or an id of another form.
    """
    tokens: list[AddedToken] = []
    extra_ids = None
    for path in files:
        if path.name not in READERS:
            continue
        values = read_json(path)
        if not isinstance(values, dict):
            raise ArtifactError(f"{path} has a {type(values).__name__}; it must be a mapping")
        tokens += (_token(text, number, path) for text, number in READERS[path.name](values))
        # Written by T5Tokenizer, also where no list of tokens is.
        sentinels = values.get("extra_ids")
        if path.name == "tokenizer_config.json" and sentinels not in (None, 0):
            if type(sentinels) is not int or sentinels < 0:
                raise VocabularyError(
                    f"{path} has extra_ids {sentinels!r}; it must be a number of sentinels"
                )
            extra_ids = (sentinels, path)
    return AddedTokens(tuple(tokens), extra_ids)


def _token(text: Any, number: Any, path: Path) -> AddedToken:
    if isinstance(text, Mapping):
        text = text.get("content")
    if isinstance(number, str) and number.isdecimal():
        number = int(number)
    if not isinstance(text, str) or not (number is None or (type(number) is int and number >= 0)):
        raise VocabularyError(
            f"{path} has an added token {text!r} with id {number!r}; it must be text with a whole "
            "number: get the file again"
        )
    return AddedToken(text, number, path)


def _id_of(token: AddedToken, vocabulary: Vocabulary) -> int | None:
    """Return the id of a token in the order of its tokenizer; None if it has none."""
    number = token.sentinel
    if number is not None:
        return sentinel_id(number, vocabulary.total_ids) if number < vocabulary.extra_ids else None
    actual = vocabulary.piece_id(token.text)
    if actual is None and token.text in SPECIAL_PIECES:
        actual = special_id(token.text, vocabulary.total_ids)
    return None if actual is None else vocabulary.pieces.order.foreign_id(actual)


def _of_mapping(values: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    yield from values.items()


def _of_config(values: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    decoder = values.get("added_tokens_decoder") or {}
    yield from ((entry, number) for number, entry in _items(decoder))
    yield from _names(values)


def _names(values: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    # Transformers 5 has the second name; both are a list, or a mapping from attributes to tokens.
    for name in ("additional_special_tokens", "extra_special_tokens"):
        yield from ((entry, None) for _, entry in _items(values.get(name) or []))


def _of_fast_tokenizer(values: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for _, entry in _items(values.get("added_tokens") or []):
        yield entry, entry.get("id") if isinstance(entry, Mapping) else None


def _items(values: Any) -> Iterator[tuple[Any, Any]]:
    """Yield key and value of a mapping, place and value of a list; another value as it is."""
    if isinstance(values, Mapping):
        yield from values.items()
    else:
        yield from enumerate(values if isinstance(values, list) else [values])


# Name of a file -> text or entry of each token, and its id or None.
READERS = dict(
    zip(TOKENIZER_FILES, (_of_mapping, _of_config, _names, _of_fast_tokenizer), strict=True)
)
