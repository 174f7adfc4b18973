"""The table of fine-tunings: family -> heads, loss and rows (`config/families.py`)."""

from collections.abc import Mapping

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import AddedLayers, ModelSettings, tuned_family
from t5repro.systems.decoder.finetuning import FINETUNING as DECODER
from t5repro.systems.decoder_classifier.finetuning import FINETUNING as DECODER_CLASSIFIER
from t5repro.systems.encoder.finetuning import FINETUNING as ENCODER
from t5repro.systems.encoder_decoder.finetuning import FINETUNING as ENCODER_DECODER
from t5repro.systems.generator_detector.finetuning import FINETUNING as DETECTOR
from t5repro.systems.training import Training
from t5repro.systems.two_stream.finetuning import FINETUNING as TWO_STREAM

FINETUNINGS: Mapping[str, Training[FinetuneStage]] = {
    training.family: training
    for training in (ENCODER_DECODER, DECODER, DECODER_CLASSIFIER, ENCODER, DETECTOR, TWO_STREAM)
}


def finetuning_of(model: ModelSettings, layers: AddedLayers) -> Training[FinetuneStage]:
    """Return how a network with these added layers is fine-tuned."""
    return FINETUNINGS[tuned_family(model, layers).name]
