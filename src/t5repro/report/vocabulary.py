"""The vocabulary of a run: its pieces by rank, by character class and by language.

Pieces are text of the crawl: control characters are replaced, and the template escapes them.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from t5repro.errors import ArtifactError
from t5repro.report.corpus import percentage, safe_text
from t5repro.vocab.special_ids import FIRST_PIECE_ID

SPACE = "\u2581"  # SentencePiece's sign for a space
SENTINEL = re.compile(rf"{SPACE}<extra_id_(\d+)>")
PIECES_SHOWN = 100  # first ones and last ones, each
EXAMPLES = 8  # pieces of a class


@dataclass(frozen=True)
class Piece:
    """A piece with its id, which is its rank, and its log probability."""

    number: int
    text: str
    score: str


@dataclass(frozen=True)
class PieceClass:
    """A class of characters: number of its pieces, their share, and the first ones."""

    name: str
    count: str
    share: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class LanguageUse:
    """How the vocabulary divides the first pages of a language."""

    name: str
    pages: str
    pieces: str
    characters_per_token: str


@dataclass(frozen=True)
class VocabularyView:
    """A vocabulary.

    Attributes:
        arms: names of the arms that share it.
        pieces: number of its pieces, special ids included.
        word_starts: number of pieces that start with a space.
        sentinels: number of its sentinels, and the ids of the first and the last, in words.
        classes: its pieces by class of characters, the largest class first.
        languages: its use by language; empty if no arm reads the corpus.
        first: its first pieces; all of them, if there are few.
        last: its last pieces.
    """

    arms: str
    pieces: str
    word_starts: str
    sentinels: str
    classes: tuple[PieceClass, ...]
    languages: tuple[LanguageUse, ...]
    first: tuple[Piece, ...]
    last: tuple[Piece, ...]


def read_pieces(path: Path) -> list[tuple[str, str]]:
    """Return the pieces of a ``sentencepiece.vocab`` with their scores, by id.

    Raises:
        ArtifactError: it is missing or not such a list.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the rule vocab")
    # A piece may be a character that `splitlines` takes for the end of a line.
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    pieces = []
    for number, line in enumerate(lines, start=1):
        piece, tab, score = line.rpartition("\t")
        if not tab:
            raise ArtifactError(
                f"{path}, line {number}: {line!r} is not a piece, a tab and its score; delete the "
                "file and rerun the rule vocab"
            )
        pieces.append((piece, score))
    return pieces


def vocabulary_view(
    arms: str, listed: Sequence[tuple[str, str]], languages: Sequence[LanguageUse]
) -> VocabularyView:
    """Return a vocabulary as the page shows it.

    Args:
        arms: names of the arms that share it.
        listed: its pieces and their scores, by id.
        languages: its use by language.
    """
    sentinels = [number for number, (piece, _) in enumerate(listed) if is_sentinel(piece)]
    pieces = [
        Piece(number, safe_text(piece), score)
        for number, (piece, score) in enumerate(listed)
        if not is_sentinel(piece)
    ]
    texts = [listed[piece.number][0] for piece in pieces]
    is_cut = len(pieces) > 2 * PIECES_SHOWN
    return VocabularyView(
        arms=arms,
        pieces=f"{len(pieces):,}",
        word_starts=f"{sum(text.startswith(SPACE) for text in texts):,}",
        sentinels=f"{len(sentinels):,} sentinels"
        + (f" (ids {sentinels[-1]:,} down to {sentinels[0]:,})" if sentinels else ""),
        classes=_classes(texts),
        languages=tuple(languages),
        first=tuple(pieces[:PIECES_SHOWN] if is_cut else pieces),
        last=tuple(pieces[-PIECES_SHOWN:] if is_cut else ()),
    )


def language_use(name: str, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> LanguageUse:
    """Return how a vocabulary divides texts of a language into pieces.

    Args:
        name: name of the language.
        texts: some of its pages.
        ids: the ids of each.
    """
    tokens = sum(map(len, ids))
    characters = sum(map(len, texts))
    return LanguageUse(
        name=name,
        pages=f"{len(texts):,}",
        pieces=f"{len({number for page in ids for number in page}):,}",
        characters_per_token=f"{characters / tokens:.2f}" if tokens else "",
    )


def _classes(pieces: Sequence[str]) -> tuple[PieceClass, ...]:
    members: dict[str, list[str]] = {}
    for number, piece in enumerate(pieces):
        name = "special ids" if number < FIRST_PIECE_ID else character_class(piece)
        members.setdefault(name, []).append(safe_text(piece))
    return tuple(
        PieceClass(
            name=name,
            count=f"{len(texts):,}",
            share=percentage(len(texts), len(pieces)),
            examples=tuple(texts[:EXAMPLES]),
        )
        for name, texts in sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    )


def character_class(piece: str) -> str:
    """Return the class of a piece's characters, its leading space apart.

    Letters are classed by script, as their Unicode names begin with it; the Latin ones, which the
    paper's four languages share, by whether all are of the English alphabet.
    """
    kinds = {_kind(character) for character in piece.replace(SPACE, "")}
    if not kinds:
        return "space alone"
    if kinds <= {"a to z", "Latin"}:
        return "Latin letters, a to z" if kinds == {"a to z"} else "Latin letters, not only a to z"
    if len(kinds) > 1:
        return "mixed"
    (kind,) = kinds
    return kind if kind in ("digits", "punctuation and symbols") else f"{kind} letters"


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if category.startswith(("L", "M")):
        if character.isascii():
            return "a to z"
        script = unicodedata.name(character, "unnamed").split(" ")[0].split("-")[0]
        return script if script == "CJK" else script.capitalize()
    return "digits" if category.startswith("N") else "punctuation and symbols"


def is_sentinel(piece: str) -> bool:
    """Return whether a piece is a sentinel of span corruption."""
    return SENTINEL.fullmatch(piece) is not None
