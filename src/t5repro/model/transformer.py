"""The Transformers of T5 (paper sections 2.1 and 3.2), on packed rows.

Two stacks, two stacks with one set of weights, or a decoder alone, causal or with a prefix that it
sees whole. A row may hold several examples; segment ids keep them apart in every mask. Weights are
functions of the run's seed. To add a variant, add its switch to `ModelSettings` and its block
here; published shapes are data in `sizes.py`.

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, H heads, V ids.
"""

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


class Block(SeededLayer):
    """Self-attention, cross-attention where there is an encoder to read, and feed-forward.

    Each sub-layer is ``x + dropout(sub(norm(x)))``. A block with a twin uses the twin's weights,
    except in cross-attention, which the twin does not have.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        reads_memory: bool,
        dropout_rate: float,
        adapter_width: int = 0,
        twin: "Block | None" = None,
        **place: Any,
    ) -> None:
        super().__init__(**place)
        self.reads_memory = reads_memory

        def inside(name: str) -> dict[str, Any]:
            return {**place, "path": f"{self.place}/{name}"}

        def norm(name: str) -> RMSNorm:
            return RMSNorm(model.d_model, epsilon=model.norm_epsilon, **inside(name))

        def attention(name: str) -> Attention:
            return Attention(
                d_model=model.d_model,
                num_heads=model.num_heads,
                d_kv=model.d_kv,
                dropout_rate=dropout_rate,
                **inside(name),
            )

        self.self_attention_norm: RMSNorm = (
            twin.self_attention_norm if twin else norm("self_attention_norm")
        )
        self.self_attention: Attention = (
            twin.self_attention if twin else attention("self_attention")
        )
        self.self_attention_dropout = Dropout(dropout_rate, **inside("self_attention_dropout"))
        if reads_memory:
            self.cross_attention_norm = norm("cross_attention_norm")
            self.cross_attention = attention("cross_attention")
            self.cross_attention_dropout = Dropout(
                dropout_rate, **inside("cross_attention_dropout")
            )
        self.feed_forward_norm: RMSNorm = (
            twin.feed_forward_norm if twin else norm("feed_forward_norm")
        )
        self.feed_forward: FeedForward = (
            twin.feed_forward
            if twin
            else FeedForward(
                d_model=model.d_model,
                d_ff=model.d_ff,
                activation=model.feed_forward,
                dropout_rate=dropout_rate,
                **inside("feed_forward"),
            )
        )
        self.feed_forward_dropout = Dropout(dropout_rate, **inside("feed_forward_dropout"))
        self.adapter: Adapter | None = None
        if adapter_width:
            self.adapter = (twin.adapter if twin else None) or Adapter(
                d_model=model.d_model,
                width=adapter_width,
                epsilon=model.norm_epsilon,
                dropout_rate=dropout_rate,
                **inside("adapter"),
            )

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the sub-layers; a twin's are there already."""
        layers = [self.self_attention_norm, self.self_attention]
        if self.reads_memory:
            layers += [self.cross_attention_norm, self.cross_attention]
        layers += [self.feed_forward_norm, self.feed_forward]
        for layer in [*layers, *([self.adapter] if self.adapter else [])]:
            if not layer.built:
                layer.build()

    def call(
        self,
        x_BLD: Tensor,
        bias_BHLL: Tensor,
        memory_BMD: Tensor | None = None,
        memory_bias_BHLM: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the residual stream after the block, (batch, length, features)."""
        read_BLD = self.self_attention(
            self.self_attention_norm(x_BLD), bias_BHLL, training=training
        )
        x_BLD = x_BLD + self.self_attention_dropout(read_BLD, training=training)
        if self.reads_memory:
            read_BLD = self.cross_attention(
                self.cross_attention_norm(x_BLD), memory_bias_BHLM, memory_BMD, training=training
            )
            x_BLD = x_BLD + self.cross_attention_dropout(read_BLD, training=training)
        return self.think(x_BLD, training=training)

    def think(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the residual stream after the feed-forward sub-layer and the adapter."""
        thought_BLD = self.feed_forward(self.feed_forward_norm(x_BLD), training=training)
        x_BLD = x_BLD + self.feed_forward_dropout(thought_BLD, training=training)
        return x_BLD if self.adapter is None else self.adapter(x_BLD, training=training)


class Stack(SeededLayer):
    """The encoder or the decoder: dropout, blocks, a last norm, dropout.

    A stack with a twin uses the twin's weights wherever the twin has them: norms, self-attention,
    feed-forward and the table of position biases.

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
        twin: "Stack | None" = None,
        **place: Any,
    ) -> None:
        super().__init__(**place)
        self.is_decoder = is_decoder
        self.reads_memory = is_decoder and not model.decoder_only
        layers = model.num_decoder_layers if is_decoder else model.num_encoder_layers

        def inside(name: str) -> dict[str, Any]:
            return {**place, "path": f"{self.place}/{name}"}

        self.relative_bias: RelativeBias = RelativeBias(
            num_heads=model.num_heads,
            buckets=model.relative_position_buckets,
            max_distance=model.relative_position_max_distance,
            bidirectional=not is_decoder,
            twin=twin.relative_bias if twin else None,
            **inside("relative_bias"),
        )
        self.blocks: list[Block] = [
            Block(
                model,
                reads_memory=self.reads_memory,
                dropout_rate=dropout_rate,
                adapter_width=adapter_width,
                twin=twin.blocks[number] if twin else None,
                **inside(f"block_{number}"),
            )
            for number in range(layers)
        ]
        self.norm: RMSNorm = (
            twin.norm
            if twin
            else RMSNorm(model.d_model, epsilon=model.norm_epsilon, **inside("norm"))
        )
        self.first_dropout = Dropout(dropout_rate, **inside("first_dropout"))
        self.last_dropout = Dropout(dropout_rate, **inside("last_dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the blocks."""
        self.relative_bias.build()
        for block in self.blocks:
            block.build()
        if not self.norm.built:
            self.norm.build()

    def self_bias(self, segments_BL: Tensor, prefix_BL: Tensor | None = None) -> Tensor:
        """Return position bias and masks of the stack's self-attention as one array.

        It is the same for all layers: float32, (batch, heads, length, length).

        Args:
            segments_BL: number of the example at each position, 0 for padding.
            prefix_BL: 1 where a position is seen from before as well; for a decoder.
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
        memory_BMD: Tensor | None = None,
        memory_segments_BM: Tensor | None = None,
        prefix_BL: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the stack's output.

        Args:
            x_BLD: embedded ids, (batch, length, features).
            segments_BL: number of the example at each position, 0 for padding.
            memory_BMD: what the encoder returned; for a decoder.
            memory_segments_BM: segments of the encoder's row; for a decoder.
            prefix_BL: 1 where a position is seen from before as well; for a decoder alone.
            training: apply dropout.
        """
        bias_BHLL = self.self_bias(segments_BL, prefix_BL)
        memory_bias_BHLM = None
        if self.reads_memory:
            memory_bias_BHLM = segment_mask(segments_BL, memory_segments_BM)
        x_BLD = self.first_dropout(x_BLD, training=training)
        for block in self.blocks:
            x_BLD = block(x_BLD, bias_BHLL, memory_BMD, memory_bias_BHLM, training=training)
        return self.last_dropout(self.norm(x_BLD), training=training)


class T5(keras.Model):
    """The text-to-text Transformer.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding; ids in use rounded up to a multiple of 128.
        dropout_rate: share of features dropped in training.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, ``float32`` or ``bfloat16``; weights are float32.
        adapter_width: inner width of an adapter in each block; features; 0: no adapters.

    Calling it takes a mapping of int32 arrays ``encoder_ids`` and ``encoder_segments`` of shape
    (batch, inputs_length), ``decoder_ids`` and ``decoder_segments`` of (batch, targets_length),
    and returns float32 logits of (batch, targets_length, embedding_rows). Segments number the
    examples of a row from 1; 0 is padding. A decoder alone takes ``decoder_ids``,
    ``decoder_segments`` and ``decoder_prefix``, 1 where a position belongs to the inputs, of
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
        twin = self.encoder if shared else None
        self.decoder = Stack(model, is_decoder=True, path="decoder", twin=twin, **stack)
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
        # Keras traces a model under a strategy with the mean of all replicas' ids first: floats.
        features = {name: ops.cast(value, "int32") for name, value in features.items()}
        if self.settings.decoder_only:
            whole = self.settings.architecture == "prefix_language_model"
            decoded_BLD = self.decoder(
                self.embed(features["decoder_ids"]),
                features["decoder_segments"],
                prefix_BL=features["decoder_prefix"] if whole else None,
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
        """Return what the decoder reads, (batch, inputs_length, features)."""
        return self.encoder(self.embed(ids_BM), segments_BM, training=training)

    def logits(self, decoded_BLD: Tensor, output_DV: Tensor | None = None) -> Tensor:
        """Return float32 logits over all rows of the embedding.

        With a shared matrix the decoder's output is scaled by d_model^-0.5 first.

        Args:
            decoded_BLD: what the decoder returned.
            output_DV: what `output` returned, where many calls share it.
        """
        if self.settings.tie_embeddings:
            decoded_BLD = decoded_BLD * self.settings.d_model**-0.5
        if output_DV is None:
            output_DV = self.output()
        return ops.cast(matmul(decoded_BLD, output_DV), "float32")

    def output(self) -> Tensor:
        """Return the matrix from features to ids in the precision of activations, (features, ids).

        A step of decoding multiplies few rows with it: with the embedding transposed inside the
        product that takes three times as long as with this, made once.
        """
        tied = self.settings.tie_embeddings
        matrix = ops.transpose(self.embedding) if tied else self.output_matrix
        return ops.cast(matrix, self.compute_dtype)
