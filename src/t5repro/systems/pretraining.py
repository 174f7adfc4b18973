"""The table of pre-trainings: family -> heads, loss and rows (`config/families.py`)."""

from collections.abc import Mapping
from pathlib import Path

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.rows import CorpusRows
from t5repro.systems.decoder.pretraining import PRETRAINING as DECODER
from t5repro.systems.encoder.pretraining import PRETRAINING as ENCODER
from t5repro.systems.encoder_decoder.pretraining import PRETRAINING as ENCODER_DECODER
from t5repro.systems.generator_detector.pretraining import PRETRAINING as GENERATOR_DETECTOR
from t5repro.systems.training import Training
from t5repro.systems.two_stream.pretraining import PRETRAINING as TWO_STREAM

PRETRAININGS: Mapping[str, Training[PretrainStage]] = {
    training.family: training
    for training in (ENCODER_DECODER, DECODER, ENCODER, GENERATOR_DETECTOR, TWO_STREAM)
}


def pretraining_of(model: ModelSettings) -> Training[PretrainStage]:
    """Return how the family of a network is pre-trained."""
    return PRETRAININGS[model.family.name]


def open_rows(settings: PretrainStage, *, seed: int, **files: Path) -> CorpusRows:
    """Open the files of a split of the corpus.

    Args:
        settings: settings of the stage.
        seed: of the rows and the noise.
        files: `ids`, `offsets`; and `sentences`, `word_starts` if the objective reads sentences.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus does not fill a row.
    """
    rows: CorpusRows = pretraining_of(settings.model).rows(settings, seed=seed, **files)
    return rows
