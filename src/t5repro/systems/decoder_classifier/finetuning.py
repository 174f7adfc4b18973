"""The fine-tuning of GPT on labels, numbers and choices."""

import numpy as np

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.batches import Batch, Features
from t5repro.model.labels import LabelColumns
from t5repro.model.segment_rows import orders_of
from t5repro.systems import padding
from t5repro.systems.decoder_classifier.loss import DecoderAnswerLoss
from t5repro.systems.labelled_rows import answer_heads, labelled_rows
from t5repro.systems.training import Training


def _loss(settings: FinetuneStage, columns: LabelColumns) -> DecoderAnswerLoss:
    training = settings.finetune
    return DecoderAnswerLoss(z_loss=training.z_loss, columns=columns, lm_weight=training.lm_weight)


def _padding(settings: FinetuneStage, rows: int, columns: LabelColumns) -> Batch:
    text = padding.texts(settings.finetune, rows, columns)
    orders = ("decoder", "swapped")[: orders_of(settings.model, columns.answers)]
    features: Features = {
        f"{order}_{array}": text for order in orders for array in ("ids", "segments")
    }
    features["last_positions"] = np.zeros((*text.shape[:-1], 1), np.int32)
    return padding.answer_batch(features, rows, columns)


FINETUNING = Training[FinetuneStage](
    family="decoder_classifier",
    heads=answer_heads,
    loss=_loss,
    rows=labelled_rows,
    padding=_padding,
    # Pre-training has them in its softmax, where they are never the next piece, so it moves all of
    # them alike. The released code appends new rows to the pre-trained matrix.
    new_pieces=("_start_", "_delimiter_", "_classify_"),
)
