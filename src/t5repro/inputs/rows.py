"""The interface of all inputs of a pre-training: pieces of a stream, rows of sentences."""

from collections.abc import Sequence
from typing import Any, Protocol

from t5repro.array_types import Int64
from t5repro.inputs.batches import Batches
from t5repro.inputs.pretraining import Pieces


class CorpusRows(Protocol):
    """The rows of a split of the corpus."""

    @property
    def offsets(self) -> Int64:
        """Start of each document in the ids, and end of the last one."""

    @property
    def rows_per_epoch(self) -> int:
        """Rows that contain the text once."""

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""

    def counters(self, *, steps: int) -> dict[str, Any]:
        """Return counts of the first `steps` steps, for the manifest."""

    def pieces(self, step: int) -> Pieces:
        """Return the pieces of the file of ids in the batch of a step."""

    def denoisers(self, step: int) -> Int64 | None:
        """Return the index of the denoiser of each segment of a step; None without denoisers."""

    def steps_of(self, documents: Sequence[int], *, steps: int) -> dict[int, list[int]]:
        """Return the steps below `steps` that read tokens of each document."""
