"""The job of pre-training, and the common part of both trainings; `finetune` lists the files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from t5repro.artifacts import OPTIMIZER, WEIGHTS
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.jobs.fields import IDS, LOGS, OPTION, RESOURCE, Folder, Manifest, Read, Work

SENTENCES = ("*.sentences", "word_starts")


@dataclass(frozen=True, kw_only=True)
class Training:
    """What both trainings write, and how they are watched.

    Attributes:
        folder: receives weights.safetensors, optimizer.safetensors and history.csv.
        work: receives the checkpoints of an unfinished training.
        manifest: manifest to write.
        monitor: folder of training speeds and TensorBoard files; if absent, none are written.
        resume_changed: resume from the newest checkpoint although settings, inputs, code or
            libraries differ; the manifest records it.
        loggers: class and arguments of the loggers of other projects, `run.loggers`, as JSON.
    """

    folder: Folder
    work: Work
    manifest: Manifest
    monitor: Annotated[Path | None, LOGS] = None
    resume_changed: Annotated[bool, RESOURCE] = False
    loggers: Annotated[Sequence[Mapping[str, Any]], RESOURCE] = ()


@dataclass(frozen=True)
class PretrainJob(Training):
    """Pre-train on the corpus.

    Attributes:
        settings: settings of the stage.
        tokens: manifest of the ids, which are in its folder, unless no step reads them.
        sentences: manifest of the sentences of these ids, if the objective is masked_lm.
        start_from: folder of a published checkpoint.
        weights: manifest of an earlier pre-training to continue; weights and optimizer are in its
            folder. Without it and `start_from`, the initial weights are fresh.
    """

    settings: PretrainStage
    tokens: Annotated[Path | None, Read(listed=IDS)] = None
    sentences: Annotated[Path | None, Read(listed=SENTENCES)] = None
    start_from: Annotated[Path | None, OPTION] = None  # the rule data compared its hashes
    weights: Annotated[Path | None, Read(listed=(WEIGHTS, OPTIMIZER))] = None
