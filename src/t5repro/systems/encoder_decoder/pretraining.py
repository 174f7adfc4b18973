"""The pre-training of an encoder-decoder on the corpus, for any objective of text."""

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.systems import padding
from t5repro.systems.corpus_rows import corpus_rows
from t5repro.systems.loss import TextLoss
from t5repro.systems.training import Training

PRETRAINING = Training[PretrainStage](
    family="encoder_decoder",
    loss=lambda settings, columns: TextLoss(z_loss=settings.pretrain.z_loss),
    rows=corpus_rows,
    padding=lambda settings, rows, columns: padding.two_sided(settings.pretrain, rows),
)
