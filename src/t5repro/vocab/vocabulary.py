"""The trained vocabulary: text to ids and back (paper section 2.2).

SentencePiece normalises text itself, with the rules stored in the model file (NFKC, white space
collapsed), so no caller may normalise before: pre-training, fine-tuning and prediction
would then see different ids.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import sentencepiece

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError, SettingsError, VocabularyError
from t5repro.files import refuse_lfs_pointer
from t5repro.vocab.special_ids import EOS_ID, NO_ID, PAD_ID, UNK_ID, sentinel_piece

PLAIN_SENTINEL = re.compile(rb"<extra_id_\d+>")
TARGETS_AT_ONCE = 10_000  # ids of all targets of a large task would not fit into memory
SHOWN_CHARACTERS = 40  # of a target that the vocabulary changes
TARGET_WORD = "target:"  # between inputs and targets in the paper's text


class Vocabulary:
    """A trained vocabulary: pieces, followed by the sentinels.

    Attributes:
        total_ids: pieces and sentinels.
        extra_ids: sentinels.

    Example:
        vocabulary = Vocabulary.load(Path("sentencepiece.model"))
        ids = vocabulary.encode("Thank you")  # without EOS
        assert vocabulary.decode([*ids, EOS_ID, 7]) == "Thank you"
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self.total_ids: int = processor.get_piece_size()
        self.extra_ids = 0
        while self.piece_id(sentinel_piece(self.extra_ids)) is not None:
            self.extra_ids += 1

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a SentencePiece model.

        Raises:
            ArtifactError: it is missing or damaged.
            VocabularyError: its special ids are not T5's.
        """
        if not path.is_file():
            raise ArtifactError(f"{path} is missing; run the rule vocab")
        refuse_lfs_pointer(path)
        return cls.from_bytes(path.read_bytes(), path, cure="delete it and rerun the rule vocab")

    @classmethod
    def from_bytes(cls, proto: bytes, where: Path, *, cure: str = "get it again") -> Self:
        """Return the vocabulary of a serialised SentencePiece model.

        Args:
            proto: the model.
            where: its file, for messages.
            cure: instruction to the user if it is damaged.

        Raises:
            ArtifactError: it is damaged.
            VocabularyError: its special ids or its sentinels are not T5's.
        """
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
        vocabulary = cls(processor)
        vocabulary._check_sentinels(proto, where)
        return vocabulary

    def _check_sentinels(self, proto: bytes, where: Path) -> None:
        """Refuse sentinels that are not the last ids in descending order, or have no space sign."""
        # Where the model does not have them as pieces, the bytes name them in its settings only.
        texts = {text.decode() for text in PLAIN_SENTINEL.findall(proto)}
        plain = sorted(text for text in texts if self.piece_id(text) is not None)
        if plain:
            raise VocabularyError(
                f"{where} has the piece {plain[0]!r} as id {self.piece_id(plain[0])} "
                f"({len(plain)} such pieces); T5's sentinels are the last ids and begin with "
                f"SentencePiece's sign for a space, as {sentinel_piece(0)!r}: weights of this "
                "vocabulary cannot be used, and for a new training remove the pieces from its "
                "user-defined symbols"
            )
        for number in range(self.extra_ids):
            actual = self.piece_id(sentinel_piece(number))
            if actual != self.total_ids - 1 - number:
                raise VocabularyError(
                    f"{where} has {sentinel_piece(number)!r} as id {actual}; T5's sentinels are "
                    f"the last ids in descending order, here {self.total_ids - 1 - number}: name "
                    "another vocabulary, or remove the pieces from its user-defined symbols"
                )

    def piece_id(self, piece: str) -> int | None:
        """Return the id of a piece, as the model spells it; None if the vocabulary lacks it."""
        number: int = self._processor.piece_to_id(piece)
        # SentencePiece returns the unknown id for a piece that the model lacks.
        return None if number == UNK_ID else number

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        ids: list[int] = self._processor.encode(text)
        return ids

    def encode_batch(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Return the ids of each text, without EOS; the ids do not depend on `threads`."""
        ids: list[list[int]] = self._processor.encode(list(texts), num_threads=threads)
        return ids

    def encode_with_ranges(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text, without EOS, and the characters that each of them stands for.

        A range is the first character in `text` and the one after the last; it may include the
        space before a word, and is empty for a piece that normalisation added.
        """
        pieces = self._processor.encode(text, out_type="immutable_proto").pieces
        return [piece.id for piece in pieces], [(piece.begin, piece.end) for piece in pieces]

    def check_labels(self, labels: Sequence[str], cure: str) -> None:
        """Refuse labels that a model with this vocabulary cannot write.

        Args:
            labels: words that a model answers with.
            cure: instruction to the user.

        Raises:
            SettingsError: a label has a character that is in no piece, or comes back changed.
        """
        for label in labels:
            ids = self.encode(label)
            # The model answers with pieces: a label that they cannot spell is never right.
            written = self.decode(ids)
            if UNK_ID in ids:
                fault = "has a character that the vocabulary lacks"
            elif written != label:  # spaces and forms of characters that SentencePiece normalises
                fault = f"becomes {written!r} in the vocabulary"
            else:
                continue
            raise SettingsError(
                f"the label {label!r} {fault}, so the model cannot write it; {cure}"
            )

    def unwritable_targets(self, targets: Sequence[str]) -> str:
        """Return how many targets the model cannot write, and which; nothing if it can write all.

        A target has characters in no piece, or it comes back changed: SentencePiece joins white
        space and replaces some characters, such as full-width ones.
        """
        found: Counter[str] = Counter()
        unknown, changed = "", ("", "")
        for start in range(0, len(targets), TARGETS_AT_ONCE):
            counts = Counter(targets[start : start + TARGETS_AT_ONCE])  # labels repeat
            for target, ids in zip(counts, self.encode_batch(list(counts)), strict=True):
                if UNK_ID in ids:
                    found["unknown"] += counts[target]
                    unknown = unknown or target
                elif (written := self.decode(ids)) != target:
                    found["changed"] += counts[target]
                    changed = changed if changed[0] else (target, written)
        faults = {
            "unknown": f"have characters that the vocabulary lacks, such as "
            f"{self._lacking(unknown)!r}; the model writes ⁇ in their place",
            "changed": f"are changed by the vocabulary, such as {_change(*changed)}",
        }
        return "; ".join(
            f"{found[kind]:,} of {len(targets):,} targets {fault}"
            for kind, fault in faults.items()
            if found[kind]
        )

    def _lacking(self, target: str) -> str:
        """Return the first character of a target that is in no piece."""
        return next((c for c in target if UNK_ID in self.encode(c)), target)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` up to the first EOS.

        Source: released code, ``SentencePieceVocabulary.decode``.
        """
        before_eos: list[int] = []
        for number in ids:
            if number == EOS_ID:
                break
            # The embedding has more rows than the vocabulary has ids; a model can produce them.
            before_eos.append(int(number) if number < self.total_ids else UNK_ID)
        text: str = self._processor.decode(before_eos)
        return text


def _change(target: str, written: str) -> str:
    """Return where a target and what the vocabulary makes of it begin to differ."""
    pairs = enumerate(zip(target, written, strict=False))
    shorter = min(len(target), len(written))
    first = next((place for place, (left, right) in pairs if left != right), shorter)
    start = max(first - SHOWN_CHARACTERS // 2, 0)
    before, after = (text[start : start + SHOWN_CHARACTERS] for text in (target, written))
    # An accent of its own and the accented letter look alike.
    show = ascii if unicodedata.normalize("NFC", before) == after else repr
    return f"{show(before)} to {show(after)}"


def target_marker_ids(
    vocabulary: Vocabulary, model: ModelSettings, *, inputs_length: int
) -> tuple[int, ...]:
    """Return the ids that end the inputs of a task: EOS, or the word `target:`.

    Args:
        vocabulary: the vocabulary of the run.
        model: architecture and target marker.
        inputs_length: tokens of inputs in a row, the marker included.

    Raises:
        SettingsError: the marker fills `inputs_length`.

    Source: section 3.2.1 of the paper has the word, for a decoder-only network; the released code,
    model type ``delimited_lm``, EOS (D-011).
    """
    if model.family.joined and model.target_marker == "target_word":
        ids = tuple(vocabulary.encode(TARGET_WORD))
        if len(ids) >= inputs_length:
            raise SettingsError(
                f"inputs_length is {inputs_length}, the word {TARGET_WORD!r} has {len(ids)} "
                f"tokens in this vocabulary; raise it or set model.target_marker to eos"
            )
        return ids
    return (EOS_ID,)
