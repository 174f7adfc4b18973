"""Pre-training steps that saw a document.

The rows of a batch are a function of ids, seed and step only. The answer therefore needs no model
and no log: it is computed from the layout that training itself reads.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t5repro.audit.token_documents import TokenDocument
from t5repro.lineage.graph import Graph, Job

if TYPE_CHECKING:
    from t5repro.config.sections.pretrain import PretrainStage


@dataclass(frozen=True)
class JobSteps:
    """The steps of one pre-training job that had a part of a document in their batch."""

    job: str
    document: int
    steps: list[int]


def steps_that_saw(graph: Graph, root: Path, documents: Iterable[TokenDocument]) -> list[JobSteps]:
    """Return the steps that saw a document, for every pre-training job on its ids.

    Args:
        graph: lineage of the working tree.
        root: the checkout.
        documents: documents of a page; those without a number or of another split than ``train``
            are skipped.
    """
    numbers = defaultdict(list)
    for document in documents:
        if document.document is not None and document.split == "train":
            numbers[document.ids].append(document.document)
    return [
        JobSteps(job.name, number, steps)
        for ids, of_ids in numbers.items()
        for job in graph.jobs.values()
        if job.rule == "pretrain" and any(file.path == ids for file in job.inputs)
        for number, steps in steps_of(root, job, ids, of_ids).items()
    ]


def steps_of(root: Path, job: Job, ids: str, documents: Sequence[int]) -> dict[int, list[int]]:
    """Return document -> the steps of a pre-training job that saw it.

    Args:
        root: the checkout.
        job: the pre-training.
        ids: the ids that it read.
        documents: indices of documents in the ids.
    """
    from t5repro.config.sections.pretrain import PretrainStage
    from t5repro.inputs.corpus_layout import open_layout
    from t5repro.inputs.document_steps import steps_of_documents

    settings = PretrainStage.model_validate(job.settings)
    if not settings.pretrain.steps:
        return {document: [] for document in documents}
    if settings.pretrain.reads_sentences:
        return _steps_of_sentences(root, job, settings, ids, documents)
    layout = open_layout(settings, (root / ids).with_suffix(".offsets"))
    return steps_of_documents(layout, documents, steps=settings.pretrain.steps)


def _steps_of_sentences(
    root: Path, job: Job, settings: "PretrainStage", ids: str, documents: Sequence[int]
) -> dict[int, list[int]]:
    """Return the steps of a training on rows of sentences; TensorFlow draws their pairs."""
    from t5repro.randomness import repeat_seed
    from t5repro.systems.pretraining import open_rows
    from t5repro.systems.step_audit import SENTENCE_FILES

    paths = {Path(file.path).name: root / file.path for file in job.inputs}
    files = {keyword: paths[name] for keyword, name in SENTENCE_FILES.items()}
    offsets = (root / ids).with_suffix(".offsets")
    seed = repeat_seed(settings.seed, settings.pretrain.repeat)
    inputs = open_rows(settings, ids=root / ids, offsets=offsets, seed=seed, **files)
    return inputs.steps_of(documents, steps=settings.pretrain.steps)
