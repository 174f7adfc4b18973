"""The pre-training of an encoder: masked pieces, pairs of segments, spans from their borders."""

import numpy as np

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.batches import Batch
from t5repro.inputs.masked_rows import load_masked_inputs
from t5repro.model.labels import LabelColumns
from t5repro.systems.encoder.loss import MaskedLoss
from t5repro.systems.networks import Heads
from t5repro.systems.padding import predicted_rows
from t5repro.systems.training import Training


def _heads(settings: PretrainStage, columns: LabelColumns) -> Heads:
    masked_lm = settings.pretrain.masked_lm
    return Heads(
        pair_classes=masked_lm.pair_classes, predicts_boundaries=masked_lm.boundary_weight > 0
    )


def _loss(settings: PretrainStage, columns: LabelColumns) -> MaskedLoss:
    training = settings.pretrain
    return MaskedLoss(z_loss=training.z_loss, boundary_weight=training.masked_lm.boundary_weight)


def masked_padding(settings: PretrainStage, rows: int, columns: LabelColumns) -> Batch:
    """Return a batch of padding with the shapes of a step."""
    training = settings.pretrain
    features, positions = predicted_rows(training, rows)
    if training.masked_lm.pair_task != "none":
        features["pair_label"] = np.zeros((rows,), np.int32)
    if training.masked_lm.boundary_weight:
        features["boundary_positions"] = np.zeros((*positions.shape, 2), np.int32)
        features["boundary_index"] = positions
    return features, positions


PRETRAINING = Training[PretrainStage](
    family="encoder", heads=_heads, loss=_loss, rows=load_masked_inputs, padding=masked_padding
)
