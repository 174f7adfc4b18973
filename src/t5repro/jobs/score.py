"""The job of the scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from t5repro.artifacts import STEP_PREFIX
from t5repro.config.sections.score import ScoreStage
from t5repro.jobs.fields import BY_FOLDER, OUTPUT, KeptSteps, Manifest, Read


@dataclass(frozen=True)
class ScoreJob:
    """Score the predictions.

    Attributes:
        settings: settings of the stage.
        predictions: task -> predictions; the file is named after the task.
        train: task -> training examples, for the trivial answer; evaluation-only tasks have none.
        scores: scores to write.
        manifest: manifest to write.
        kept_steps: steps of fine-tuning with predictions; of all but the last they are in
            ``step-<n>/`` next to `predictions`.
    """

    settings: ScoreStage
    predictions: Annotated[
        Mapping[str, Path], Read(listed=(f"{STEP_PREFIX}*/*.jsonl",), keys="stem")
    ]
    train: Annotated[Mapping[str, Path], BY_FOLDER]
    scores: Annotated[Path, OUTPUT]
    manifest: Manifest
    kept_steps: KeptSteps = ()
