"""The job of the report."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated

from t5repro.config.schema import ReportStage
from t5repro.jobs.fields import OUTPUT, STAGE, Manifest, Read

ByExperiment = Annotated[Mapping[str, Path], STAGE]
FilesByExperiment = Annotated[Mapping[str, Sequence[Path]], STAGE]


@dataclass(frozen=True)
class ReportJob:
    """Write the report of a run.

    Attributes:
        settings: all settings of the run.
        scores: experiment -> its scores, with their manifest in the same folder; the page keeps
            the order.
        pretrain_history: experiment -> history of its pre-training.
        finetune_history: experiment, or its fine-tuning on a group of tasks -> history.
        corpus: experiment -> manifest of its corpus, if any.
        tokens: experiment -> manifest of its ids, which counts the tokens of the held-out text.
        contamination: experiment -> evaluated rows that its corpus has, if it was searched.
        predictions: experiment -> its predictions at the last step; the task names the file.
        pages: experiment -> first training file of each language of its corpus, if any.
        vocabularies: experiment -> its SentencePiece model, next to the list of its pieces.
        html: page to write.
        trace: lineage page to write.
        corpus_page: page of the corpus and the vocabulary to write.
        contamination_page: page of the evaluated rows that the corpus has to write.
        answers: task -> page to write with the answers to its rows; its predictions are needed.
        csv: table of the scores to write, in full precision.
        metrics: experiment -> file to write with its scores and last losses.
        manifest: manifest to write.
    """

    settings: ReportStage
    _: KW_ONLY
    scores: ByExperiment
    pretrain_history: ByExperiment
    finetune_history: ByExperiment
    corpus: ByExperiment = field(default_factory=dict)
    tokens: ByExperiment = field(default_factory=dict)
    contamination: ByExperiment = field(default_factory=dict)
    predictions: FilesByExperiment = field(default_factory=dict)
    pages: FilesByExperiment = field(default_factory=dict)
    vocabularies: Annotated[Mapping[str, Path], Read(listed=("*.vocab",))] = field(
        default_factory=dict
    )
    html: Annotated[Path, OUTPUT]
    trace: Annotated[Path | None, OUTPUT] = None
    corpus_page: Annotated[Path | None, OUTPUT] = None
    contamination_page: Annotated[Path | None, OUTPUT] = None
    answers: Annotated[Mapping[str, Path], OUTPUT] = field(default_factory=dict)
    csv: Annotated[Path, OUTPUT]
    metrics: Annotated[Mapping[str, Path], OUTPUT] = field(default_factory=dict)
    manifest: Manifest
