"""The pre-training of ELECTRA: masked pieces, and pieces that their predictions replaced."""

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.batches import Batch
from t5repro.inputs.masked_rows import load_masked_inputs
from t5repro.model.labels import LabelColumns
from t5repro.systems.encoder.pretraining import masked_padding
from t5repro.systems.generator_detector.loss import ReplacedTokensLoss
from t5repro.systems.networks import Heads
from t5repro.systems.training import Training


def _heads(settings: PretrainStage, columns: LabelColumns) -> Heads:
    return Heads(replaced_tokens=settings.pretrain.replaced_tokens.task)


def _loss(settings: PretrainStage, columns: LabelColumns) -> ReplacedTokensLoss:
    training = settings.pretrain
    replaced = training.replaced_tokens
    return ReplacedTokensLoss(z_loss=training.z_loss, task=replaced.task, weight=replaced.weight)


def _padding(settings: PretrainStage, rows: int, columns: LabelColumns) -> Batch:
    features, positions = masked_padding(settings, rows, columns)
    features["sample_draws"] = positions
    return features, positions


PRETRAINING = Training[PretrainStage](
    family="generator_detector", heads=_heads, loss=_loss, rows=load_masked_inputs, padding=_padding
)
