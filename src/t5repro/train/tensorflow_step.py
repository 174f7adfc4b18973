"""A training step on TensorFlow; replicas of a strategy share the batch.

Shape suffixes: B rows of the batch, L positions.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from keras.config import floatx

from t5repro.engines.tensorflow_engine import replicas
from t5repro.systems.loss import Features
from t5repro.train.step import TrainedModel


class TensorFlowModel(TrainedModel):
    """A trained model whose step is a graph of TensorFlow."""

    def train_step(self, data: tuple[Features, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Update the weights with one batch; return the mean loss and the counts since a reset."""
        features, targets = data
        self.count(features, targets)
        if self.micro_batches == 1 and self.normaliser == "padded_size":
            # The loss of `compile` is this one; Keras's own step is the faster path.
            return super().train_step(data)
        loss, gradients = self.loss_and_gradients(features, targets)
        # Keras averages the tracked loss over replicas, and each has only its share.
        self._loss_tracker.update_state(loss * replicas(), sample_weight=tf.shape(targets)[0])
        self.optimizer.apply(gradients, self.trainable_variables)
        return self.get_metrics_result()

    def loss_and_gradients(
        self, features: Features, targets: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return this replica's share of the batch's loss, and its gradients.

        The shares of all replicas add up to the loss of the batch.
        """
        divisor = self.objective.divisor(targets, self.normaliser)
        weights = self.objective.term_weights(self.network, features, targets, divisor)
        if self.micro_batches == 1:
            summed, gradients = self._sums(features, targets, weights)
        else:
            summed, gradients = self._sums_of_parts(features, targets, weights)
        return summed / divisor, [gradient / divisor for gradient in gradients]

    def _sums(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the summed loss of some rows, and its gradients."""
        with tf.GradientTape() as tape:
            summed = self.objective.summed(self.network, features, targets, weights)
        gradients = tape.gradient(summed, [variable.value for variable in self.trainable_variables])
        return summed, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _sums_of_parts(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the result of `_sums` with the activations of one part in memory at a time."""
        rows = targets.shape[0] // self.micro_batches

        def rows_of(number: tf.Tensor, array: tf.Tensor) -> tf.Tensor:
            offsets = [number * rows, *[0] * (len(array.shape) - 1)]
            part_rows = tf.slice(array, offsets, [rows, *array.shape[1:]])
            # The slice starts at a tensor, which loses the static shape that XLA needs.
            return tf.ensure_shape(part_rows, [rows, *array.shape[1:]])

        def add(number: tf.Tensor, summed: tf.Tensor, *gradients: tf.Tensor) -> tuple[Any, ...]:
            part_features = {name: rows_of(number, array) for name, array in features.items()}
            part_targets = rows_of(number, targets)
            part_sum, part_gradients = self._sums(part_features, part_targets, weights)
            return number + 1, summed + part_sum, *map(tf.add, gradients, part_gradients)

        zeros = [tf.zeros(variable.shape, floatx()) for variable in self.trainable_variables]
        _, summed, *gradients = tf.while_loop(
            lambda number, *_: number < self.micro_batches,
            add,
            (tf.constant(0), tf.zeros((), floatx()), *zeros),
            parallel_iterations=1,  # more would keep the activations of several parts
            maximum_iterations=self.micro_batches,
        )
        return summed, gradients
