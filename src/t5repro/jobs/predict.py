"""The job of the predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from t5repro.artifacts import STEP_PREFIX, WEIGHTS
from t5repro.config.sections.evaluate import PredictStage
from t5repro.jobs.fields import BY_FOLDER, Folder, KeptSteps, Manifest, Read, Vocabulary


@dataclass(frozen=True)
class PredictJob:
    """Predict the targets of every task.

    Attributes:
        settings: settings of the stage.
        weights: manifest of the fine-tuned weights; of an ensemble, of each member.
        examples: task -> examples to predict; the folder names the task.
        vocabulary: SentencePiece model.
        folder: folder of the predictions to write.
        manifest: manifest to write; it counts truncated inputs and predictions without EOS.
        kept_steps: steps of fine-tuning with kept weights to evaluate, the last included.
    """

    settings: PredictStage
    weights: Annotated[Sequence[Path], Read(listed=(WEIGHTS, f"{STEP_PREFIX}*/{WEIGHTS}"))]
    examples: Annotated[Mapping[str, Path], BY_FOLDER]
    vocabulary: Vocabulary
    folder: Folder
    manifest: Manifest
    kept_steps: KeptSteps = ()
