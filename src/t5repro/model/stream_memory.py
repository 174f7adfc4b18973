"""Memory of a pre-training on a stream: the states of the last step, which the next one reads.

It belongs to the row slots of a batch and not to the network: files of weights do not have it, and
checkpoints of a training do (`checkpoints.memory_variables`).

Source: Dai et al., 2019, section 3.2; XLNet ``_cache_mem``.
"""

from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.model.layers import SeededLayer, Tensor


class StreamMemory(SeededLayer):
    """The inputs of all blocks at the last positions of each row slot; zeros at first.

    Args:
        shape: blocks, rows of a batch, positions, features.
        reuse_length: positions of a row that the memory takes up, from its start.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, shape: tuple[int, ...], *, reuse_length: int, **layer: Any) -> None:
        super().__init__(**layer)
        self.shape = tuple(shape)
        self.reuse_length = reuse_length

    def build(self, input_shape: Any = None) -> None:
        """Create the states, which are not trained."""
        self.states = self.add_weight(
            name="states",
            shape=self.shape,
            initializer="zeros",
            dtype=floatx(),
            trainable=False,
            autocast=False,
        )

    @property
    def weights(self) -> list[Any]:
        """No weights: readers and counters of a network's weights leave the memory out."""
        return []

    def remember(self, inputs: list[Tensor]) -> None:
        """Append the first positions of the inputs of all blocks; the oldest are forgotten.

        Args:
            inputs: of each block, (batch, positions, features).
        """
        new = ops.stack([x_BLD[:, : self.reuse_length] for x_BLD in inputs])
        # No gradient passes from a step to the one before it.
        states = ops.concatenate([self.states, ops.cast(ops.stop_gradient(new), floatx())], axis=2)
        self.states.assign(states[:, :, -self.shape[2] :])
