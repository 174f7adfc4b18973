"""The part of a family in a training, pre-training or fine-tuning: a `Training` value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import tensorflow as tf

from t5repro.model.labels import LabelColumns
from t5repro.systems.loss import Features, Loss

Settings = TypeVar("Settings")
Batch = tuple[Features, tf.Tensor]


class Rows(Protocol):
    """The rows that a training reads: batches are functions of the step."""

    def batches(self, *, first_step: int, steps: int) -> tf.data.Dataset:
        """Return the batches of steps `first_step` to `first_step + steps - 1`."""


@dataclass(frozen=True, kw_only=True)
class Training(Generic[Settings]):
    """How a family is trained in a stage.

    Attributes:
        network: makes the network from the settings of the stage, the columns of its head, none of
            a network that writes text, and the arguments that all networks have.
        loss: makes its loss from the settings and the columns.
        rows: opens the files of the rows.
        padding: makes a batch of padding with the shapes of a step, from the settings, a number of
            rows and the columns.
        new_pieces: special pieces whose rows of the embedding the stage begins anew.
    """

    network: Callable[[Settings, LabelColumns, Mapping[str, Any]], Any]
    loss: Callable[[Settings, LabelColumns], Loss]
    rows: Callable[..., Any]
    padding: Callable[[Settings, int, LabelColumns], Batch]
    new_pieces: tuple[str, ...] = ()
