"""Which steps of pre-training saw a document.

Which rows form a batch is a function of ids, seed and step alone, so the question is answered by
going through the steps again, without a model. This imports TensorFlow; a minute for 50,000 steps
of a small corpus.
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
    from t5repro.inputs.spans import load_span_inputs

    settings = PretrainStage.model_validate(job.settings)
    total = settings.pretrain.steps
    if not total:
        return []
    inputs = load_span_inputs(
        settings.pretrain,
        tokens=root / ids,
        offsets=root / ids.replace(".ids", ".offsets"),
        vocab=settings.vocab,
        seed=settings.seed,
        final_sentinel=getattr(settings.pretrain, "final_sentinel", False),
    )
    return [step for step in range(total) if document in inputs.documents(step)]
