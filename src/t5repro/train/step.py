"""One training step: gradients of a batch, whole or in micro-batches, and one update.

Micro-batches need the memory of one part only. The update equals that of the whole batch up to
rounding, since the loss is a sum over target ids divided by one number for all of them.

Source: mesh ``Unitransformer.loss_denominator``, ``serialize_training_step``.
"""

from typing import Any, Literal

import tensorflow as tf

from t5repro.model.transformer import T5
from t5repro.train.loss import FilledPositions, TargetTokens, token_losses
from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, tf.Tensor]


class TrainedT5(T5):
    """The network with its training step.

    Args:
        z_loss: weight of log(Z)^2 of each target id.
        normaliser: divisor of a batch's summed loss: all target positions, or those without
            padding, counted over all replicas.
        micro_batches: number of parts that a replica's batch is split into.
        t5_arguments: see `T5`.
        t5_options: see `T5`.
    """

    def __init__(
        self,
        *t5_arguments: Any,
        z_loss: float,
        normaliser: Literal["padded_size", "target_tokens"],
        micro_batches: int,
        **t5_options: Any,
    ) -> None:
        super().__init__(*t5_arguments, **t5_options)
        self.z_loss = z_loss
        self.normaliser = normaliser
        self.micro_batches = micro_batches

    def build(self, input_shape: Any) -> None:
        """Create the counters and all weights."""
        self.tokens = TargetTokens()
        self.filled = FilledPositions()
        super().build(input_shape)

    def train_step(self, data: tuple[Features, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Update the weights with one batch; return the mean loss and the counts since a reset."""
        features, targets = data
        self.tokens.update_state(targets)
        self.filled.update_state(features)
        if self.micro_batches == 1 and self.normaliser == "padded_size":
            # The loss of `compile` is this one; Keras's own step is the faster path.
            return super().train_step(data)
        loss, gradients = self.loss_and_gradients(features, targets)
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        # Keras averages the tracked loss over replicas, and each has only its share.
        self._loss_tracker.update_state(loss * replicas, sample_weight=tf.shape(targets)[0])
        self.optimizer.apply(gradients, self.trainable_variables)
        return self.get_metrics_result()

    def loss_and_gradients(
        self, features: Features, targets: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return this replica's share of the batch's loss, and its gradients.

        The shares of all replicas add up to the loss of the batch.
        """
        if self.micro_batches == 1:
            summed, gradients = self._sums(features, targets)
        else:
            summed, gradients = self._sums_of_parts(features, targets)
        divisor = self._divisor(targets)
        return summed / divisor, [gradient / divisor for gradient in gradients]

    def _divisor(self, targets: tf.Tensor) -> tf.Tensor:
        """Return the divisor of the loss, the same on every replica."""
        if self.normaliser == "padded_size":
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            return tf.cast(tf.size(targets) * replicas, tf.float32)
        tokens = tf.reduce_sum(tf.cast(targets != PAD_ID, tf.float32))
        replica = tf.distribute.get_replica_context()
        total = replica.all_reduce(tf.distribute.ReduceOp.SUM, tokens)
        return tf.maximum(total, 1.0)  # a batch of padding alone has a loss of 0

    def _sums(self, features: Features, targets: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the summed loss of some rows, and its gradients."""
        with tf.GradientTape() as tape:
            logits = self(features, training=True)
            summed = tf.reduce_sum(token_losses(targets, logits, self.z_loss))
        gradients = tape.gradient(summed, [variable.value for variable in self.trainable_variables])
        return summed, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _sums_of_parts(
        self, features: Features, targets: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the result of `_sums` with the activations of one part in memory at a time."""
        rows = targets.shape[0] // self.micro_batches

        def rows_of(part: tf.Tensor, array: tf.Tensor) -> tf.Tensor:
            part_rows = tf.slice(array, [part * rows, 0], [rows, array.shape[1]])
            # The slice starts at a tensor, which loses the static shape that XLA needs.
            return tf.ensure_shape(part_rows, [rows, array.shape[1]])

        def add(part: tf.Tensor, summed: tf.Tensor, *gradients: tf.Tensor) -> tuple[Any, ...]:
            part_features = {name: rows_of(part, array) for name, array in features.items()}
            part_sum, part_gradients = self._sums(part_features, rows_of(part, targets))
            return part + 1, summed + part_sum, *map(tf.add, gradients, part_gradients)

        zeros = [tf.zeros(variable.shape, tf.float32) for variable in self.trainable_variables]
        _, summed, *gradients = tf.while_loop(
            lambda part, *_: part < self.micro_batches,
            add,
            (tf.constant(0), tf.constant(0.0), *zeros),
            parallel_iterations=1,  # more would keep the activations of several parts
            maximum_iterations=self.micro_batches,
        )
        return summed, gradients
