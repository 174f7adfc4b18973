"""The loss of a decoder that is fine-tuned on labels (Radford et al., 2018, section 3.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.model.layers import Tensor, option_rows
from t5repro.systems.answer_loss import AnswerLoss
from t5repro.systems.loss import Features
from t5repro.systems.token_loss import token_losses
from t5repro.vocab.special_ids import PAD_ID


@dataclass(frozen=True, kw_only=True)
class DecoderAnswerLoss(AnswerLoss):
    """The loss of a row's label plus, with a weight, the mean over its text of the language model.

    The text counts in both orders if it is read in both, and so do the texts of all options.

    Attributes:
        lm_weight: weight of the language model; 0 means none.
    """

    lm_weight: float = 0.0

    def target_losses(
        self, network: Any, features: Features, targets: Tensor, *, z_loss: float, training: bool
    ) -> Tensor:
        """Return the losses of labels, numbers and options, see `Loss`."""
        rows = option_rows(features)
        decoded = network.read_texts(rows, training=training)
        return self._label_losses(network, features, rows, targets, decoded, training=training)

    def summed(
        self, network: Any, features: Features, targets: Tensor, weights: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the summed loss of some rows, see `Loss`."""
        if not self.lm_weight:
            return super().summed(network, features, targets, weights)
        rows = option_rows(features)
        decoded = network.read_texts(rows, training=True)
        losses = self._label_losses(network, features, rows, targets, decoded, training=True)
        order_losses = [_text_losses(network, rows["decoder_ids"], decoded[0])]
        if len(decoded) > 1:
            ids = rows["swapped_ids"]
            # A row that is read in one order has no tokens in the other, and counts as that order.
            swapped = ops.where(
                ids[:, 0] == PAD_ID, order_losses[0], _text_losses(network, ids, decoded[1])
            )
            order_losses.append(swapped)
        text_losses = sum(order_losses) / len(order_losses)
        # Options of a row count as one text, so that the language model weighs each row alike.
        segments = features["decoder_segments"]
        if len(segments.shape) == 3:
            exists = ops.cast(segments[:, :, 0] > 0, floatx())
            option_losses = ops.reshape(text_losses, exists.shape) * exists
            text_losses = ops.sum(option_losses, axis=1) / ops.sum(exists, axis=1)
        return ops.sum(losses[:, 0] + self.lm_weight * text_losses)

    def _label_losses(
        self,
        network: Any,
        features: Features,
        rows: Features,
        targets: Tensor,
        decoded: Sequence[Tensor],
        *,
        training: bool,
    ) -> Tensor:
        logits = network.label_logits(rows, decoded, training=training)
        return self.answer_losses(features, targets, logits, features["decoder_segments"])


def _text_losses(network: Any, ids: Tensor, decoded: Tensor) -> Tensor:
    """Return the mean loss of the tokens after the first, for each row; 0 without tokens."""
    # Shifted by one: the last position predicts padding, which has no loss.
    following = ops.pad(ids[:, 1:], [[0, 0], [0, 1]])
    losses = token_losses(following, network.logits(decoded), z_loss=0.0)
    counts = ops.sum(ops.cast(following != PAD_ID, floatx()), axis=1)
    return ops.sum(losses, axis=1) / ops.maximum(counts, 1.0)
