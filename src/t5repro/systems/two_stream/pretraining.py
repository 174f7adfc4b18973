"""The pre-training of XLNet: predictions in random orders on row slots with a memory."""

from pathlib import Path

import numpy as np

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.batches import Batch, Features
from t5repro.inputs.permuted_rows import PermutedInputs, load_permuted_inputs
from t5repro.model.labels import LabelColumns
from t5repro.systems.networks import Heads, Memory
from t5repro.systems.training import Training
from t5repro.systems.two_stream.loss import PermutationLoss


def _heads(settings: PretrainStage, columns: LabelColumns) -> Heads:
    training = settings.pretrain
    rows = training.permutation_lm
    memory = Memory(
        training.batch_size,
        rows.memory_length(training.inputs_length),
        rows.reuse_length(training.inputs_length),
        rows.both_directions,
    )
    return Heads(memory=memory)


def _loss(settings: PretrainStage, columns: LabelColumns) -> PermutationLoss:
    return PermutationLoss(z_loss=settings.pretrain.z_loss)


def _rows(
    settings: PretrainStage,
    *,
    ids: Path,
    offsets: Path,
    seed: int,
    sentences: Path,
    word_starts: Path,
) -> PermutedInputs:
    return load_permuted_inputs(
        settings.pretrain,
        ids=ids,
        offsets=offsets,
        sentences=sentences,
        word_starts=word_starts,
        vocab=settings.vocab,
        seed=seed,
    )


def _padding(settings: PretrainStage, rows: int, columns: LabelColumns) -> Batch:
    training = settings.pretrain
    text = np.zeros((rows, training.inputs_length), np.int32)
    positions = np.zeros((rows, training.targets_length), np.int32)
    names = ("encoder_ids", "encoder_segments", "encoder_types", "encoder_order")
    features: Features = {**dict.fromkeys(names, text), "target_positions": positions}
    return features, positions


PRETRAINING = Training[PretrainStage](
    family="two_stream", heads=_heads, loss=_loss, rows=_rows, padding=_padding
)
