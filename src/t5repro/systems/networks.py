"""The table of networks: family -> constructor, the same for every stage (`config/families.py`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.model.encoder import Encoder
from t5repro.model.generator_detector import Detector, GeneratorDetector, Task
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.model.transformer import Decoder, DecoderClassifier, EncoderDecoder
from t5repro.model.two_stream import TwoStreamEncoder


@dataclass(frozen=True)
class Memory:
    """The memory of a pre-training on row slots.

    Attributes:
        rows: of a batch.
        length: positions that are remembered of each row; 0 means no memory.
        reuse_length: positions of a row that are remembered in a step, from its start.
        both_directions: whether every second row is read backwards.
    """

    rows: int
    length: int
    reuse_length: int
    both_directions: bool


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The heads that a stage trains or reads; networks that write text have none.

    Attributes:
        columns: columns of the head of answers.
        classifier_dropout: share of features dropped before it; if absent, the network's rate.
        pair_classes: classes of a pair of segments in pre-training; 0 means no such head.
        predicts_boundaries: whether pre-training has the head of the boundary objective.
        replaced_tokens: task of ELECTRA's second network in pre-training.
        memory: of a pre-training on row slots.
        task_dropout: task -> share of features dropped before its labels, if it has its own.
        turn_dropout: share of the turns of an answer network that training leaves out.
    """

    columns: LabelColumns = NO_COLUMNS
    classifier_dropout: float | None = None
    pair_classes: int = 0
    predicts_boundaries: bool = False
    replaced_tokens: Task = "detection"
    memory: Memory | None = None
    task_dropout: Mapping[str, float] = field(default_factory=dict)
    turn_dropout: float = 0.0


def _decoder_classifier(
    model: ModelSettings, heads: Heads, shape: Mapping[str, Any]
) -> DecoderClassifier:
    return DecoderClassifier(
        model, labels=heads.columns.total, classifier_dropout=heads.classifier_dropout, **shape
    )


def _encoder(
    model: ModelSettings,
    heads: Heads,
    shape: Mapping[str, Any],
    *,
    network: type[Encoder] = Encoder,
) -> Encoder:
    columns = heads.columns
    return network(
        model,
        labels=columns.total,
        networks=[(task, first, width) for task, (first, width, _) in columns.networks.items()],
        task_dropout=[
            (task, *columns.columns[task][:2], rate)
            for task, rate in heads.task_dropout.items()
            if task in columns.answers and columns.answers[task].kind not in ("span", "tags")
        ],
        turn_dropout=heads.turn_dropout,
        predicts_spans=columns.has_spans,
        tags=columns.tags,
        classifier_dropout=heads.classifier_dropout,
        pair_classes=heads.pair_classes,
        predicts_boundaries=heads.predicts_boundaries,
        **shape,
    )


def _two_stream(model: ModelSettings, heads: Heads, shape: Mapping[str, Any]) -> TwoStreamEncoder:
    memory = heads.memory or Memory(0, 0, 0, both_directions=False)
    return TwoStreamEncoder(
        model,
        labels=heads.columns.total,
        classifier_dropout=heads.classifier_dropout,
        memory_shape=(memory.rows, memory.length),
        reuse_length=memory.reuse_length,
        both_directions=memory.both_directions,
        **shape,
    )


# Each takes the shape of the network, its heads and the arguments that all networks have.
NETWORKS: Mapping[str, Callable[[ModelSettings, Heads, Mapping[str, Any]], Any]] = {
    "encoder_decoder": lambda model, heads, shape: EncoderDecoder(model, **shape),
    "decoder": lambda model, heads, shape: Decoder(model, **shape),
    "decoder_classifier": _decoder_classifier,
    "encoder": _encoder,
    "detector": partial(_encoder, network=Detector),
    "generator_detector": lambda model, heads, shape: GeneratorDetector(
        model, task=heads.replaced_tokens, **shape
    ),
    "two_stream": _two_stream,
}
