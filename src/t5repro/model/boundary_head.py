"""The head of SpanBERT's boundary objective.

Shape suffixes: B rows of the batch, L positions, M predicted positions, D features of the residual
stream, E features of the embedding, V ids.
"""

from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.config.flops import INDEX_WIDTH
from t5repro.config.sections.model import ModelSettings
from t5repro.model.dense import Dense, embedding_shape
from t5repro.model.initial_values import initial_matrix, normal, zeros
from t5repro.model.layers import ACTIVATIONS, SeededLayer, Tensor, norm_layer, products_of_rows

INDICES = 15  # pieces of a span with a vector each


class BoundaryHead(SeededLayer):
    """Predicts a piece of a span from the states before and after it, and its index in the span.

    Two dense layers with norms, and the product with the embedding, with a bias for each id.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding.
        layer: seed, path and precision, see `SeededLayer`.

    Source: SpanBERT, section 3.2, and ``MLPWithLayerNorm`` of its code.
    """

    def __init__(self, model: ModelSettings, *, embedding_rows: int, **layer: Any) -> None:
        super().__init__(**layer)
        width = model.d_model
        self.model = model
        self.embedding_rows = embedding_rows
        self.activation = ACTIVATIONS[model.feed_forward]
        inputs = 2 * width + INDEX_WIDTH
        self.first = Dense(model, inputs=inputs, outputs=width, **self.inner("first"))
        self.first_norm = norm_layer(model, **self.inner("first_norm"))
        embedded = embedding_shape(model)
        self.second = Dense(model, inputs=width, outputs=embedded.d_model, **self.inner("second"))
        self.second_norm = norm_layer(embedded, **self.inner("second_norm"))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights, without the embedding."""
        for layer in (self.first, self.first_norm, self.second, self.second_norm):
            layer.build()
        draw = initial_matrix(self.model, normal(1.0))
        self.indices = self.weight("indices", (INDICES, INDEX_WIDTH), draw)
        self.bias = self.weight("bias", (self.embedding_rows,), zeros())

    def call(self, borders_BM2D: Tensor, index_BM: Tensor, ids_VE: Tensor) -> Tensor:
        """Return float32 logits of ids, (batch, predicted positions, ids).

        Args:
            borders_BM2D: output of the encoder before and after the span.
            index_BM: int32, index in the span; below 0 without a target.
            ids_VE: the embedding.
        """
        rows, count, _, width = borders_BM2D.shape
        index_BM = ops.maximum(index_BM, 0)
        indices = ops.cast(ops.take(self.indices, index_BM, axis=0), self.compute_dtype)
        both_BMD = ops.reshape(borders_BM2D, (rows, count, 2 * width))
        hidden = ops.concatenate([both_BMD, indices], axis=-1)
        hidden = self.first_norm(self.activation(self.first(hidden)))
        hidden = self.second_norm(self.activation(self.second(hidden)))
        return ops.cast(products_of_rows(hidden, ids_VE), floatx()) + self.bias
