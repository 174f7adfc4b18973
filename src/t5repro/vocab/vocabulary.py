"""The vocabulary of a run: text to ids and back (paper section 2.2).

A vocabulary normalises text itself, with the rules stored in its file (SentencePiece: NFKC, white
space collapsed), so no caller may normalise before: pre-training, fine-tuning and prediction
would then see different ids.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.files import refuse_other_form
from t5repro.vocab.piece_model import PieceModel, read_piece_model
from t5repro.vocab.special_ids import EOS_ID, UNK_ID, sentinel_piece

TARGETS_AT_ONCE = 10_000  # ids of all targets of a large task would not fit into memory
SHOWN_CHARACTERS = 40  # of a target that the vocabulary changes
TARGET_WORD = "target:"  # between inputs and targets in the paper's text


class Vocabulary:
    """A trained or adopted vocabulary: pieces, followed by the sentinels.

    Attributes:
        total_ids: pieces and sentinels.
        extra_ids: sentinels.

    Example:
        vocabulary = Vocabulary.load(Path("sentencepiece.model"))
        ids = vocabulary.encode("Thank you")  # without EOS
        assert vocabulary.decode([*ids, EOS_ID, 7]) == "Thank you"
    """

    def __init__(self, pieces: PieceModel) -> None:
        self._pieces = pieces
        self.total_ids = pieces.total_ids
        self.extra_ids = 0
        while self.piece_id(sentinel_piece(self.extra_ids)) is not None:
            self.extra_ids += 1

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the vocabulary of a run.

        Raises:
            ArtifactError: it is missing or damaged.
            VocabularyError: its special ids are not T5's.
        """
        if not path.is_file():
            raise ArtifactError(f"{path} is missing; run the rule vocab")
        refuse_other_form(path)
        return cls.from_bytes(path.read_bytes(), path, cure="delete it and rerun the rule vocab")

    @classmethod
    def from_bytes(cls, data: bytes, where: Path, *, cure: str = "get it again") -> Self:
        """Return the vocabulary of the content of a file.

        Args:
            data: a serialised SentencePiece model, or what `adopted.files` makes of other files.
            where: its file, for messages.
            cure: instruction to the user if it is damaged.

        Raises:
            ArtifactError: it is damaged.
            VocabularyError: its special ids or its sentinels are not T5's.
        """
        return cls(read_piece_model(data, where, cure))

    @property
    def pieces(self) -> PieceModel:
        """Its pieces: their spellings, scores and positions, and the order of their ids."""
        return self._pieces

    def piece_id(self, piece: str) -> int | None:
        """Return the id of a piece, as the model spells it; None if the vocabulary lacks it."""
        return self._pieces.piece_id(piece)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        return self._pieces.encode(text)

    def encode_batch(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Return the ids of each text, without EOS; the ids do not depend on `threads`."""
        return self._pieces.encode_batch(texts, threads)

    def encode_with_ranges(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text, without EOS, and the characters that each of them stands for.

        A range is the first character in `text` and the one after the last; it may include the
        space before a word, and is empty for a piece that normalisation added.
        """
        return self._pieces.encode_ranges([text], 1)[0]

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
            decoded_text = self.decode(ids)
            if UNK_ID in ids:
                fault = "has a character that the vocabulary lacks"
            elif decoded_text != label:  # SentencePiece normalises spaces and forms of characters
                fault = f"becomes {decoded_text!r} in the vocabulary"
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
        fault_counts: Counter[str] = Counter()
        unknown, changed = "", ("", "")
        for start in range(0, len(targets), TARGETS_AT_ONCE):
            counts = Counter(targets[start : start + TARGETS_AT_ONCE])  # labels repeat
            for target, ids in zip(counts, self.encode_batch(list(counts)), strict=True):
                if UNK_ID in ids:
                    fault_counts["unknown"] += counts[target]
                    unknown = unknown or target
                elif (decoded_text := self.decode(ids)) != target:
                    fault_counts["changed"] += counts[target]
                    changed = changed if changed[0] else (target, decoded_text)
        faults = {
            "unknown": f"have characters that the vocabulary lacks, such as "
            f"{self._lacking(unknown)!r}; the model writes ⁇ in their place",
            "changed": f"are changed by the vocabulary, such as {_change(*changed)}",
        }
        return "; ".join(
            f"{fault_counts[kind]:,} of {len(targets):,} targets {fault}"
            for kind, fault in faults.items()
            if fault_counts[kind]
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
        return self._pieces.decode(before_eos)


def _change(target: str, decoded_text: str) -> str:
    """Return the first difference between a target and its text after decoding."""
    pairs = enumerate(zip(target, decoded_text, strict=False))
    shorter = min(len(target), len(decoded_text))
    first = next((index for index, (a, b) in pairs if a != b), shorter)
    start = max(first - SHOWN_CHARACTERS // 2, 0)
    target_excerpt, decoded_excerpt = (
        text[start : start + SHOWN_CHARACTERS] for text in (target, decoded_text)
    )
    # An accent of its own and the accented letter look alike.
    show = ascii if unicodedata.normalize("NFC", target_excerpt) == decoded_excerpt else repr
    return f"{show(target_excerpt)} to {show(decoded_excerpt)}"


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
