"""Vectors for the types of tokens, which an encoder adds to its embedding."""

from typing import Any

from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.initial_values import initial_matrix, normal
from t5repro.model.layers import SeededLayer, Tensor


class TokenTypes(SeededLayer):
    """A vector for each type of a token: whether it is of the first or the second segment.

    Args:
        model: shape of the network, `d_model` being the width of the vectors.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, model: ModelSettings, **layer: Any) -> None:
        super().__init__(**layer)
        self.model = model

    def build(self, input_shape: Any = None) -> None:
        """Create the table."""
        shape = (self.model.token_types, self.model.d_model)
        self.table = self.weight("table", shape, initial_matrix(self.model, normal(1.0)))

    def call(self, types_BL: Tensor) -> Tensor:
        """Return the vectors of types, (batch, length, features)."""
        return ops.cast(ops.take(self.table, types_BL, axis=0), self.compute_dtype)
