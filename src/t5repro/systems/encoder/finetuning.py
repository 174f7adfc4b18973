"""The fine-tuning of an encoder on labels, numbers, choices and spans."""

from collections.abc import Mapping
from typing import Any

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.model.encoder import Encoder
from t5repro.model.labels import LabelColumns
from t5repro.systems import padding
from t5repro.systems.encoder.loss import EncoderAnswerLoss
from t5repro.systems.labelled_rows import labelled_rows
from t5repro.systems.training import Batch, Training


def _network(settings: FinetuneStage, columns: LabelColumns, shape: Mapping[str, Any]) -> Encoder:
    return Encoder(
        settings.model,
        labels=columns.total,
        predicts_spans=columns.has_spans,
        classifier_dropout=settings.finetune.classifier_dropout,
        **shape,
    )


def _loss(settings: FinetuneStage, columns: LabelColumns) -> EncoderAnswerLoss:
    return EncoderAnswerLoss(z_loss=settings.finetune.z_loss, columns=columns)


def _padding(settings: FinetuneStage, rows: int, columns: LabelColumns) -> Batch:
    text = padding.texts(settings.finetune, rows, columns)
    features = dict.fromkeys(("encoder_ids", "encoder_segments", "encoder_types"), text)
    return padding.with_answers(features, rows, columns)


FINETUNING = Training[FinetuneStage](
    network=_network, loss=_loss, rows=labelled_rows, padding=_padding
)
