"""Settings of prediction (`evaluate.*`) and of the stage `evaluate_predict`."""

from typing import Literal

from pydantic import Field

from t5repro.config.field import Name, Section, check_names
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import AddedLayers, ModelSettings
from t5repro.config.sections.tasks import TaskNames, TasksSettings
from t5repro.config.sections.vocab import VocabSettings


class EvaluatedSplit(Section):
    """The part of `evaluate` that selects examples."""

    split: Literal["validation", "test"] = "validation"
    """Split to evaluate."""


class EvaluateSettings(EvaluatedSplit):
    """Prediction and scores (paper section 2.4)."""

    batch_size: int = Field(32, ge=1, le=1_048_576)
    """Batch size of decoding; examples."""
    inputs_length: int = Field(512, ge=4)
    """Maximum length of the inputs; tokens. Longer inputs are truncated."""
    max_decode_length: int = Field(128, ge=1)
    """Maximum length of a prediction; tokens."""
    beam_tasks: list[Name] = []
    """Tasks decoded by beam search; all others are decoded greedily. The paper's final models use
    it for cnn_dailymail and the wmt tasks.
    """
    beam_width: int = Field(4, ge=1, le=64)
    """Beams of beam search."""
    length_penalty: float = Field(0.6, ge=0)
    """Exponent alpha of beam search: log p is divided by ((5 + length) / 6)^alpha."""
    answer_length: int = Field(30, ge=1)
    """Maximum length of a span that an encoder only predicts (SQuAD); tokens."""
    span_candidates: int = Field(20, ge=1)
    """Likeliest first and last tokens of a window that the spans of an encoder only are made of."""
    null_threshold: float = Field(0.0, allow_inf_nan=False)
    """How much likelier than the likeliest span no answer must be, as the difference of their
    logits, that an encoder only answers that there is none (SQuAD 2.0).
    """
    checkpoints: Literal["last", "all"] = "last"
    """Checkpoints of fine-tuning to evaluate: the last, or all that `finetune.keep_checkpoints`
    keeps. The report then shows the best step of each group of tasks in addition to the last.
    """
    ensemble: list[Name] = []
    """Experiments that form an ensemble: the mean of the logits of their models predicts. If empty,
    the model of this experiment is used.
    """
    max_examples: int = Field(0, ge=0)
    """Maximum number of examples per task. 0 means all."""


class PredictStage(Section):
    """Settings of `evaluate_predict`."""

    vocab: VocabSettings
    model: ModelSettings
    tasks: TaskNames
    finetune: AddedLayers = AddedLayers()
    evaluate: EvaluateSettings
    devices: DevicesSettings


def check_evaluation(
    evaluate: EvaluateSettings, finetune: FinetuneSettings, tasks: TasksSettings
) -> None:
    """Raise ValueError if the evaluation needs tasks or checkpoints that do not exist."""
    check_names("evaluate.ensemble", evaluate.ensemble)
    if missing := sorted(set(evaluate.beam_tasks) - set(tasks.names)):
        raise ValueError(f"evaluate.beam_tasks names {missing}, which are not in tasks.names")
    if evaluate.checkpoints == "all" and finetune.keep_checkpoints != "all":
        raise ValueError(
            "evaluate.checkpoints 'all' needs finetune.keep_checkpoints 'all', which is "
            f"{finetune.keep_checkpoints!r}"
        )
    if evaluate.ensemble and (evaluate.checkpoints == "all" or evaluate.beam_tasks):
        raise ValueError(
            f"evaluate.ensemble {evaluate.ensemble} decodes greedily with the final weights of its "
            "members; evaluate.checkpoints must be 'last' and evaluate.beam_tasks empty"
        )
