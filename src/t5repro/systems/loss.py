"""The loss of a training: a value, separate from the network, that reads its outputs.

A loss says how it sums and what the sum is divided by (`Loss.divisor`); the steps of both engines
(`train/tensorflow_step.py`, `train/jax_step.py`) divide. To add one, subclass `Loss` in the folder
of its system.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import keras
from keras import ops
from keras.config import floatx

from t5repro.engines.engine import engine
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.model.layers import Tensor
from t5repro.systems.token_loss import PaddedMeanLoss, token_losses
from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, Tensor]
Normaliser = Literal["padded_size", "target_tokens"]


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """The loss of a training.

    Attributes:
        z_loss: weight of log(Z)^2 of each target id.
        columns: columns of the head of answers; empty if the network writes text.
    """

    z_loss: float = 0.0
    columns: LabelColumns = NO_COLUMNS

    @abstractmethod
    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the loss of each target, 0 at padding, of the shape of `targets`.

        Args:
            network: the network.
            features: of some rows.
            targets: of the same rows.
            z_loss: weight of log(Z)^2.
            training: apply dropout.
        """

    def count(self, targets: Tensor) -> Tensor:
        """Return the number of targets without padding, int32."""
        return ops.sum(ops.cast(targets != PAD_ID, "int32"))

    def divisor(self, targets: Tensor, normaliser: Normaliser) -> Tensor:
        """Return the number that a batch's summed loss is divided by, the same on every replica.

        Args:
            targets: of all rows of a replica.
            normaliser: all target positions, or those without padding, counted over all replicas.
        """
        if normaliser == "padded_size":
            return ops.cast(ops.size(targets) * engine().replicas(), floatx())
        # A batch of only padding has a loss of 0.
        return ops.maximum(engine().over_replicas(self.count(targets)), 1.0)

    def term_weights(
        self, network: Any, features: Features, targets: Tensor, divisor: Tensor
    ) -> dict[str, Tensor]:
        """Return the weights of further terms of the loss, which have divisors of their own.

        Args:
            network: the network.
            features: of all rows of a replica.
            targets: of the same rows.
            divisor: of the summed loss.
        """
        return {}

    def summed(
        self, network: Any, features: Features, targets: Tensor, weights: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the summed loss of some rows in training.

        Args:
            network: the network.
            features: of the rows.
            targets: of the rows.
            weights: see `term_weights`.
        """
        return ops.sum(
            self.target_losses(network, features, targets, z_loss=self.z_loss, training=True)
        )

    def accuracy_names(self, network: Any) -> tuple[str, ...]:
        """Return the predictions whose accuracy on held-out text is measured; none by default."""
        return ()

    def right_answers(
        self, network: Any, features: Features, targets: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the right predictions and all predictions of each of `accuracy_names`, int32.

        Args:
            network: the network.
            features: of some rows.
            targets: of the same rows.
        """
        return ()

    @property
    def keras_loss(self) -> keras.losses.Loss | None:
        """The same loss for Keras's own step, which sees only the outputs of the network."""
        return None


class TextLoss(Loss):
    """The loss of a network that writes text: one target at each position of its output."""

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the losses of ids, see `Loss`."""
        return token_losses(targets, network(features, training=training), z_loss)

    @property
    def keras_loss(self) -> keras.losses.Loss:
        """The mean over the padded targets."""
        return PaddedMeanLoss(self.z_loss)
