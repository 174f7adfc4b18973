"""The part of a family in a training, pre-training or fine-tuning: a `Training` value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from t5repro.inputs.batches import Batch, Batches
from t5repro.model.labels import LabelColumns
from t5repro.systems.loss import Loss
from t5repro.systems.networks import Heads

Settings = TypeVar("Settings")


class Rows(Protocol):
    """The rows that a training reads: batches are functions of the step."""

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""


@dataclass(frozen=True, kw_only=True)
class Training(Generic[Settings]):
    """How a family is trained in a stage.

    Attributes:
        family: name of the family, which selects the network of `NETWORKS`.
        heads: makes the heads of the network from the settings of the stage and the columns of the
            head of answers; by default the network has no heads.
        loss: makes the loss from the settings and the columns.
        rows: opens the files of the rows.
        padding: makes a batch of padding with the shapes of a step, from the settings, a number of
            rows and the columns.
        new_pieces: special pieces; the stage reinitialises their rows of the embedding.
    """

    family: str
    loss: Callable[[Settings, LabelColumns], Loss]
    rows: Callable[..., Any]
    padding: Callable[[Settings, int, LabelColumns], Batch]
    heads: Callable[[Settings, LabelColumns], Heads] = lambda settings, columns: Heads()
    new_pieces: tuple[str, ...] = ()
