"""The common part of the losses of labels, numbers, options and spans."""

from keras import ops

from t5repro.model.layers import Tensor
from t5repro.systems.label_losses import label_losses, option_losses
from t5repro.systems.loss import Features, Loss


class AnswerLoss(Loss):
    """The loss of a network that writes no text: the only target of a row is its own."""

    def count(self, targets: Tensor) -> Tensor:
        """Return the number of rows, each with one answer."""
        return ops.size(targets)

    def answer_losses(
        self, features: Features, targets: Tensor, logits: Tensor, segments: Tensor
    ) -> Tensor:
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
        option_logits = ops.reshape(logits, (rows, options, logits.shape[-1]))
        return option_losses(targets, option_logits, columns, segments[:, :, 0] > 0)
