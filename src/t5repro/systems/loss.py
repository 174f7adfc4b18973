"""The loss of a training: a value, separate from the network, that reads its outputs.

`train.step.TrainedModel` divides the sum of a loss by the normaliser and by micro-batches, so a
loss only says how it sums. To add one, subclass `Loss` in the folder of its system.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.systems.token_loss import PaddedMeanLoss, token_losses
from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, tf.Tensor]


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
        self, network: Any, features: Features, targets: tf.Tensor, *, z_loss: float, training: bool
    ) -> tf.Tensor:
        """Return the loss of each target, 0 at padding, of the shape of `targets`.

        Args:
            network: the network.
            features: of some rows.
            targets: of the same rows.
            z_loss: weight of log(Z)^2.
            training: apply dropout.
        """

    def count(self, targets: tf.Tensor) -> tf.Tensor:
        """Return the number of targets without padding, int32."""
        return tf.reduce_sum(tf.cast(targets != PAD_ID, tf.int32))

    def term_weights(
        self, network: Any, features: Features, targets: tf.Tensor, divisor: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the weights of further terms of the loss, which have divisors of their own.

        Args:
            network: the network.
            features: of all rows of a replica.
            targets: of the same rows.
            divisor: of the summed loss.
        """
        return {}

    def summed(
        self, network: Any, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """Return the summed loss of some rows in training.

        Args:
            network: the network.
            features: of the rows.
            targets: of the rows.
            weights: see `term_weights`.
        """
        return tf.reduce_sum(
            self.target_losses(network, features, targets, z_loss=self.z_loss, training=True)
        )

    @property
    def keras_loss(self) -> keras.losses.Loss | None:
        """The same loss for Keras's own step, which sees only the outputs of the network."""
        return None


class TextLoss(Loss):
    """The loss of a network that writes text: one target at each position of its output."""

    def target_losses(
        self, network: Any, features: Features, targets: tf.Tensor, *, z_loss: float, training: bool
    ) -> tf.Tensor:
        """Return the losses of ids, see `Loss`."""
        return token_losses(targets, network(features, training=training), z_loss)

    @property
    def keras_loss(self) -> keras.losses.Loss:
        """The mean over the padded targets."""
        return PaddedMeanLoss(self.z_loss)


def over_replicas(count: tf.Tensor) -> tf.Tensor:
    """Return the sum of a count over all replicas, float32."""
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(count, tf.float32))
