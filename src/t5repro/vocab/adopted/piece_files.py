"""Reads the files of pieces of other libraries: `vocab.txt`, `vocab.json`, `merges.txt`.

Their readers accept damage in silence: of a piece that is there twice the last id counts, and a
merge that comes too late is never used. Ids would then differ from those of the weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_file, read_json, refuse_other_form
from t5repro.vocab.adopted.forms import END_OF_WORD

Pair = tuple[str, str]
CURE = "get the file again"
VERSION = "#version"  # begins the first line of merges.txt, which all readers skip
MAX_WITHOUT_MERGE = 0.01  # share of the pieces: special tokens, names without use


def read_word_pieces(path: Path) -> dict[str, int]:
    """Return piece -> id of a ``vocab.txt``, one piece a line.

    Raises:
        ArtifactError: the file is missing or not UTF-8.
        VocabularyError: a line is empty, ends as on Windows, or is there twice.
    """
    pieces: dict[str, int] = {}
    for number, line in enumerate(_lines(path)):
        if not line:
            raise VocabularyError(
                f"{path}, line {number + 1}: it is empty; each line must be a piece, whose id is "
                f"the number of the line, here {number}: {CURE}"
            )
        if line in pieces:
            raise VocabularyError(
                f"{path}, line {number + 1}: {line!r} is also in line {pieces[line] + 1}; a piece "
                f"must have one id: {CURE}"
            )
        pieces[line] = number
    return pieces


def read_ids(path: Path) -> dict[str, int]:
    """Return piece -> id of a ``vocab.json``.

    Raises:
        ArtifactError: the file is missing or not JSON, or has a key twice.
        VocabularyError: it is not a mapping from pieces to the ids from 0 on, each once.
    """
    refuse_other_form(path)
    values = read_json(path)
    if not isinstance(values, dict) or not values:
        raise VocabularyError(
            f"{path} has a {type(values).__name__} of {len(values) if values else 0} entries; it "
            f"must be a mapping from pieces to ids: {CURE}"
        )
    check_ids(values, path)
    return values


def check_ids(values: Mapping[str, object], where: Path) -> None:
    """Refuse ids that are not the numbers from 0 on, each once.

    Raises:
        VocabularyError: they are not; names the piece.
    """
    owners: dict[int, str] = {}
    for piece, number in values.items():
        if type(number) is not int or number < 0:
            raise VocabularyError(
                f"{where} has the piece {piece!r} with id {number!r}; it must be a whole number "
                f"from 0 on: {CURE}"
            )
        if number in owners:
            raise VocabularyError(
                f"{where} has the id {number} twice, of {owners[number]!r} and {piece!r}; each "
                f"piece must have an id of its own: {CURE}"
            )
        owners[number] = piece
    hole = next((number for number in range(len(owners)) if number not in owners), None)
    if hole is not None:
        raise VocabularyError(
            f"{where} has {len(owners):,} pieces and no id {hole}; the ids must be those from 0 to "
            f"{len(owners) - 1:,}: {CURE}"
        )


def read_merges(path: Path) -> list[Pair]:
    """Return the pairs of a ``merges.txt``, the first one first.

    Raises:
        ArtifactError: the file is missing or not UTF-8.
        VocabularyError: the first line is not a version, or a line is not two pieces.
    """
    lines = list(_lines(path))
    if not lines or not lines[0].startswith(VERSION):
        first = lines[0] if lines else ""
        raise VocabularyError(
            f"{path}, line 1: {first!r}; it must begin with {VERSION!r}, because readers skip this "
            f"line and would lose a merge: {CURE}"
        )
    merges = []
    for number, line in enumerate(lines[1:], start=2):
        first_piece, _, second_piece = line.partition(" ")
        if not first_piece or not second_piece or " " in second_piece:
            raise VocabularyError(
                f"{path}, line {number}: {line!r}; it must be two pieces with a space between "
                f"them: {CURE}"
            )
        merges.append((first_piece, second_piece))
    return merges


def check_merges(
    merges: Sequence[Pair], vocabulary: Mapping[str, int], where: Path, *, end: str
) -> None:
    """Refuse merges that are never used, or make no piece.

    Args:
        merges: pairs of pieces, the first one first.
        vocabulary: piece -> id.
        where: file of the merges, for messages.
        end: what ends the last piece of a word.

    Raises:
        VocabularyError: a merge is there twice, needs a piece that only a later one makes, or makes
            one that the vocabulary lacks; or many pieces are made by none.
    """
    merged_pieces: set[str] = set()
    earlier_pairs: set[Pair] = set()
    for number, pair in enumerate(merges):
        merged = "".join(pair)
        fault = ""
        if pair in earlier_pairs:
            fault = "is there twice"
        elif late := next(
            (part for part in pair if not _is_symbol(part, end, merged_pieces)), None
        ):
            fault = f"needs {late!r}, which no merge before it makes"
        elif merged not in vocabulary:
            fault = f"makes {merged!r}, which the vocabulary lacks"
        if fault:
            raise VocabularyError(
                f"{where}: the merge {' '.join(pair)!r}, number {number + 1}, {fault}; merges must "
                f"be in the order in which they were learnt, each once: {CURE}"
            )
        earlier_pairs.add(pair)
        merged_pieces.add(merged)
    unmade_pieces = [piece for piece in vocabulary if not _is_symbol(piece, end, merged_pieces)]
    if len(unmade_pieces) > max(8, MAX_WITHOUT_MERGE * len(vocabulary)):
        raise VocabularyError(
            f"{where} has {len(merges):,} merges, which do not make {len(unmade_pieces):,} of "
            f"{len(vocabulary):,} pieces, such as {unmade_pieces[-1]!r}; the file may be cut "
            f"off: {CURE}"
        )


def _is_symbol(piece: str, end: str, merged_pieces: set[str]) -> bool:
    """Return whether a piece is there before all merges, or after those that made others."""
    return piece in merged_pieces or len(piece.removesuffix(end) if end else piece) == 1


def end_of_words(vocabulary: Mapping[str, int]) -> str:
    """Return what ends the last piece of a word: GPT's sign, or nothing."""
    return END_OF_WORD if any(piece.endswith(END_OF_WORD) for piece in vocabulary) else ""


def _lines(path: Path) -> Iterator[str]:
    refuse_other_form(path)
    try:
        text = read_file(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path} is not UTF-8 at byte {error.start}: {CURE}") from error
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        if "\r" in line:
            raise VocabularyError(
                f"{path}, line {number}: {line!r} has a carriage return, as files of Windows do; "
                f"each line must end with a line feed only: {CURE}, or convert it with dos2unix"
            )
        yield line
