"""Rows of fine-tuning of a network that writes no text: examples with labels, numbers or spans."""

from collections.abc import Mapping
from pathlib import Path

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.labelled import LabelledInputs, load_labelled_inputs


def labelled_rows(
    settings: FinetuneStage,
    *,
    examples: Mapping[str, Path],
    vocabulary: Path,
    seed: int,
    tokens: Path | None = None,
) -> LabelledInputs:
    """Read the training examples of every task; see `load_labelled_inputs`.

    Args:
        settings: settings of the stage.
        examples: task -> file of training examples.
        vocabulary: the SentencePiece model.
        seed: of this repetition of the stage.
        tokens: not read: the mixture has no corpus.
    """
    return load_labelled_inputs(settings, examples=examples, vocabulary=vocabulary, seed=seed)
