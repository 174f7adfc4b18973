"""Settings of the vocabulary (`vocab.*`) and of its stages (paper section 3.1.3)."""

from pydantic import Field

from t5repro.config.field import Section
from t5repro.config.languages import Language

LANES = 128  # rows of the embedding are padded to a multiple of this (TPU tiles)
# Separators, masks, and the starts and ends of rows of the systems before T5 (`special_pieces`).
SPECIAL_PIECES = (
    "[CLS]", "[SEP]", "[MASK]", "_start_", "_delimiter_", "_classify_", "<eod>", "<eop>",
)  # fmt: skip
# Files next to a vocabulary: in some, Hugging Face's tokenizers state tokens and options.
MERGES, DEFINITION = "merges.txt", "tokenizer.json"
TOKENIZER_FILES = (
    "added_tokens.json", "tokenizer_config.json", "special_tokens_map.json", DEFINITION,
)  # fmt: skip


class VocabSample(Section):
    """The part of `vocab` that sampling reads."""

    language_parts: dict[Language, int] = {"en": 10, "de": 1, "fr": 1, "ro": 1}
    """Language -> its part of the characters of the training sample."""
    sample_chars: int = Field(100_000_000, ge=1000)
    """Size of the training sample, all languages together; characters."""
    sample_seed: int = Field(0, ge=0)
    """Seed of the training sample. Independent of `seed`: repetitions share a vocabulary."""


class VocabTraining(Section):
    """The part of `vocab` that training reads."""

    vocab_size: int = Field(32_000, ge=16, le=1_000_000)
    """Number of pieces, without sentinels; `weights import` tells that of another vocabulary."""
    extra_ids: int = Field(100, ge=0, le=10_000)
    """Number of sentinels `<extra_id_k>`."""
    character_coverage: float = Field(0.9995, gt=0.9, le=1)
    """Fraction of the characters of the sample that pieces cover."""
    required_characters: str = ""
    """Characters that always have a piece. A small corpus may lack one that a label contains, such
    as the underscore of `not_entailment`.
    """
    model_file: str = ""
    """Raw file with a vocabulary to use, such as from a published checkpoint: a model of
    SentencePiece, `vocab.txt`, `vocab.json` or `tokenizer.json`. T5's missing sentinels are
    appended, others have none (`extra_ids: 0`). Listed files next to it, such as `merges.txt` and
    `tokenizer_config.json`, belong to it. If empty, a SentencePiece model is trained.
    """


class VocabSettings(VocabSample, VocabTraining):
    """The vocabulary (paper section 3.1.3)."""

    @property
    def total_ids(self) -> int:
        """Ids in use: pieces and sentinels."""
        return self.vocab_size + self.extra_ids

    @property
    def embedding_rows(self) -> int:
        """Rows of the embedding: `total_ids` rounded up to a multiple of 128."""
        return -(-self.total_ids // LANES) * LANES


class RunVocab(VocabSettings):
    """The vocabulary of an experiment, its own or another's. Stages receive `VocabSettings`."""

    from_experiment: str = ""
    """Earlier experiment of which an experiment uses the vocabulary, with all other settings of
    `vocab`, such as the baseline's for another corpus. If empty, it has its own.
    """


class VocabSampleStage(Section):
    """Settings of `vocab_sample`."""

    vocab: VocabSample


class VocabStage(Section):
    """Settings of `vocab`."""

    vocab: VocabTraining
