"""The pre-training of an encoder: masked pieces, pairs of segments, spans from their borders."""

from pathlib import Path

import numpy as np

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.batches import Batch, Features
from t5repro.inputs.masked_rows import MaskedInputs, load_masked_inputs
from t5repro.model.labels import LabelColumns
from t5repro.systems.encoder.loss import MaskedLoss
from t5repro.systems.networks import Heads
from t5repro.systems.training import Training


def _heads(settings: PretrainStage, columns: LabelColumns) -> Heads:
    masked_lm = settings.pretrain.masked_lm
    return Heads(
        pair_classes=masked_lm.pair_classes, predicts_boundaries=masked_lm.boundary_weight > 0
    )


def _loss(settings: PretrainStage, columns: LabelColumns) -> MaskedLoss:
    training = settings.pretrain
    return MaskedLoss(z_loss=training.z_loss, boundary_weight=training.masked_lm.boundary_weight)


def masked_rows(
    settings: PretrainStage,
    *,
    ids: Path,
    offsets: Path,
    seed: int,
    sentences: Path,
    word_starts: Path,
) -> MaskedInputs:
    """Open the files of a split of the corpus as rows of sentences; see `load_masked_inputs`."""
    return load_masked_inputs(
        settings.pretrain,
        ids=ids,
        offsets=offsets,
        sentences=sentences,
        word_starts=word_starts,
        vocab=settings.vocab,
        seed=seed,
        token_types=settings.model.token_types,
        draws_samples=settings.model.family.has_generator,
    )


def masked_padding(settings: PretrainStage, rows: int, columns: LabelColumns) -> Batch:
    """Return a batch of padding with the shapes of a step."""
    training = settings.pretrain
    text = np.zeros((rows, training.inputs_length), np.int32)
    positions = np.zeros((rows, training.targets_length), np.int32)
    names = ("encoder_ids", "encoder_segments", "encoder_types")
    features: Features = dict.fromkeys(names, text)
    features["target_positions"] = positions
    if training.masked_lm.pair_task != "none":
        features["pair_label"] = np.zeros((rows,), np.int32)
    if training.masked_lm.boundary_weight:
        features["boundary_positions"] = np.zeros((*positions.shape, 2), np.int32)
        features["boundary_index"] = positions
    return features, positions


PRETRAINING = Training[PretrainStage](
    family="encoder", heads=_heads, loss=_loss, rows=masked_rows, padding=masked_padding
)
