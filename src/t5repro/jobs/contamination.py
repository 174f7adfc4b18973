"""The job of the search for evaluated rows in the corpus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from t5repro.config.sections.c4 import Engine
from t5repro.config.sections.contamination import ContaminationStage
from t5repro.jobs.corpus import CorpusManifest, EngineOf
from t5repro.jobs.fields import BY_FOLDER, IDS, OUTPUT, Manifest, Read, Vocabulary


@dataclass(frozen=True)
class ContaminationJob:
    """Find the evaluated rows that the corpus has.

    Attributes:
        settings: methods, languages of the corpus, tasks with their texts, split.
        corpus: manifest of the corpus.
        tokens: manifest of the ids of the corpus, which are in its folder.
        vocabulary: SentencePiece model.
        examples: task -> its evaluated examples; the folder names the task.
        train: task -> training examples; evaluation-only tasks have none.
        found: rows and passages to write, as JSON.
        manifest: manifest to write; counts rows by task, method and verdict.
        engine: `c4.engine` and `c4.spark` as JSON, or a run file that contains them.
    """

    settings: ContaminationStage
    corpus: CorpusManifest
    tokens: Annotated[Path, Read(listed=IDS)]
    vocabulary: Vocabulary
    examples: Annotated[Mapping[str, Path], BY_FOLDER]
    train: Annotated[Mapping[str, Path], BY_FOLDER]
    found: Annotated[Path, OUTPUT]
    manifest: Manifest
    engine: EngineOf = field(default_factory=Engine)
