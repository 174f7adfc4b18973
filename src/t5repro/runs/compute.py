"""Operations and tokens of a training, computed from the settings in its manifest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from t5repro.config.field import Section
from t5repro.config.flops import step_flops
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.training import TrainingSettings
from t5repro.errors import T5ReproError
from t5repro.lineage.graph import Job
from t5repro.plan.memory import TRAININGS, texts_of_row

STAGES: Mapping[str, type[Section]] = {"pretrain": PretrainStage, "finetune": FinetuneStage}


@dataclass(frozen=True)
class Compute:
    """The compute of one training.

    Attributes:
        flops: floating-point operations of all steps (`step_flops`), padding included.
        tokens: positions of the inputs of all steps, as section 3.1.2 of the T5 paper counts them;
            of the targets for language modelling, which has no inputs.
    """

    flops: int
    tokens: int


def compute_of(job: Job) -> Compute | None:
    """Return the compute of a training; None if this version does not know its settings."""
    if job.rule not in TRAININGS:
        return None
    try:
        settings: Any = STAGES[job.rule].model_validate(dict(job.settings))
        training: TrainingSettings = getattr(settings, job.rule)
        step = step_flops(
            settings.model,
            training,
            embedding_rows=settings.vocab.embedding_rows,
            texts=texts_of_row(job.rule, settings),
        )
    # A later or earlier version, an altered manifest, or a task of the user without a row here.
    except (ValidationError, T5ReproError, KeyError):
        return None
    rows = training.steps * training.batch_size
    length = training.packed_inputs_length or training.targets_length
    return Compute(training.steps * step, rows * length)
