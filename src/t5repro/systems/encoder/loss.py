"""The losses of an encoder: of masked pieces, pairs and borders, and of all kinds of answers.

Source: BERT, section 3.1; SpanBERT, section 3.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras import ops

from t5repro.engines.engine import engine
from t5repro.model.labels import SPAN, TAGS
from t5repro.model.layers import Tensor
from t5repro.systems.answer_loss import AnswerLoss
from t5repro.systems.label_losses import cross_entropies, span_losses, tag_losses
from t5repro.systems.loss import Features, Loss
from t5repro.systems.token_loss import token_losses
from t5repro.vocab.special_ids import PAD_ID


@dataclass(frozen=True, kw_only=True)
class MaskedLoss(Loss):
    """The sum of the means over masked pieces, pairs of rows, and pieces of spans from borders.

    Attributes:
        boundary_weight: weight of the boundary objective; 0 means none.
    """

    boundary_weight: float = 0.0

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the losses of masked pieces, see `Loss`."""
        outputs = network(features, training=training)
        pieces = outputs[0] if network.pair_classes else outputs
        return token_losses(targets, pieces, z_loss)

    def accuracy_names(self, network: Any) -> tuple[str, ...]:
        """Return the names of the predictions: masked pieces, and pairs if there is their head."""
        return ("masked_pieces", "pairs") if network.pair_classes else ("masked_pieces",)

    def right_answers(
        self, network: Any, features: Features, targets: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the right predictions and all predictions of masked pieces and of pairs.

        Source: BERT ``run_pretraining.metric_fn``.
        """
        encoded = network.encode(features, training=False)
        logits = network.masked_logits(encoded, features["target_positions"])
        is_masked = targets != PAD_ID
        is_right = ops.logical_and(ops.argmax(logits, axis=-1) == targets, is_masked)
        answers = [is_right, is_masked]
        if network.pair_classes:
            pairs = ops.argmax(network.pair_head(network.pooled(encoded)), axis=-1)
            is_right = pairs == features["pair_label"]
            answers += [is_right, ops.ones_like(is_right)]
        return tuple(ops.sum(ops.cast(answer, "int32")) for answer in answers)

    def term_weights(
        self, network: Any, features: Features, targets: Tensor, divisor: Tensor
    ) -> dict[str, Tensor]:
        """Return the weights of pairs and of pieces from borders, see `Loss`."""
        weights = {}
        if network.pair_classes:
            # A mean over rows inside a sum that the caller divides by `divisor`.
            weights["pair"] = divisor / (targets.shape[0] * engine().replicas())
        if self.boundary_weight:
            pieces = ops.sum(ops.cast(features["boundary_index"] >= 0, "int32"))
            # One more than the pieces, as in SpanBERT's code: a batch may have none.
            pieces = engine().over_replicas(pieces) + 1.0
            weights["boundary"] = self.boundary_weight * divisor / pieces
        return weights

    def summed(
        self, network: Any, features: Features, targets: Tensor, weights: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the summed loss of some rows, see `Loss`."""
        # 1. All heads read one pass of the encoder: its dropout is drawn once.
        encoded = network.encode(features, training=True)
        pieces = network.masked_logits(encoded, features["target_positions"])
        summed = ops.sum(token_losses(targets, pieces, self.z_loss))
        # 2. Next-sentence or sentence-order prediction, from the pooled first position.
        if "pair" in weights:
            pairs = network.pair_head(network.pooled(encoded))
            pair_losses = cross_entropies(features["pair_label"], pairs)
            summed += weights["pair"] * ops.sum(pair_losses)
        # 3. SpanBERT's boundary objective. Pieces without two borders have the index -1; as padding
        #    they have no loss.
        if "boundary" in weights:
            index = features["boundary_index"]
            logits = network.boundary_logits(encoded, features["boundary_positions"], index)
            boundary_losses = token_losses(
                ops.where(index < 0, PAD_ID, targets), logits, z_loss=0.0
            )
            summed += weights["boundary"] * ops.sum(boundary_losses)
        return summed


class EncoderAnswerLoss(AnswerLoss):
    """The loss of an encoder that is fine-tuned on tasks: all kinds of answers."""

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the losses of all kinds of answers, see `Loss`."""
        encoded = network.encode(features, training=training)
        segments = features["encoder_segments"]
        losses = ops.zeros_like(targets)
        if self.columns.total:
            logits = network.label_logits(encoded, features, training=training)
            losses = self.answer_losses(features, targets, logits, segments)
        columns = features["label_columns"]
        if self.columns.has_spans:
            span_logits = _of_first_options(network.span_logits(encoded), segments)
            first_segments = segments if len(segments.shape) == 2 else segments[:, 0]
            position_losses = span_losses(features["answer_span"], span_logits, first_segments)
            losses = ops.where(columns[:, 2:] == SPAN, position_losses, losses)
        if self.columns.tags:
            tag_logits = network.tag_logits(encoded, training=training)
            tag_logits = _of_first_options(tag_logits, segments)
            word_losses = tag_losses(features["piece_tags"], tag_logits, columns)
            losses = ops.where(columns[:, 2:] == TAGS, word_losses, losses)
        return losses


def _of_first_options(logits: Tensor, segments: Tensor) -> Tensor:
    """Return the logits of the positions of rows; a row with spans or tags has no other option."""
    if len(segments.shape) == 2:
        return logits
    return ops.reshape(logits, (*segments.shape, logits.shape[-1]))[:, 0]
