"""A network with its loss, as a Keras model; an engine adds the step.

`tensorflow_step` and `jax_step` compute the same: gradients of a batch, whole or in micro-batches,
and one update. Micro-batches need the memory of one part only. The update equals the update of the
whole batch up to rounding, since the loss is a sum over targets divided by one number for all of
them.

Source: mesh ``Unitransformer.loss_denominator``, ``serialize_training_step``.
"""

from typing import Any

import keras

from t5repro.systems.loss import Features, Loss, Normaliser
from t5repro.train.counts import FilledPositions, TargetCount


class TrainedModel(keras.Model):
    """A network with the loss that it is trained on.

    Args:
        network: the network, with its weights.
        loss: of a batch.
        normaliser: divisor of a batch's summed loss: all target positions, or those without
            padding, counted over all replicas.
        micro_batches: number of parts that a replica's batch is split into.
    """

    def __init__(
        self, network: Any, loss: Loss, *, normaliser: Normaliser, micro_batches: int
    ) -> None:
        super().__init__(name=network.name, dtype=network.dtype_policy, autocast=False)
        self.network = network
        self.objective = loss  # `loss` is what Keras's own step computes, see `compile`
        self.normaliser = normaliser
        self.micro_batches = micro_batches
        self.tokens = TargetCount()
        self.filled = FilledPositions()
        self.built = True  # the network has built itself

    def call(self, features: Features, training: bool = False) -> Any:
        """Return the outputs of the network."""
        return self.network(features, training=training)

    def count(self, features: Features, targets: Any) -> None:
        """Count the targets and the positions of a batch."""
        self.tokens.update_state(self.objective.count(targets))
        self.filled.update_state(features)
