"""The table of answers: family -> function that answers examples by text, label, choice or span."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.model import tuned_family
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.systems.answers import Answers, Rows
from t5repro.systems.label_answers import answer_labels
from t5repro.systems.networks import NETWORKS, Heads
from t5repro.systems.text_answers import answer_texts
from t5repro.vocab.vocabulary import Vocabulary

ANSWERINGS: Mapping[str, Callable[..., Answers]] = {
    "encoder_decoder": answer_texts,
    "decoder": answer_texts,
    "decoder_classifier": answer_labels,
    "encoder": answer_labels,
    "detector": answer_labels,
    "two_stream": answer_labels,
}


def build_network(settings: PredictStage, columns: LabelColumns = NO_COLUMNS) -> Any:
    """Return a network with a head of these columns, before its weights are loaded."""
    shape = {
        "embedding_rows": settings.vocab.embedding_rows,
        "dropout_rate": 0.0,
        "seed": 0,
        "dtype": settings.devices.precision,
        "adapter_width": settings.finetune.width,
    }
    return NETWORKS[_family_name(settings)](settings.model, Heads(columns=columns), shape)


def answers(
    settings: PredictStage,
    rows: Mapping[str, Rows],
    weight_sets: Sequence[Sequence[Path]],
    vocabulary: Vocabulary,
) -> Answers:
    """Return the answer to each example as text, for each set of weights.

    Args:
        settings: settings of the stage.
        rows: task -> examples.
        weight_sets: each the weights of one model, or of all members of an ensemble.
        vocabulary: of the run.

    Raises:
        ArtifactError: weights or examples are damaged, or of other tasks.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    return ANSWERINGS[_family_name(settings)](
        settings,
        rows,
        weight_sets,
        vocabulary,
        make_network=functools.partial(build_network, settings),
    )


def _family_name(settings: PredictStage) -> str:
    return tuned_family(settings.model, settings.finetune).name
