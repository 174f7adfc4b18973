"""Adapters: a small feed-forward layer after each of the network's own (paper section 3.5.1).

Fine-tuning with adapters trains them and norms and no other weight (`train/trainable.py`). They
are sub-layers of the usual form, ``x + dropout(sub(norm(x)))``, and start from ordinary random
values, not from the identity, as in the released code.

Shape suffixes: B rows of the batch, L positions, D features of the residual stream.
"""

from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.model.layers import FeedForward, SeededLayer, Tensor, dropout_layer, norm_layer

ADAPTER = "/adapter/"  # in the path of each of their weights


class Adapter(SeededLayer):
    """Norm, matrix, ReLU, matrix, dropout, and the residual connection.

    Args:
        model: shape of the network.
        width: inner width; the paper has 32, 128, 512 and 2048; features.
        dropout_rate: share of features dropped in training.
        layer: seed, path and precision, see `SeededLayer`.

    Source: paper section 3.5.1; released code, ``task_adapter.gin``.
    """

    def __init__(
        self, model: ModelSettings, *, width: int, dropout_rate: float, **layer: Any
    ) -> None:
        super().__init__(**layer)
        self.norm = norm_layer(model, **self.inner("norm"))
        self.feed_forward = FeedForward(
            model.model_copy(update={"feed_forward": "relu"}),  # also in one with gated GELU
            d_ff=width,
            dropout_rate=dropout_rate,
            **self.inner("feed_forward"),
        )
        self.dropout = dropout_layer(model, dropout_rate, **self.inner("dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the scale of the norm and the matrices."""
        self.norm.build()
        self.feed_forward.build()

    def call(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the residual stream after the adapter, (batch, length, features)."""
        ffn_BLD = self.feed_forward(self.norm(x_BLD), training=training)
        return x_BLD + self.dropout(ffn_BLD, training=training)
