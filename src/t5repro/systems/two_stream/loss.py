"""The losses of XLNet: of pieces in the order of their prediction, and of labels and options.

Source: Yang et al., 2019, equation 5; XLNet ``two_stream_loss`` and ``classification_loss``.
"""

from collections.abc import Mapping
from typing import Any

from keras import ops

from t5repro.model.layers import Tensor
from t5repro.systems.answer_loss import AnswerLoss
from t5repro.systems.loss import Features, Loss
from t5repro.systems.token_loss import token_losses


class PermutationLoss(Loss):
    """The mean over predicted pieces; a step in training also moves the memory on."""

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the losses of predicted pieces with a memory of zeros, see `Loss`."""
        return token_losses(targets, network(features, training=training), z_loss)

    def summed(
        self, network: Any, features: Features, targets: Tensor, weights: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the summed loss of rows that follow the rows of the step before, see `Loss`."""
        memory = network.memory
        states = memory.states if memory else None
        logits, inputs = network.predict_pieces(features, states, training=True)
        losses = ops.sum(token_losses(targets, logits, self.z_loss))
        if memory:
            memory.remember(inputs)
        return losses


class SummaryLoss(AnswerLoss):
    """The loss of labels, numbers and options that are predicted from the last position."""

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the losses of labels, numbers and options, see `Loss`."""
        logits = network.label_logits(features, training=training)
        # Rows are padded on the left: an option exists if its last position is filled.
        segments = ops.flip(features["encoder_segments"], axis=-1)
        return self.answer_losses(features, targets, logits, segments)
