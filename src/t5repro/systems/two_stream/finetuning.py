"""The fine-tuning of XLNet on labels, numbers and choices."""

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.batches import Batch
from t5repro.model.labels import LabelColumns
from t5repro.systems import padding
from t5repro.systems.labelled_rows import answer_heads, labelled_rows
from t5repro.systems.training import Training
from t5repro.systems.two_stream.loss import SummaryLoss


def _loss(settings: FinetuneStage, columns: LabelColumns) -> SummaryLoss:
    return SummaryLoss(z_loss=settings.finetune.z_loss, columns=columns)


def _padding(settings: FinetuneStage, rows: int, columns: LabelColumns) -> Batch:
    text = padding.texts(settings.finetune, rows, columns)
    features = dict.fromkeys(("encoder_ids", "encoder_segments", "encoder_types"), text)
    return padding.answer_batch(features, rows, columns)


FINETUNING = Training[FinetuneStage](
    family="two_stream", heads=answer_heads, loss=_loss, rows=labelled_rows, padding=_padding
)
