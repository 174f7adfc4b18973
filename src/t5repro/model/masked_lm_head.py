"""The head that predicts masked pieces of a row.

Shape suffixes: B rows of the batch, M predicted positions, D features of the residual stream, E
features of the embedding, V ids.
"""

from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.dense import Dense, embedding_shape
from t5repro.model.initial_values import zeros
from t5repro.model.layers import ACTIVATIONS, SeededLayer, Tensor, norm_layer, products_of_rows


class MaskedLMHead(SeededLayer):
    """A dense layer, norm, and the product with the embedding, with a bias for each id.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding.
        layer: seed, path and precision, see `SeededLayer`.

    Source: BERT ``get_masked_lm_output``.
    """

    def __init__(self, model: ModelSettings, *, embedding_rows: int, **layer: Any) -> None:
        super().__init__(**layer)
        embedded = embedding_shape(model)
        self.activation = ACTIVATIONS[model.feed_forward]
        self.embedding_rows = embedding_rows
        self.transform = Dense(
            model, inputs=model.d_model, outputs=embedded.d_model, **self.inner("transform")
        )
        self.norm = norm_layer(embedded, **self.inner("norm"))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights, without the embedding."""
        self.transform.build()
        self.norm.build()
        self.bias = self.weight("bias", (self.embedding_rows,), zeros())

    def call(self, x_BMD: Tensor, ids_VE: Tensor) -> Tensor:
        """Return float32 logits of ids, (batch, predicted positions, ids).

        Args:
            x_BMD: output of the encoder at the predicted positions.
            ids_VE: the embedding.
        """
        hidden_BME = self.norm(self.activation(self.transform(x_BMD)))
        return ops.cast(products_of_rows(hidden_BME, ids_VE), floatx()) + self.bias
