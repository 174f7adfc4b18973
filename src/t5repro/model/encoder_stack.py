"""The stack of an encoder-only network: embedded ids and token types to the states of a row.

Source: Devlin et al., 2018, and BERT ``BertModel``; Lan et al., 2019, and ALBERT ``AlbertModel``.

Shape suffixes: B rows of the batch, L positions, D features of the residual stream, E features of
the embedding.
"""

from typing import Any

from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.attention import segment_mask
from t5repro.model.block import Block
from t5repro.model.block_sharing import block_with_weights
from t5repro.model.dense import Dense, embedding_shape
from t5repro.model.layers import SeededLayer, Tensor, dropout_layer, norm_layer
from t5repro.model.learned_positions import LearnedPositions
from t5repro.model.token_types import TokenTypes


class EncoderStack(SeededLayer):
    """Positions, token types, norm, dropout, projection to the residual stream, blocks.

    Args:
        model: shape of the network.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapters; features; 0 means none.
        embedding_of: stack that lends its positions, token types and norm; if absent, the stack has
            its own.
        has_glorot_projection: see `Dense`.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        dropout_rate: float,
        adapter_width: int = 0,
        embedding_of: "EncoderStack | None" = None,
        has_glorot_projection: bool = False,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        embedded = embedding_shape(model)
        if embedding_of is None:
            self.positions = LearnedPositions(embedded, **self.inner("positions"))
            self.token_types: TokenTypes | None = None
            if model.token_types:
                self.token_types = TokenTypes(embedded, **self.inner("token_types"))
            # BERT normalises the sum of the embeddings; its blocks are post-norm.
            self.embedding_norm = norm_layer(embedded, **self.inner("embedding_norm"))
        else:
            self.positions = embedding_of.positions
            self.token_types = embedding_of.token_types
            self.embedding_norm = embedding_of.embedding_norm
        self.embedding_dropout = dropout_layer(
            model, dropout_rate, **self.inner("embedding_dropout")
        )
        # ALBERT factorises the embedding: a narrow table and a projection to `d_model`.
        self.embedding_projection: Dense | None = None
        if model.embedding_width:
            self.embedding_projection = Dense(
                model,
                inputs=embedded.d_model,
                outputs=model.d_model,
                is_glorot=has_glorot_projection,
                **self.inner("embedding_projection"),
            )
        self.blocks: list[Block] = []
        for number in range(model.num_encoder_layers):
            # ALBERT: a block may use the weights of an earlier one, with noise of its own.
            first = block_with_weights(model, number)
            block = Block(
                model,
                is_decoder=False,
                dropout_rate=dropout_rate,
                adapter_width=adapter_width,
                shared_with=self.blocks[first] if first < number else None,
                **self.inner(f"block_{number}"),
            )
            self.blocks.append(block)

    def build(self, input_shape: Any = None) -> None:
        """Create all weights; shared ones once."""
        layers = [self.positions, self.token_types, self.embedding_norm, self.embedding_projection]
        for layer in (*layers, *self.blocks):
            if layer and not layer.built:  # a lent one is
                layer.build()

    def embedded(self, x_BLE: Tensor, types_BL: Tensor | None, training: bool = False) -> Tensor:
        """Return the input of the first block, see `call`."""
        # A row has one example: positions count from the start of the row.
        positions_1L = ops.arange(x_BLE.shape[1], dtype="int32")[None]
        x_BLE = x_BLE + self.positions(positions_1L)
        if self.token_types is not None:
            x_BLE = x_BLE + self.token_types(types_BL)
        x_BLE = self.embedding_dropout(self.embedding_norm(x_BLE), training=training)
        return self.embedding_projection(x_BLE) if self.embedding_projection else x_BLE

    def call(
        self,
        x_BLE: Tensor,
        segments_BL: Tensor,
        types_BL: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the output of the top block, (batch, length, d_model).

        Args:
            x_BLE: embedded ids, (batch, length, features of the embedding).
            segments_BL: 1 at positions of the example, 0 at padding.
            types_BL: type of each token; if the network has token types.
            training: apply dropout.
        """
        x_BLD = self.embedded(x_BLE, types_BL, training=training)
        # No position bias: the sum of the embeddings has the positions.
        mask_B1LL = segment_mask(segments_BL, segments_BL)
        for block in self.blocks:
            x_BLD = block(x_BLD, mask_B1LL, training=training)
        return x_BLD
