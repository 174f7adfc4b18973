"""The fine-tuning of an encoder-decoder on tasks as text."""

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.inputs.corpus_mixture import load_finetuning_inputs
from t5repro.systems import padding
from t5repro.systems.loss import TextLoss
from t5repro.systems.training import Training

FINETUNING = Training[FinetuneStage](
    family="encoder_decoder",
    loss=lambda settings, columns: TextLoss(z_loss=settings.finetune.z_loss),
    rows=load_finetuning_inputs,
    padding=lambda settings, rows, columns: padding.two_sided(settings.finetune, rows),
)
