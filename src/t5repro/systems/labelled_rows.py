"""Rows and heads of the fine-tuning of a network that answers by labels, numbers or spans."""

from collections.abc import Mapping
from pathlib import Path

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.labelled import LabelledInputs, load_labelled_inputs
from t5repro.model.labels import LabelColumns
from t5repro.systems.networks import Heads


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


def answer_heads(settings: FinetuneStage, columns: LabelColumns) -> Heads:
    """Return the heads of a network that is fine-tuned on labels, numbers, options or spans."""
    finetune = settings.finetune
    return Heads(
        columns=columns,
        classifier_dropout=finetune.classifier_dropout,
        task_dropout=finetune.task_dropout,
        turn_dropout=finetune.turn_dropout,
    )
