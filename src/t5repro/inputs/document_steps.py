"""The steps of pre-training that read a document.

The answer is computed with NumPy from the layout that training itself reads; `row_order` gives the
same order of rows as training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from t5repro.array_types import Int64, Mask
from t5repro.errors import ArtifactError
from t5repro.inputs.corpus_layout import CorpusLayout
from t5repro.inputs.packing import Stream
from t5repro.inputs.row_order import phases, shuffled_rows

ROWS_PER_DRAW = 1 << 20


def steps_of_documents(
    inputs: CorpusLayout, documents: Sequence[int], *, steps: int
) -> dict[int, list[int]]:
    """Return the steps below `steps` that read tokens of each document.

    The order of all rows is computed once, at millions of rows a second whatever the length of a
    row; memory is proportional to the result.

    Args:
        inputs: of the pre-training.
        documents: indices of documents in the files of `tokens`.
        steps: number of steps of the training.

    Raises:
        ArtifactError: a document does not exist.
    """
    check_documents(inputs.offsets, documents)
    batch_size = inputs.settings.batch_size
    positions = {document: _position(inputs, document) for document in documents}
    steps_of_document: dict[int, list[Int64]] = {document: [] for document in documents}
    for numbers, row, epoch in _all_rows(inputs, steps * batch_size):
        phase = _phase(inputs, epoch)
        for document, position in positions.items():
            # `numbers` are rows of the run, so the division by the batch size gives steps.
            matches = numbers[position.overlaps(row, phase)]
            steps_of_document[document].append(np.unique(matches // batch_size))
    return {
        document: np.unique(np.concatenate([*step_arrays, np.zeros(0, np.int64)])).tolist()
        for document, step_arrays in steps_of_document.items()
    }


def check_documents(offsets: Int64, documents: Sequence[int]) -> None:
    """Raise `ArtifactError` if a document is not among those with these offsets."""
    count = len(offsets) - 1
    for document in documents:
        if not 0 <= document < count:
            raise ArtifactError(f"there is no document {document}; they go from 0 to {count - 1}")


def _all_rows(inputs: CorpusLayout, count: int) -> Iterator[tuple[Int64, Int64, Int64]]:
    """Yield the rows of the run, numbered from its start: number, row of the layout, epoch."""
    for first in range(0, count, ROWS_PER_DRAW):
        numbers = np.arange(first, min(first + ROWS_PER_DRAW, count), dtype=np.int64)
        row, epoch = shuffled_rows(numbers, inputs.rows_per_epoch, inputs.seed)
        yield numbers, row, epoch


def _phase(inputs: CorpusLayout, epoch: Int64) -> Int64:
    """Return the token of the stream at which each epoch begins; 0 for packed rows."""
    if not isinstance(inputs.layout, Stream):
        return np.zeros_like(epoch)
    epochs, index = np.unique(epoch, return_inverse=True)
    epoch_phases = phases(epochs, inputs.layout.phase_range, inputs.seed)
    return np.asarray(epoch_phases[index])


@dataclass(frozen=True)
class _StreamPosition:
    """A document in a stream: tokens `low` to `high - 1`."""

    low: int
    high: int
    segment_tokens: int

    def overlaps(self, row: Int64, phase: Int64) -> Mask:
        """Tell for each row of the layout whether it contains a token of the document."""
        first = row * self.segment_tokens + phase
        return (first < self.high) & (first + self.segment_tokens > self.low)


@dataclass(frozen=True)
class _PackedPosition:
    """A document in packed rows: the rows with one of its segments."""

    rows: Int64

    def overlaps(self, row: Int64, phase: Int64) -> Mask:
        """Tell for each row of the layout whether it contains a token of the document."""
        return np.isin(row, self.rows)


def _position(inputs: CorpusLayout, document: int) -> _StreamPosition | _PackedPosition:
    low, high = inputs.offsets[document : document + 2]
    starts = inputs.layout.starts
    # A chunk begins anywhere inside its document, so pieces are found by range, not by equality.
    indices = np.flatnonzero((starts >= low) & (starts < high))
    if isinstance(inputs.layout, Stream):
        (index,) = indices  # a stream uses one piece of each document
        end_offsets = inputs.layout.end_offsets
        begin = int(end_offsets[index - 1]) if index else 0
        return _StreamPosition(begin, int(end_offsets[index]), inputs.layout.segment_tokens)
    return _PackedPosition(np.unique(np.searchsorted(inputs.layout.splits, indices, "right") - 1))
