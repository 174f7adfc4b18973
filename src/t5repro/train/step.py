"""One training step: gradients of a batch, whole or in micro-batches, and one update.

Micro-batches need the memory of one part only. The update equals that of the whole batch up to
rounding, since the loss is a sum over targets divided by one number for all of them.

Source: mesh ``Unitransformer.loss_denominator``, ``serialize_training_step``.

Shape suffixes: B rows of the batch, L positions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras
import tensorflow as tf

from t5repro.model.encoder import Encoder
from t5repro.model.labels import SPAN, LabelColumns
from t5repro.model.layers import option_rows
from t5repro.model.transformer import T5
from t5repro.train.label_loss import cross_entropies, label_losses, option_losses, span_losses
from t5repro.train.loss import FilledPositions, TargetCount, token_losses
from t5repro.vocab.special_ids import PAD_ID

Features = dict[str, tf.Tensor]


class TrainingStep(keras.Model):
    """The training step of a network, which follows in the order of base classes.

    Args:
        z_loss: weight of log(Z)^2 of each target id.
        normaliser: divisor of a batch's summed loss: all target positions, or those without
            padding, counted over all replicas.
        micro_batches: number of parts that a replica's batch is split into.
        network: arguments of the network.
    """

    def __init__(
        self,
        *,
        z_loss: float,
        normaliser: Literal["padded_size", "target_tokens"],
        micro_batches: int,
        **network: Any,
    ) -> None:
        super().__init__(**network)
        self.z_loss = z_loss
        self.normaliser = normaliser
        self.micro_batches = micro_batches

    def build(self, input_shape: Any) -> None:
        """Create the counters and all weights."""
        self.tokens = TargetCount()
        self.filled = FilledPositions()
        super().build(input_shape)

    def target_losses(
        self, features: Features, targets: tf.Tensor, *, z_loss: float, training: bool
    ) -> tf.Tensor:
        """Return the loss of each target, 0 at padding, of the shape of `targets`.

        Args:
            features: of some rows.
            targets: of the same rows.
            z_loss: weight of log(Z)^2.
            training: apply dropout.
        """
        logits = self(features, training=training)
        return token_losses(targets, logits, z_loss)

    def count_targets(self, targets: tf.Tensor) -> tf.Tensor:
        """Return the number of targets without padding, int32."""
        return tf.reduce_sum(tf.cast(targets != PAD_ID, tf.int32))

    def term_weights(
        self, features: Features, targets: tf.Tensor, divisor: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the weights of further terms of the loss, whose means have other divisors.

        Args:
            features: of all rows of a replica.
            targets: of the same rows.
            divisor: of the summed loss.
        """
        return {}

    def summed_loss(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """Return the summed loss of some rows.

        Args:
            features: of the rows.
            targets: of the rows.
            weights: see `term_weights`.
        """
        return tf.reduce_sum(
            self.target_losses(features, targets, z_loss=self.z_loss, training=True)
        )

    def train_step(self, data: tuple[Features, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Update the weights with one batch; return the mean loss and the counts since a reset."""
        features, targets = data
        self.tokens.update_state(self.count_targets(targets))
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
        divisor = self._divisor(targets)
        weights = self.term_weights(features, targets, divisor)
        if self.micro_batches == 1:
            summed, gradients = self._sums(features, targets, weights)
        else:
            summed, gradients = self._sums_of_parts(features, targets, weights)
        return summed / divisor, [gradient / divisor for gradient in gradients]

    def _divisor(self, targets: tf.Tensor) -> tf.Tensor:
        """Return the divisor of the loss, the same on every replica."""
        if self.normaliser == "padded_size":
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            return tf.cast(tf.size(targets) * replicas, tf.float32)
        # A batch of padding alone has a loss of 0.
        return tf.maximum(over_replicas(self.count_targets(targets)), 1.0)

    def _sums(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the summed loss of some rows, and its gradients."""
        with tf.GradientTape() as tape:
            summed = self.summed_loss(features, targets, weights)
        gradients = tape.gradient(summed, [variable.value for variable in self.trainable_variables])
        return summed, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _sums_of_parts(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the result of `_sums` with the activations of one part in memory at a time."""
        rows = targets.shape[0] // self.micro_batches

        def rows_of(part: tf.Tensor, array: tf.Tensor) -> tf.Tensor:
            start = [part * rows, *[0] * (len(array.shape) - 1)]
            part_rows = tf.slice(array, start, [rows, *array.shape[1:]])
            # The slice starts at a tensor, which loses the static shape that XLA needs.
            return tf.ensure_shape(part_rows, [rows, *array.shape[1:]])

        def add(part: tf.Tensor, summed: tf.Tensor, *gradients: tf.Tensor) -> tuple[Any, ...]:
            part_features = {name: rows_of(part, array) for name, array in features.items()}
            part_targets = rows_of(part, targets)
            part_sum, part_gradients = self._sums(part_features, part_targets, weights)
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


class TrainedT5(TrainingStep, T5):
    """T5, or a decoder only, with its training step; see `TrainingStep` and `T5`."""


class TrainedEncoder(TrainingStep, Encoder):
    """The pre-training of an encoder only with its step; see `TrainingStep` and `Encoder`.

    The losses are those of masked pieces, of the pair of a row, and of the pieces of spans from
    their borders: the sum of the means (BERT, section 3.1; SpanBERT, section 3.2).

    Args:
        boundary_weight: weight of the boundary objective; 0 means none.
        network: see `TrainingStep` and `Encoder`.
    """

    def __init__(self, *, boundary_weight: float = 0.0, **network: Any) -> None:
        super().__init__(predicts_boundaries=boundary_weight > 0, **network)
        self.boundary_weight = boundary_weight

    def target_losses(
        self, features: Features, targets: tf.Tensor, *, z_loss: float, training: bool
    ) -> tf.Tensor:
        """Return the losses of masked pieces, see `TrainingStep`."""
        outputs = self(features, training=training)
        pieces = outputs[0] if self.pair_classes else outputs
        return token_losses(targets, pieces, z_loss)

    def term_weights(
        self, features: Features, targets: tf.Tensor, divisor: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the weights of pairs and of pieces from borders, see `TrainingStep`."""
        weights = {}
        if self.pair_classes:
            replicas = tf.distribute.get_strategy().num_replicas_in_sync
            weights["pair"] = divisor / (targets.shape[0] * replicas)
        if self.boundary_weight:
            pieces = tf.reduce_sum(tf.cast(features["boundary_index"] >= 0, tf.int32))
            # One more than the pieces, as in SpanBERT's code: a batch may have none.
            weights["boundary"] = self.boundary_weight * divisor / (over_replicas(pieces) + 1.0)
        return weights

    def summed_loss(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """Return the summed loss of some rows, see `TrainingStep`."""
        encoded = self.encode(features, training=True)
        pieces = self.masked_logits(encoded, features["target_positions"])
        summed = tf.reduce_sum(token_losses(targets, pieces, self.z_loss))
        if "pair" in weights:
            pairs = self.pair_head(self.pooled(encoded))
            of_pairs = cross_entropies(features["pair_label"], pairs)
            summed += weights["pair"] * tf.reduce_sum(of_pairs)
        if "boundary" in weights:
            index = features["boundary_index"]
            logits = self.boundary_logits(encoded, features["boundary_positions"], index)
            of_borders = token_losses(tf.where(index < 0, PAD_ID, targets), logits, z_loss=0.0)
            summed += weights["boundary"] * tf.reduce_sum(of_borders)
        return summed


class LabelStep(TrainingStep):
    """The fine-tuning of a network that writes no text: the only target of a row is its own.

    Args:
        columns: of the head, for the answers of each task.
        network: see `TrainingStep` and the network.
    """

    def __init__(self, *, columns: LabelColumns, **network: Any) -> None:
        super().__init__(labels=columns.total, **network)
        self.label_columns = columns

    def count_targets(self, targets: tf.Tensor) -> tf.Tensor:
        """Return the number of rows, each with one answer."""
        return tf.size(targets)

    def answer_losses(
        self, features: Features, targets: tf.Tensor, logits: tf.Tensor, segments: tf.Tensor
    ) -> tf.Tensor:
        """Return the losses of labels, numbers and options, of the shape of `targets`.

        Args:
            features: of some rows.
            targets: of the same rows.
            logits: of the head of labels; each option has its row.
            segments: of the network's texts, see `LabelledInputs.batches`.
        """
        columns = features["label_columns"]
        if len(segments.shape) == 2:
            return label_losses(targets, logits, columns)
        rows, options, _ = segments.shape
        by_option = tf.reshape(logits, (rows, options, logits.shape[-1]))
        return option_losses(targets, by_option, columns, segments[:, :, 0] > 0)


class LabelledEncoder(LabelStep, Encoder):
    """An encoder only that is fine-tuned on tasks; see `LabelStep` and `Encoder`."""

    def __init__(self, *, columns: LabelColumns, **network: Any) -> None:
        super().__init__(columns=columns, predicts_spans=columns.has_spans, **network)

    def target_losses(
        self, features: Features, targets: tf.Tensor, *, z_loss: float, training: bool
    ) -> tf.Tensor:
        """Return the losses of all kinds of answers, see `TrainingStep`."""
        encoded = self.encode(features, training=training)
        segments = features["encoder_segments"]
        losses = tf.zeros_like(targets)
        if self.labels:
            logits = self.label_logits(encoded, training=training)
            losses = self.answer_losses(features, targets, logits, segments)
        if self.predicts_spans:
            ends = self.span_logits(encoded)
            if len(segments.shape) == 3:  # a row with a span has no other options
                ends, segments = tf.reshape(ends, (*segments.shape, 2))[:, 0], segments[:, 0]
            of_spans = span_losses(features["answer_span"], ends, segments)
            losses = tf.where(features["label_columns"][:, 2:] == SPAN, of_spans, losses)
        return losses


class LabelledDecoder(LabelStep, T5):
    """A decoder only that is fine-tuned on labels; see `LabelStep` and `T5`.

    The loss of a row is that of its label plus, with a weight, the mean over its text of the
    language model's loss: of both orders if it is read in both, and of all options (Radford et al.,
    2018, section 3.2).

    Args:
        lm_weight: weight of the language model; 0 means none.
        network: see `LabelStep` and `T5`.
    """

    def __init__(self, *, lm_weight: float = 0.0, **network: Any) -> None:
        super().__init__(**network)
        self.lm_weight = lm_weight

    def summed_loss(
        self, features: Features, targets: tf.Tensor, weights: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """Return the summed loss of some rows, see `TrainingStep`."""
        if not self.lm_weight:
            return super().summed_loss(features, targets, weights)
        rows = option_rows(features)
        decoded = self.read_texts(rows, training=True)
        losses = self._label_losses(features, rows, targets, decoded, training=True)
        of_texts = [self._text_losses(rows["decoder_ids"], decoded[0])]
        if len(decoded) > 1:
            ids = rows["swapped_ids"]
            # A row that is read in one order has no tokens in the other, and counts as that order.
            swapped = tf.where(ids[:, 0] == PAD_ID, of_texts[0], self._text_losses(ids, decoded[1]))
            of_texts.append(swapped)
        of_rows = sum(of_texts) / len(of_texts)
        segments = features["decoder_segments"]
        if len(segments.shape) == 3:
            exists = tf.cast(segments[:, :, 0] > 0, tf.float32)
            of_options = tf.reshape(of_rows, exists.shape) * exists
            of_rows = tf.reduce_sum(of_options, axis=1) / tf.reduce_sum(exists, axis=1)
        return tf.reduce_sum(losses[:, 0] + self.lm_weight * of_rows)

    def target_losses(
        self, features: Features, targets: tf.Tensor, *, z_loss: float, training: bool
    ) -> tf.Tensor:
        """Return the losses of labels, numbers and options, see `TrainingStep`."""
        rows = option_rows(features)
        decoded = self.read_texts(rows, training=training)
        return self._label_losses(features, rows, targets, decoded, training=training)

    def _label_losses(
        self,
        features: Features,
        rows: Features,
        targets: tf.Tensor,
        decoded: Sequence[tf.Tensor],
        *,
        training: bool,
    ) -> tf.Tensor:
        logits = self.label_logits(rows, decoded, training=training)
        return self.answer_losses(features, targets, logits, features["decoder_segments"])

    def _text_losses(self, ids: tf.Tensor, decoded: tf.Tensor) -> tf.Tensor:
        """Return the mean loss of the tokens after the first, for each row; 0 without tokens."""
        following = tf.pad(ids[:, 1:], [[0, 0], [0, 1]])
        losses = token_losses(following, self.logits(decoded), z_loss=0.0)
        counts = tf.reduce_sum(tf.cast(following != PAD_ID, tf.float32), axis=1)
        return tf.reduce_sum(losses, axis=1) / tf.maximum(counts, 1.0)


def over_replicas(count: tf.Tensor) -> tf.Tensor:
    """Return the sum of a count over all replicas, float32."""
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(count, tf.float32))
