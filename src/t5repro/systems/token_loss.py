"""The loss of each target id: cross-entropy and z-loss, which pulls Z of the softmax towards 1.

Padding has a loss of 0. The divisor of a batch is the setting `loss_normaliser`: `Loss.divisor` in
`loss.py` returns it. With the released code's, the padded size of the targets, and one
micro-batch Keras's own step on TensorFlow needs no divisor: it takes the mean of `PaddedMeanLoss`.

Source: mesh ``Unitransformer._call_internal`` and ``softmax_cross_entropy_with_logits``.

Shape suffixes: B rows of the batch, L positions, N = B * L, V ids.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.config import floatx

from t5repro.engines.mesh import is_divided
from t5repro.model.layers import Tensor
from t5repro.vocab.special_ids import PAD_ID


class PaddedMeanLoss(keras.losses.Loss):
    """Loss of a batch; its mean over replicas is the loss of the whole batch.

    Args:
        z_loss: weight of log(Z)^2 of each target id.
    """

    def __init__(self, z_loss: float) -> None:
        # The mean over rows is also the reduction that Keras divides among replicas.
        super().__init__(name="loss", reduction="sum_over_batch_size")
        self.z_loss = z_loss

    def call(self, targets_BL: Tensor, logits_BLV: Tensor) -> Tensor:
        """Return the loss of each row divided by its padded length, (batch,)."""
        # Keras passes ids as float32, which represents every id below 2^24.
        losses_BL = token_losses(ops.cast(targets_BL, "int32"), logits_BLV, self.z_loss)
        return ops.mean(losses_BL, axis=-1)


def token_losses(targets_BL: Tensor, logits_BLV: Tensor, z_loss: float) -> Tensor:
    """Return cross-entropy plus `z_loss` * log(Z)^2 per target id; 0 at padding.

    Args:
        targets_BL: int32 ids, 0 is padding.
        logits_BLV: float32.
        z_loss: weight of log(Z)^2.
    """
    rows = targets_BL.shape[-1]
    ids = logits_BLV.shape[-1]
    targets_N = ops.reshape(targets_BL, (-1,))
    counted_N = ops.cast(targets_N != PAD_ID, floatx())
    losses = losses_of_divided_logits(z_loss) if is_divided() else losses_of_all_logits(z_loss)
    losses_N = losses(ops.reshape(logits_BLV, (-1, ids)), targets_N)
    return ops.reshape(losses_N * counted_N, (-1, rows))


def losses_of_all_logits(z_loss: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss of each row of logits, with its gradient written out.

    The logits are the largest array of a step. Derived automatically, the gradient would pass
    over arrays of their size six more times.
    """

    def losses(logits_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        probabilities_NV = ops.softmax(logits_NV, axis=-1)
        # The likeliest id has a probability of at least 1/V: its logarithm loses nothing.
        log_z_N = ops.max(logits_NV, axis=-1) - ops.log(ops.max(probabilities_NV, axis=-1))
        count, ids = logits_NV.shape
        target_logits_N = ops.take(
            ops.reshape(logits_NV, (-1,)), ops.arange(count, dtype="int32") * ids + targets_N
        )

        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> tuple[Tensor, None]:
            (upstream_N,) = arguments if upstream is None else (upstream,)
            pull_N = upstream_N * (1.0 + 2.0 * z_loss * log_z_N)
            gradient_NV = probabilities_NV * pull_N[:, None]
            positions_N2 = ops.stack([ops.arange(count, dtype="int32"), targets_N], axis=-1)
            target_gradient_N = ops.exp(target_logits_N - log_z_N) * pull_N - upstream_N
            return ops.scatter_update(gradient_NV, positions_N2, target_gradient_N), None

        return log_z_N - target_logits_N + z_loss * ops.square(log_z_N), gradient

    return ops.custom_gradient(losses)


def losses_of_divided_logits(z_loss: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Return `losses_of_all_logits` for logits whose rows or ids are divided among devices.

    A device reads the logit of a target by comparing numbers of ids: positions in flat logits
    would be numbers on other devices, and all logits would be sent to every device. Of divided ids
    only the greatest logit and the sums of each row are exchanged.
    """

    def losses(logits_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        ids_V = ops.arange(logits_NV.shape[-1], dtype="int32")
        is_target_NV = ops.equal(ids_V[None], targets_N[:, None])
        log_z_N = ops.logsumexp(logits_NV, axis=-1)
        target_logits_N = ops.sum(ops.where(is_target_NV, logits_NV, 0.0), axis=-1)

        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> tuple[Tensor, None]:
            (upstream_N,) = arguments if upstream is None else (upstream,)
            pull_N = upstream_N * (1.0 + 2.0 * z_loss * log_z_N)
            probabilities_NV = ops.exp(logits_NV - log_z_N[:, None])
            pulled_NV = probabilities_NV * pull_N[:, None]
            return ops.where(is_target_NV, pulled_NV - upstream_N[:, None], pulled_NV), None

        return log_z_N - target_logits_N + z_loss * ops.square(log_z_N), gradient

    return ops.custom_gradient(losses)
