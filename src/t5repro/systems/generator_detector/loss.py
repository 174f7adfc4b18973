"""The joint loss of ELECTRA's two networks, with the pieces that it draws.

Source: Clark et al., 2020, sections 2 and 3.4; ELECTRA ``PretrainingModel``.

Shape suffixes: B rows of the batch, L positions, M masked positions.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.engines.engine import engine
from t5repro.model.generator_detector import Task
from t5repro.model.layers import Tensor, gather_positions
from t5repro.model.sampled_pieces import sampled_pieces, with_values_at
from t5repro.systems.encoder.loss import MaskedLoss
from t5repro.systems.loss import Features
from t5repro.systems.token_loss import token_losses
from t5repro.vocab.special_ids import PAD_ID


@dataclass(frozen=True, kw_only=True)
class ReplacedTokensLoss(MaskedLoss):
    """The mean over masked pieces, and a mean over pieces that the second network judges.

    Attributes:
        task: of the second network, `pretrain.replaced_tokens.task`.
        weight: of its mean.
    """

    task: Task = "detection"
    weight: float = 50.0

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the generator's losses of masked pieces, see `Loss`."""
        states = network.generated(features, training=training)
        logits = network.masked_logits(states, features["target_positions"])
        return token_losses(targets, logits, z_loss)

    def accuracy_names(self, network: Any) -> tuple[str, ...]:
        """Return the names of the predictions: masked pieces, and replacements if they are told."""
        detects = self.task in ("detection", "masked_detection")
        return ("masked_pieces", "replaced_pieces") if detects else ("masked_pieces",)

    def right_answers(
        self, network: Any, features: Features, targets: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the right predictions and all predictions of both networks.

        Source: ELECTRA ``run_pretraining.metric_fn``.
        """
        states = network.generated(features, training=False)
        logits = network.masked_logits(states, features["target_positions"])
        is_masked = targets != PAD_ID
        is_right = ops.logical_and(ops.argmax(logits, axis=-1) == targets, is_masked)
        answers = [is_right, is_masked]
        if len(self.accuracy_names(network)) > 1:
            rows = replaced_rows(features, targets, logits)
            states = network.encode(features | {"encoder_ids": rows.ids}, training=False)
            is_judged = self._judged(features, targets)
            is_right = (network.detector_head(states) > 0) == (rows.ids != rows.originals)
            answers += [ops.logical_and(is_right, is_judged), is_judged]
        return tuple(ops.sum(ops.cast(answer, "int32")) for answer in answers)

    def term_weights(
        self, network: Any, features: Features, targets: Tensor, divisor: Tensor
    ) -> dict[str, Tensor]:
        """Return the weight of the second network's sum, see `Loss`."""
        judged = ops.sum(ops.cast(self._judged(features, targets), "int32"))
        judged = ops.maximum(engine().over_replicas(judged), 1.0)
        return {"replaced": self.weight * divisor / judged}

    def summed(
        self, network: Any, features: Features, targets: Tensor, weights: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the summed loss of some rows, see `Loss`."""
        states = network.generated(features, training=True)
        logits = network.masked_logits(states, features["target_positions"])
        summed = ops.sum(token_losses(targets, logits, self.z_loss))
        # Drawn ids are counts of comparisons, without a gradient: the second loss moves the
        # generator by shared weights only.
        rows = replaced_rows(features, targets, logits)
        states = network.encode(features | {"encoder_ids": rows.ids}, training=True)
        losses = TASKS[self.task](network, states, rows, features, targets)
        return summed + weights["replaced"] * ops.sum(losses)

    def _judged(self, features: Features, targets: Tensor) -> Tensor:
        """Return which pieces have a loss of the second network: all with `[CLS]`, or masked."""
        if self.task in ("detection", "all_pieces"):
            return features["encoder_segments"] > 0
        if self.task == "masked_pieces":
            return targets != PAD_ID
        return masked_positions(features, targets)


@dataclass(frozen=True)
class ReplacedRows:
    """Rows with the drawn pieces.

    Attributes:
        ids: with drawn pieces at the masked positions, int32 (batch, length).
        originals: before masking, of the same shape.
    """

    ids: Tensor
    originals: Tensor


def replaced_rows(features: Features, targets: Tensor, logits: Tensor) -> ReplacedRows:
    """Return rows in which the generator has replaced the masked pieces.

    Args:
        features: of some rows.
        targets: original ids at their masked positions, then 0.
        logits: of the generator at these positions.
    """
    pieces = sampled_pieces(logits, features["sample_draws"])
    ids, positions, is_masked = (
        features["encoder_ids"],
        features["target_positions"],
        targets != PAD_ID,
    )
    return ReplacedRows(
        with_values_at(ids, positions, pieces, is_masked),
        with_values_at(ids, positions, targets, is_masked),
    )


def masked_positions(features: Features, targets: Tensor) -> Tensor:
    """Return which positions of rows are masked, (batch, length)."""
    ids, is_masked = features["encoder_ids"], targets != PAD_ID
    ones = ops.ones_like(targets)
    return with_values_at(ops.zeros_like(ids), features["target_positions"], ones, is_masked) > 0


def detection_losses(labels_BL: Tensor, logits_BL: Tensor) -> Tensor:
    """Return the binary cross-entropy of each logit, with its gradient written out.

    Args:
        labels_BL: 0 or 1, float32.
        logits_BL: float32.
    """

    def losses(logits: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> Tensor:
            (upstream,) = arguments if upstream is None else (upstream,)
            # The tangent has measured bits, TensorFlow's sigmoid has not (D-043).
            return upstream * (0.5 + 0.5 * ops.tanh(0.5 * logits) - labels_BL)

        return ops.relu(logits) - logits * labels_BL + _tail(logits), gradient

    return ops.custom_gradient(losses)(logits_BL)


def loss_of_sum(first: Tensor, second: Tensor) -> Tensor:
    """Return -log(exp(-first) + exp(-second)), with its gradient written out."""

    def losses(
        first: Tensor, second: Tensor
    ) -> tuple[Tensor, Callable[..., tuple[Tensor, Tensor]]]:
        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
            (upstream,) = arguments if upstream is None else (upstream,)
            share = 0.5 + 0.5 * ops.tanh(0.5 * (second - first))  # of the first probability
            return upstream * share, upstream * (1.0 - share)

        return ops.minimum(first, second) - _tail(first - second), gradient

    return ops.custom_gradient(losses)(first, second)


def _tail(x: Tensor) -> Tensor:
    """Return log(1 + exp(-|x|))."""
    # A minimum and halves: Grappler would join a negation to the exponential, and make `Log1p` of
    # a sum with 1, with bits that are not measured (D-043).
    return ops.log(0.5 + 0.5 * ops.exp(ops.minimum(x, -x))) + math.log(2.0)


def _detection(
    network: Any, states: Tensor, rows: ReplacedRows, features: Features, targets: Tensor
) -> Tensor:
    # A piece that the generator guessed right is an original one.
    labels = ops.cast(rows.ids != rows.originals, floatx())
    losses = detection_losses(labels, network.detector_head(states))
    return losses * ops.cast(features["encoder_segments"], floatx())


def _masked_detection(
    network: Any, states: Tensor, rows: ReplacedRows, features: Features, targets: Tensor
) -> Tensor:
    losses = _detection(network, states, rows, features, targets)
    return losses * ops.cast(masked_positions(features, targets), floatx())


def _masked_pieces(
    network: Any, states: Tensor, rows: ReplacedRows, features: Features, targets: Tensor
) -> Tensor:
    masked = gather_positions(states, features["target_positions"])
    return token_losses(targets, network.piece_logits(masked), z_loss=0.0)


def _all_pieces(
    network: Any, states: Tensor, rows: ReplacedRows, features: Features, targets: Tensor
) -> Tensor:
    """Return -log(D * [read id is the original] + (1 - D) * softmax) with D = sigmoid(copy).

    Source: Clark et al., 2020, section 3.4, "All-Tokens MLM".
    """
    copy = network.detector_head(states)
    no_copy = detection_losses(ops.zeros_like(copy), copy)  # -log(1 - D)
    predicted = no_copy + token_losses(rows.originals, network.piece_logits(states), z_loss=0.0)
    from_input = no_copy - copy  # -log D
    mixture = loss_of_sum(from_input, predicted)
    losses = ops.where(rows.ids == rows.originals, mixture, predicted)
    return losses * ops.cast(features["encoder_segments"], floatx())


# Task -> losses of rows, 0 where the second network judges nothing.
TASKS: Mapping[str, Callable[..., Tensor]] = {
    "detection": _detection,
    "masked_detection": _masked_detection,
    "masked_pieces": _masked_pieces,
    "all_pieces": _all_pieces,
}
