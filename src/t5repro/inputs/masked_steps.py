"""The steps of pre-training on rows of sentences that read a document.

Every epoch draws the second segments of pairs again, so a table of rows cannot answer this: the
rows of all steps are read, without their masks, at some hundreds of batches a second.
"""

from collections.abc import Sequence

import numpy as np

from t5repro.array_types import Int64
from t5repro.inputs.document_steps import check_documents
from t5repro.inputs.sentence_rows import SentenceReader


def steps_of_masked_documents(
    read: SentenceReader, offsets: Int64, documents: Sequence[int], *, steps: int
) -> dict[int, list[int]]:
    """Return the steps below `steps` that read tokens of each document.

    Args:
        read: returns the rows of a step before masking.
        offsets: start of each document in the ids, and end of the last one.
        documents: indices of documents in the files of `tokens`.
        steps: number of steps of the training.

    Raises:
        ArtifactError: a document does not exist.
    """
    check_documents(offsets, documents)

    answer: dict[int, list[int]] = {document: [] for document in documents}
    for step in range(steps):
        rows = read(step)
        starts = rows.starts[rows.piece_lengths > 0]
        positions = np.searchsorted(offsets, starts, side="right") - 1
        for document in np.intersect1d(positions, list(answer)).tolist():
            answer[document].append(step)
    return answer
