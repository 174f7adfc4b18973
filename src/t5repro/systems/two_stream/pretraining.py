"""The pre-training of XLNet: predictions in random orders on row slots with a memory."""

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.batches import Batch
from t5repro.inputs.permuted_rows import load_permuted_inputs
from t5repro.model.labels import LabelColumns
from t5repro.systems.networks import Heads, Memory
from t5repro.systems.padding import predicted_rows
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


def _padding(settings: PretrainStage, rows: int, columns: LabelColumns) -> Batch:
    return predicted_rows(settings.pretrain, rows, "encoder_order")


PRETRAINING = Training[PretrainStage](
    family="two_stream", heads=_heads, loss=_loss, rows=load_permuted_inputs, padding=_padding
)
