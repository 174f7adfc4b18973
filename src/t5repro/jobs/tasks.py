"""The job of the examples of a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from t5repro.config.sections.tasks import TasksStage
from t5repro.jobs.fields import OPTION, RAW, DataManifest, Folder, Manifest


@dataclass(frozen=True)
class TasksJob:
    """Write the examples of one task as text.

    Attributes:
        settings: settings of the stage.
        task: name of the task.
        files: split -> its original files, in order.
        folder: folder of the examples to write.
        manifest: manifest to write; its counters per split are rows, labelled rows, the length of
            the longest inputs in characters, and excluded rows, by reason.
        data: manifest of the rule data, which has the hashes of the raw files.
    """

    settings: TasksStage
    task: Annotated[str, OPTION]
    files: Annotated[Mapping[str, Sequence[Path]], RAW]
    folder: Folder
    manifest: Manifest
    data: DataManifest = None
