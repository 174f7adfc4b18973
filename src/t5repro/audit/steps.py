"""Which steps of pre-training saw a document.

Which rows form a batch is a function of ids, seed and step alone, so the question is answered from
the layout that training itself read, without a model. This imports TensorFlow.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from t5repro.lineage.graph import Graph, Job


def steps_that_saw(
    graph: Graph, root: Path, documents: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return, for each pre-training run on a document's ids, the steps whose batch held some of it.

    Args:
        graph: of the working tree.
        root: the checkout.
        documents: what `pages.documents_of_url` says of a page.
    """
    found = []
    for place in documents:
        if place["document"] is None or place["split"] != "train":
            continue
        for job in graph.jobs.values():
            if job.rule == "pretrain" and any(item.path == place["ids"] for item in job.inputs):
                steps = _steps(root, job, place["ids"], place["document"])
                found.append({"job": job.name, "document": place["document"], "steps": steps})
    return found


def _steps(root: Path, job: Job, ids: str, document: int) -> list[int]:
    """Return the steps of one pre-training run that saw a document."""
    from t5repro.config.stages import PretrainStage
    from t5repro.inputs.step_audit import open_inputs, steps_of_documents

    settings = PretrainStage.model_validate(job.settings)
    if not settings.pretrain.steps:
        return []
    path = root / ids
    inputs = open_inputs(settings, ids=path, offsets=path.with_suffix(".offsets"))
    return steps_of_documents(inputs, [document], steps=settings.pretrain.steps)[document]
