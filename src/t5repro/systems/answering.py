"""The table of answers: family -> network of predictions, and how it answers examples."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.model import ModelSettings, tuned_family
from t5repro.model.encoder import Encoder
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.model.transformer import Decoder, DecoderClassifier, EncoderDecoder
from t5repro.systems.answers import Answers, Rows
from t5repro.systems.label_answers import answer_labels
from t5repro.systems.text_answers import answer_texts
from t5repro.vocab.vocabulary import Vocabulary

Shape = Mapping[str, Any]


@dataclass(frozen=True)
class Answering:
    """How a fine-tuned network answers the examples of tasks.

    Attributes:
        network: makes the network from its settings, the columns of its head and the arguments that
            all networks have.
        answer: returns the answers of sets of weights, see `answers`.
    """

    network: Callable[[ModelSettings, LabelColumns, Shape], Any]
    answer: Callable[..., Answers]


ANSWERINGS: Mapping[str, Answering] = {
    "encoder_decoder": Answering(
        lambda model, columns, shape: EncoderDecoder(model, **shape), answer_texts
    ),
    "decoder": Answering(lambda model, columns, shape: Decoder(model, **shape), answer_texts),
    "decoder_classifier": Answering(
        lambda model, columns, shape: DecoderClassifier(model, labels=columns.total, **shape),
        answer_labels,
    ),
    "encoder": Answering(
        lambda model, columns, shape: Encoder(
            model, labels=columns.total, predicts_spans=columns.has_spans, **shape
        ),
        answer_labels,
    ),
}


def answering_of(settings: PredictStage) -> Answering:
    """Return how the network of a stage answers."""
    return ANSWERINGS[tuned_family(settings.model, settings.finetune).name]


def build_network(settings: PredictStage, columns: LabelColumns = NO_COLUMNS) -> Any:
    """Return a network whose weights are still to be loaded, with a head of these columns."""
    shape = {
        "embedding_rows": settings.vocab.embedding_rows,
        "dropout_rate": 0.0,
        "seed": 0,
        "dtype": settings.devices.precision,
        "adapter_width": settings.finetune.width,
    }
    return answering_of(settings).network(settings.model, columns, shape)


def answers(
    settings: PredictStage,
    rows: Mapping[str, Rows],
    weight_sets: Sequence[Sequence[Path]],
    vocabulary: Vocabulary,
    replicas: int,
) -> Answers:
    """Return the answer to each example as text, for each set of weights.

    Args:
        settings: settings of the stage.
        rows: task -> examples.
        weight_sets: each the weights of one model, or of all members of an ensemble.
        vocabulary: of the run.
        replicas: devices that share a batch.

    Raises:
        ArtifactError: weights or examples are damaged, or of other tasks.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    return answering_of(settings).answer(
        settings,
        rows,
        weight_sets,
        vocabulary,
        replicas,
        make_network=functools.partial(build_network, settings),
    )
