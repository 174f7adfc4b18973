"""Learned positions: one vector per position of an example, added to its embedded ids.

Source: GPT ``embed``; BERT ``embedding_postprocessor``.

Shape suffixes: B rows of the batch, L positions, D features of the residual stream.
"""

from typing import Any

import numpy as np
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.initial_values import initial_matrix, normal
from t5repro.model.layers import SeededLayer, Tensor


class LearnedPositions(SeededLayer):
    """A table of `max_positions` vectors.

    Args:
        model: shape of the network.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, model: ModelSettings, **layer: Any) -> None:
        super().__init__(**layer)
        self.model = model

    def build(self, input_shape: Any = None) -> None:
        """Create the table."""
        shape = (self.model.max_positions, self.model.d_model)
        # T5 has no such table: the deviation of its embedding.
        self.table = self.weight("table", shape, initial_matrix(self.model, normal(1.0)))

    def call(self, positions_BL: Tensor) -> Tensor:
        """Return the vectors of positions, (batch, length, features).

        Args:
            positions_BL: int32, from 0 to `max_positions` - 1; tokens.
        """
        return ops.cast(ops.take(self.table, positions_BL, axis=0), self.compute_dtype)


def positions_in_segments(segments_BL: Tensor) -> Tensor:
    """Return the position of each id in its example, int32 (batch, length).

    Args:
        segments_BL: number of the example at each position; the positions of an example are
            adjacent. Padding counts as one.
    """
    length = segments_BL.shape[1]
    earlier_LL = np.tri(length, k=-1, dtype=bool)
    same_BLL = ops.equal(segments_BL[:, :, None], segments_BL[:, None, :])
    return ops.sum(ops.cast(ops.logical_and(same_BLL, earlier_LL), "int32"), axis=-1)
