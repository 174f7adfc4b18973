"""The steps of pre-training on rows of sentences that read a document.

Every epoch draws the second segments of pairs again, so a table of rows cannot answer this: the
rows of all steps are read, without their masks, at some hundreds of batches a second.
"""

from collections.abc import Callable, Sequence

import numpy as np

from t5repro.array_types import Int64
from t5repro.inputs.document_steps import check_documents


def steps_of_masked_documents(
    read_starts: Callable[[int], Int64], offsets: Int64, documents: Sequence[int], *, steps: int
) -> dict[int, list[int]]:
    """Return the steps below `steps` that read tokens of each document.

    Args:
        read_starts: returns the start of each piece of the file of ids in a step.
        offsets: start of each document in the ids, and end of the last one.
        documents: indices of documents in the files of `tokens`.
        steps: number of steps of the training.

    Raises:
        ArtifactError: a document does not exist.
    """
    check_documents(offsets, documents)

    answer: dict[int, list[int]] = {document: [] for document in documents}
    for step in range(steps):
        positions = np.searchsorted(offsets, read_starts(step), side="right") - 1
        for document in np.intersect1d(positions, list(answer)).tolist():
            answer[document].append(step)
    return answer
