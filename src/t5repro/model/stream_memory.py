"""Memory of a pre-training on a stream: the states of the last step, which the next one reads.

It belongs to the row slots of a batch and not to the network: files of weights do not have it, and
checkpoints of a training do (`checkpoints.memory_variables`). A replica that has some rows of each
batch has the memory of these; a checkpoint has all rows, for any number of replicas.

Source: Dai et al., 2019, section 3.2; XLNet ``_cache_mem``.
"""

from typing import Any

import keras
import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.engines.engine import engine
from t5repro.model.layers import SeededLayer, Tensor

ROWS = 1  # axis of the states


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
        """Create the states of the rows of a replica, which are not trained."""
        blocks, rows, *state = self.shape
        self.states = keras.Variable(
            keras.initializers.Zeros(),
            shape=(blocks, rows // engine().replicas(), *state),
            name="states",
            trainable=False,
            autocast=False,
            dtype=floatx(),
            # Values differ between replicas. What reads them outside of a replica gets the first's.
            synchronization="on_read",
            aggregation="only_first_replica",
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

    def numpy(self) -> np.ndarray:
        """Return the states of all rows, of `shape`."""
        parts = engine().replica_values(self.states)
        return np.concatenate([np.asarray(part.numpy()) for part in parts], axis=ROWS)

    def assign(self, states: np.ndarray) -> None:
        """Set the states of all rows, of `shape`."""
        parts = engine().replica_values(self.states)
        for part, rows in zip(parts, np.split(states, len(parts), axis=ROWS), strict=True):
            part.assign(rows)
