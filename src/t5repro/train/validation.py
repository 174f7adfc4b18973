"""The loss on held-out text, which tells learning from memorising."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

Features = dict[str, tf.Tensor]
Sums = Callable[[tuple[Features, tf.Tensor]], list[tf.Tensor]]


class Validation:
    """Measures the loss of a model in training on the same batches every time.

    Args:
        batches: features and targets, as for training; kept in memory after the first reading.
        every_steps: interval, a multiple of the history's; steps.
    """

    def __init__(self, batches: tf.data.Dataset, *, every_steps: int) -> None:
        self.every_steps = every_steps
        self._batches = batches.cache()
        self._sums: Sums | None = None

    def loss(self, model: Any) -> float:
        """Return the mean cross-entropy of a target id in nats, without dropout and z-loss.

        Unlike the training loss it does not depend on the padding of a batch, so models with
        other batches or `loss_normaliser` compare.
        """
        if self._sums is None:
            self._sums = _sums_over_replicas(model)
        summed, tokens = 0.0, 0
        for batch in model.distribute_strategy.experimental_distribute_dataset(self._batches):
            batch_sum, batch_tokens = self._sums(batch)
            summed += float(batch_sum)
            tokens += int(batch_tokens)
        return summed / tokens


def sums(model: Any, features: Features, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the summed cross-entropy of the rows of one replica, and their target ids."""
    loss = model.objective
    losses = loss.target_losses(model.network, features, targets, z_loss=0.0, training=False)
    return tf.reduce_sum(losses), loss.count(targets)


def _sums_over_replicas(model: Any) -> Sums:
    strategy = model.distribute_strategy

    def batch_sums(batch: tuple[Features, tf.Tensor]) -> list[tf.Tensor]:
        replica_sums = strategy.run(functools.partial(sums, model), args=batch)
        return [
            strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None) for value in replica_sums
        ]

    compiled: Sums = tf.function(batch_sums, autograph=False)
    return compiled
