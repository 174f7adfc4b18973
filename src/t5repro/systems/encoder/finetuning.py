"""The fine-tuning of an encoder on labels, numbers, choices, spans and tags."""

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.batches import Batch
from t5repro.model.labels import LabelColumns
from t5repro.systems import padding
from t5repro.systems.encoder.loss import EncoderAnswerLoss
from t5repro.systems.labelled_rows import answer_heads, labelled_rows
from t5repro.systems.training import Training


def _loss(settings: FinetuneStage, columns: LabelColumns) -> EncoderAnswerLoss:
    return EncoderAnswerLoss(z_loss=settings.finetune.z_loss, columns=columns)


def _padding(settings: FinetuneStage, rows: int, columns: LabelColumns) -> Batch:
    text = padding.texts(settings.finetune, rows, columns)
    features = dict.fromkeys(("encoder_ids", "encoder_segments", "encoder_types"), text)
    return padding.answer_batch(features, rows, columns)


FINETUNING = Training[FinetuneStage](
    family="encoder", heads=answer_heads, loss=_loss, rows=labelled_rows, padding=_padding
)
