"""Adapters: a small feed-forward layer after each of the network's own (paper section 3.5.1).

Fine-tuning with adapters trains them and norms and leaves the rest as it was
(`train/trainable.py`). They are sub-layers like the others, ``x + dropout(sub(norm(x)))``, and
start from ordinary random values, not from the identity, as in the released code.

Shape suffixes: B rows of the batch, L positions, D features of the residual stream.
"""

from typing import Any

from t5repro.model.layers import Dropout, FeedForward, RMSNorm, SeededLayer, Tensor

PLACE = "/adapter/"  # in the name of each of their weights


class Adapter(SeededLayer):
    """Norm, matrix, ReLU, matrix, dropout, and the way around them.

    Args:
        d_model: width of the residual stream; features.
        width: inner width; the paper has 32, 128, 512 and 2048; features.
        epsilon: added to the mean square in the norm.
        dropout_rate: share of features dropped in training.
        place: seed, path and precision.

    Source: paper section 3.5.1; released code, ``task_adapter.gin``.
    """

    def __init__(
        self, *, d_model: int, width: int, epsilon: float, dropout_rate: float, **place: Any
    ) -> None:
        super().__init__(**place)

        def inside(name: str) -> dict[str, Any]:
            return {**place, "path": f"{self.place}/{name}"}

        self.norm = RMSNorm(d_model, epsilon=epsilon, **inside("norm"))
        self.feed_forward = FeedForward(
            d_model=d_model,
            d_ff=width,
            activation="relu",  # whatever the network's own layers have
            dropout_rate=dropout_rate,
            **inside("feed_forward"),
        )
        self.dropout = Dropout(dropout_rate, **inside("dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the scale of the norm and the matrices."""
        self.norm.build()
        self.feed_forward.build()

    def call(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the residual stream after the adapter, (batch, length, features)."""
        thought_BLD = self.feed_forward(self.norm(x_BLD), training=training)
        return x_BLD + self.dropout(thought_BLD, training=training)


def adapter_parameters(*, d_model: int, width: int, blocks: int) -> int:
    """Return how many numbers the adapters of a network hold, their norms included.

    Args:
        d_model: width of the residual stream; features.
        width: inner width; features.
        blocks: blocks of both stacks together.
    """
    return blocks * (2 * d_model * width + d_model)
