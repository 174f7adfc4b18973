"""Settings of prediction (`evaluate.*`) and of the stage `evaluate_predict`."""

from typing import Literal

from pydantic import Field

from t5repro.config.field import Name, Section
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import AddedLayers, ModelSettings
from t5repro.config.sections.tasks import TaskNames
from t5repro.config.sections.vocab import VocabSettings


class EvaluateSettings(Section):
    """Prediction (paper section 2.4)."""

    batch_rows: int = Field(32, ge=1)
    """Examples decoded together."""
    inputs_length: int = Field(512, ge=4)
    """Maximum length of inputs, which are cut to it; tokens."""
    max_decode_length: int = Field(128, ge=1)
    """Maximum length of predictions; tokens."""
    beam_tasks: list[Name] = []
    """Tasks decoded by beam search, all others greedily; the paper's largest models use it for
    cnn_dailymail and the wmt tasks.
    """
    beam_width: int = Field(4, ge=1, le=64)
    """Hypotheses that beam search keeps."""
    length_penalty: float = Field(0.6, ge=0)
    """Alpha of beam search: log p is divided by ((5 + length) / 6)^alpha."""
    checkpoints: Literal["last", "all"] = "last"
    """Checkpoints of fine-tuning that are evaluated: the last, or all that
    `finetune.keep_checkpoints` keeps; then the best step of each group of tasks is reported in
    addition to the last.
    """
    ensemble: list[Name] = []
    """Experiments whose fine-tuned models form an ensemble, by the mean of their logits; empty:
    only the model of this experiment.
    """
    split: Literal["validation", "test"] = "validation"
    """Split that is predicted and scored."""
    max_examples: int = Field(0, ge=0)
    """Examples per task, from the first; 0: all."""


class PredictStage(Section):
    """Settings of `evaluate_predict`."""

    vocab: VocabSettings
    model: ModelSettings
    tasks: TaskNames
    finetune: AddedLayers = AddedLayers()
    evaluate: EvaluateSettings
    devices: DevicesSettings
