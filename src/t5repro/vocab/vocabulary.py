"""The trained vocabulary: text to ids and back (paper section 2.2).

SentencePiece normalises text itself, with the rules stored in the model file (NFKC, white space
collapsed), so no caller may normalise before: training, fine-tuning inside tf.data and prediction
would then see different ids.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import sentencepiece

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError, SettingsError, VocabularyError
from t5repro.vocab.special_ids import EOS_ID, NO_ID, PAD_ID, UNK_ID, sentinel_piece

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
        # SentencePiece returns the unknown id for a piece that the model lacks.
        while processor.piece_to_id(sentinel_piece(self.extra_ids)) != UNK_ID:
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
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.load_from_serialized_proto(path.read_bytes())
        except RuntimeError as error:
            raise ArtifactError(
                f"{path} is not a SentencePiece model; delete it and rerun the rule vocab"
            ) from error
        expected = (PAD_ID, EOS_ID, UNK_ID, NO_ID)
        actual = (processor.pad_id(), processor.eos_id(), processor.unk_id(), processor.bos_id())
        if actual != expected:
            raise VocabularyError(
                f"{path} has pad, eos, unk, bos {actual}, T5 needs {expected}; "
                f"train it with the rule vocab"
            )
        return cls(processor)

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
