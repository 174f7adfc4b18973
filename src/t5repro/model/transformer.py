"""The Transformers of T5 (paper sections 2.1 and 3.2), on packed rows.

Two stacks, two stacks with one set of weights, or a decoder-only network, causal or with a fully
visible prefix. A row may contain several examples; segment ids separate them in every mask. Weights
are functions of the run's seed. To add a variant, add its switch to `ModelSettings` and its block
here; published shapes are data in `config/published_sizes.py`.

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, H heads, V ids.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.adapters import Adapter
from t5repro.model.attention import Attention, RelativeBias, causal_mask, prefix_mask, segment_mask
from t5repro.model.layers import (
    Dropout,
    FeedForward,
    Initial,
    RMSNorm,
    SeededLayer,
    Tensor,
    matmul,
    normal,
    truncated_normal,
)

PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
UNUSED_LOGIT = -1e9  # a probability of 0


class Block(SeededLayer):
    """Self-attention, cross-attention if there is an encoder, and feed-forward.

    Each sub-layer is ``x + dropout(sub(norm(x)))``.

    Args:
        model: shape of the network.
        has_cross_attention: whether the block attends to an encoder's output.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapter; features; 0 means none.
        shared_with: block whose weights this one uses, except in cross-attention; if absent, the
            block has its own.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        has_cross_attention: bool,
        dropout_rate: float,
        adapter_width: int = 0,
        shared_with: "Block | None" = None,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.has_cross_attention = has_cross_attention
        self._shape = model
        self._dropout_rate = dropout_rate

        def shared_or_new(name: str, create: Callable[[str], Any]) -> Any:
            return create(name) if shared_with is None else getattr(shared_with, name)

        self.self_attention_norm: RMSNorm = shared_or_new("self_attention_norm", self._norm)
        self.self_attention: Attention = shared_or_new("self_attention", self._attention)
        # Dropout has no weights, and each block has its own noise.
        self.self_attention_dropout = self._dropout("self_attention_dropout")
        if has_cross_attention:
            self.cross_attention_norm = self._norm("cross_attention_norm")
            self.cross_attention = self._attention("cross_attention")
            self.cross_attention_dropout = self._dropout("cross_attention_dropout")
        self.feed_forward_norm: RMSNorm = shared_or_new("feed_forward_norm", self._norm)
        self.feed_forward: FeedForward = shared_or_new("feed_forward", self._feed_forward)
        self.feed_forward_dropout = self._dropout("feed_forward_dropout")
        self.adapter: Adapter | None = None
        if adapter_width:
            self.adapter = shared_or_new("adapter", partial(self._adapter, width=adapter_width))

    def _norm(self, name: str) -> RMSNorm:
        shape = self._shape
        return RMSNorm(shape.d_model, epsilon=shape.norm_epsilon, **self.inner(name))

    def _attention(self, name: str) -> Attention:
        return Attention(
            d_model=self._shape.d_model,
            num_heads=self._shape.num_heads,
            d_kv=self._shape.d_kv,
            dropout_rate=self._dropout_rate,
            **self.inner(name),
        )

    def _feed_forward(self, name: str) -> FeedForward:
        return FeedForward(
            d_model=self._shape.d_model,
            d_ff=self._shape.d_ff,
            activation=self._shape.feed_forward,
            dropout_rate=self._dropout_rate,
            **self.inner(name),
        )

    def _adapter(self, name: str, *, width: int) -> Adapter:
        return Adapter(
            d_model=self._shape.d_model,
            width=width,
            epsilon=self._shape.norm_epsilon,
            dropout_rate=self._dropout_rate,
            **self.inner(name),
        )

    def _dropout(self, name: str) -> Dropout:
        return Dropout(self._dropout_rate, **self.inner(name))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the sub-layers, except those that exist in `shared_with`."""
        layers = [self.self_attention_norm, self.self_attention]
        if self.has_cross_attention:
            layers += [self.cross_attention_norm, self.cross_attention]
        layers += [self.feed_forward_norm, self.feed_forward]
        for layer in [*layers, *([self.adapter] if self.adapter else [])]:
            if not layer.built:
                layer.build()

    def call(
        self,
        x_BLD: Tensor,
        bias_BHLL: Tensor,
        encoded_BMD: Tensor | None = None,
        encoded_bias_BHLM: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the residual stream after the block, (batch, length, features)."""
        attended_BLD = self.self_attention(
            self.self_attention_norm(x_BLD), bias_BHLL, training=training
        )
        x_BLD = x_BLD + self.self_attention_dropout(attended_BLD, training=training)
        if self.has_cross_attention:
            attended_BLD = self.cross_attention(
                self.cross_attention_norm(x_BLD), encoded_bias_BHLM, encoded_BMD, training=training
            )
            x_BLD = x_BLD + self.cross_attention_dropout(attended_BLD, training=training)
        return self.feed_forward_sublayer(x_BLD, training=training)

    def feed_forward_sublayer(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the residual stream after the feed-forward sub-layer and the adapter."""
        ffn_BLD = self.feed_forward(self.feed_forward_norm(x_BLD), training=training)
        x_BLD = x_BLD + self.feed_forward_dropout(ffn_BLD, training=training)
        return x_BLD if self.adapter is None else self.adapter(x_BLD, training=training)


class Stack(SeededLayer):
    """The encoder or the decoder: dropout, blocks, a last norm, dropout.

    Args:
        model: shape of the network.
        is_decoder: whether positions attend to earlier positions only, and to an encoder.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapters; features; 0 means none.
        shared_with: stack whose norms, self-attention, feed-forward and position biases this one
            uses; if absent, the stack has its own.
        layer: seed, path and precision, see `SeededLayer`.

    Source: the released configuration of shared parameters builds the encoder in the decoder's
    variable scope.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        is_decoder: bool,
        dropout_rate: float,
        adapter_width: int = 0,
        shared_with: "Stack | None" = None,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.is_decoder = is_decoder
        self.has_cross_attention = is_decoder and not model.decoder_only
        layers = model.num_decoder_layers if is_decoder else model.num_encoder_layers
        self.relative_bias: RelativeBias = RelativeBias(
            num_heads=model.num_heads,
            buckets=model.relative_position_buckets,
            max_distance=model.relative_position_max_distance,
            bidirectional=not is_decoder,
            shared_with=shared_with.relative_bias if shared_with else None,
            **self.inner("relative_bias"),
        )
        self.blocks: list[Block] = [
            Block(
                model,
                has_cross_attention=self.has_cross_attention,
                dropout_rate=dropout_rate,
                adapter_width=adapter_width,
                shared_with=shared_with.blocks[number] if shared_with else None,
                **self.inner(f"block_{number}"),
            )
            for number in range(layers)
        ]
        self.norm: RMSNorm = (
            shared_with.norm
            if shared_with
            else RMSNorm(model.d_model, epsilon=model.norm_epsilon, **self.inner("norm"))
        )
        self.first_dropout = Dropout(dropout_rate, **self.inner("first_dropout"))
        self.last_dropout = Dropout(dropout_rate, **self.inner("last_dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the blocks."""
        self.relative_bias.build()
        for block in self.blocks:
            block.build()
        if not self.norm.built:
            self.norm.build()

    def self_bias(self, segments_BL: Tensor, prefix_BL: Tensor | None = None) -> Tensor:
        """Return the sum of position bias and masks of the stack's self-attention.

        All layers share it: float32, (batch, heads, length, length).

        Args:
            segments_BL: number of the example at each position, 0 for padding.
            prefix_BL: 1 at positions that earlier ones see too; for a decoder.
        """
        length = segments_BL.shape[1]
        bias_BHLL = self.relative_bias(length=length) + segment_mask(segments_BL, segments_BL)
        if not self.is_decoder:
            return bias_BHLL
        return bias_BHLL + (causal_mask(length) if prefix_BL is None else prefix_mask(prefix_BL))

    def call(
        self,
        x_BLD: Tensor,
        segments_BL: Tensor,
        encoded_BMD: Tensor | None = None,
        encoded_segments_BM: Tensor | None = None,
        prefix_BL: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the stack's output.

        Args:
            x_BLD: embedded ids, (batch, length, features).
            segments_BL: number of the example at each position, 0 for padding.
            encoded_BMD: output of the encoder; for a decoder.
            encoded_segments_BM: segments of the encoder's row; for a decoder.
            prefix_BL: 1 at positions that earlier ones see too; for a decoder-only network.
            training: apply dropout.
        """
        bias_BHLL = self.self_bias(segments_BL, prefix_BL)
        encoded_bias_BHLM = None
        if self.has_cross_attention:
            encoded_bias_BHLM = segment_mask(segments_BL, encoded_segments_BM)
        x_BLD = self.first_dropout(x_BLD, training=training)
        for block in self.blocks:
            x_BLD = block(x_BLD, bias_BHLL, encoded_BMD, encoded_bias_BHLM, training=training)
        return self.last_dropout(self.norm(x_BLD), training=training)


class T5(keras.Model):
    """The text-to-text Transformer.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding; ids in use rounded up to a multiple of 128.
        dropout_rate: share of features dropped in training.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, ``float32`` or ``bfloat16``; weights are float32.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.

    Calling it takes a mapping of int32 arrays ``encoder_ids`` and ``encoder_segments`` of shape
    (batch, inputs_length), ``decoder_ids`` and ``decoder_segments`` of (batch, targets_length),
    and returns float32 logits of (batch, targets_length, embedding_rows). Segments number the
    examples of a row from 1; 0 is padding. A decoder-only network takes ``decoder_ids``,
    ``decoder_segments`` and ``decoder_prefix``, 1 at positions of the inputs, of
    (batch, length), and returns logits of (batch, length, embedding_rows).
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
    ) -> None:
        super().__init__(name="t5", dtype=PRECISIONS[dtype], autocast=False)
        self.settings = model
        self.embedding_rows = embedding_rows
        self.rows_in_use = embedding_rows  # fewer for some imported weights (`checkpoints`)
        self.run_seed = seed
        stack: dict[str, Any] = {
            "dropout_rate": dropout_rate,
            "adapter_width": adapter_width,
            "seed": seed,
            "dtype": PRECISIONS[dtype],
        }
        if not model.decoder_only:
            self.encoder = Stack(model, is_decoder=False, path="encoder", **stack)
        shared = model.architecture == "shared_encoder_decoder"
        self.decoder = Stack(
            model,
            is_decoder=True,
            path="decoder",
            shared_with=self.encoder if shared else None,
            **stack,
        )
        self.build(None)

    def build(self, input_shape: Any) -> None:
        """Create all weights."""
        shape = (self.embedding_rows, self.settings.d_model)
        self.embedding = self._weight("embedding", shape, normal(1.0))
        if not self.settings.tie_embeddings:
            draw = truncated_normal(self.settings.d_model**-0.5)
            self.output_matrix = self._weight("output_matrix", shape[::-1], draw)
        if not self.settings.decoder_only:
            self.encoder.build()
        self.decoder.build()
        self.built = True

    def _weight(self, name: str, shape: tuple[int, int], draw: Any) -> Any:
        initial = Initial(draw, self.run_seed, name)
        return self.add_weight(name=name, shape=shape, initializer=initial, autocast=False)

    def call(self, features: dict[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of the next id at each position of the decoder."""
        # Under a strategy Keras first traces a model with the mean of all replicas' ids: floats.
        features = {name: ops.cast(value, "int32") for name, value in features.items()}
        if self.settings.decoder_only:
            has_prefix = self.settings.architecture == "prefix_language_model"
            decoded_BLD = self.decoder(
                self.embed(features["decoder_ids"]),
                features["decoder_segments"],
                prefix_BL=features["decoder_prefix"] if has_prefix else None,
                training=training,
            )
            return self.logits(decoded_BLD)
        encoded_BMD = self.encode(
            features["encoder_ids"], features["encoder_segments"], training=training
        )
        decoded_BLD = self.decoder(
            self.embed(features["decoder_ids"]),
            features["decoder_segments"],
            encoded_BMD,
            features["encoder_segments"],
            training=training,
        )
        return self.logits(decoded_BLD)

    def embed(self, ids_BL: Tensor) -> Tensor:
        """Return the rows of the embedding, (batch, length, features); not scaled."""
        return ops.cast(ops.take(self.embedding, ids_BL, axis=0), self.compute_dtype)

    def encode(self, ids_BM: Tensor, segments_BM: Tensor, training: bool = False) -> Tensor:
        """Return the output of the encoder, (batch, inputs_length, features)."""
        return self.encoder(self.embed(ids_BM), segments_BM, training=training)

    def logits(self, decoded_BLD: Tensor, output_DV: Tensor | None = None) -> Tensor:
        """Return float32 logits over all rows of the embedding.

        With a shared matrix the decoder's output is scaled by d_model^-0.5 first. Rows that
        imported weights lack cannot be predicted: their zeros would exceed negative logits.

        Args:
            decoded_BLD: output of the decoder.
            output_DV: result of `output`, if many calls share it.
        """
        if self.settings.tie_embeddings:
            decoded_BLD = decoded_BLD * self.settings.d_model**-0.5
        if output_DV is None:
            output_DV = self.output()
        logits_BLV = ops.cast(matmul(decoded_BLD, output_DV), "float32")
        if self.rows_in_use == self.embedding_rows:
            return logits_BLV
        return ops.where(
            ops.arange(self.embedding_rows) < self.rows_in_use, logits_BLV, UNUSED_LOGIT
        )

    def output(self) -> Tensor:
        """Return the matrix from features to ids in the precision of activations, (features, ids).

        A step of decoding multiplies few rows with it. A product that transposes the embedding
        takes three times as long as one with this matrix, which is computed once.
        """
        tied = self.settings.tie_embeddings
        matrix = ops.transpose(self.embedding) if tied else self.output_matrix
        return ops.cast(matrix, self.compute_dtype)
