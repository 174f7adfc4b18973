"""A stack of blocks: the encoder or the decoder of a network (paper sections 2.1 and 3.2).

A row may contain several examples; segment ids separate them in every mask. To add a variant, add
its switch to `ModelSettings` and its block here.

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, H heads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.model.attention import (
    NoBias,
    RelativeBias,
    bias_of_block,
    causal_mask,
    prefix_mask,
    segment_mask,
)
from t5repro.model.block import Block, relative_bias_layer
from t5repro.model.fused_attention import RowBias, row_bias
from t5repro.model.gradient_order import for_each_reader
from t5repro.model.layers import RMSNorm, SeededLayer, Tensor, dropout_layer, norm_layer
from t5repro.model.learned_positions import LearnedPositions, positions_in_segments
from t5repro.model.rotary import Rotation, rotation


class Stack(SeededLayer):
    """The encoder or the decoder: positions, dropout, blocks, a last norm, dropout.

    Learned positions are added to the embedding. With norms after residual connections the top
    block already ends in norm and dropout, so the stack adds none.

    Args:
        model: shape of the network.
        is_decoder: whether positions attend to earlier positions only.
        has_cross_attention: whether they attend to an encoder too.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapters; features; 0 means none.
        shared_with: stack that lends its norms, self-attention, feed-forward and position biases;
            if absent, the stack has its own.
        fused_attention: attend with one kernel (`FusedAttention`): on JAX, for rows of one example.
        layer: seed, path and precision, see `SeededLayer`.

    Source: the released configuration of shared parameters builds the encoder in the decoder's
    variable scope.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        is_decoder: bool,
        has_cross_attention: bool = False,
        dropout_rate: float,
        adapter_width: int = 0,
        shared_with: "Stack | None" = None,
        fused_attention: bool = False,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.fused_attention = fused_attention
        self.settings = model
        self.is_decoder = is_decoder
        self.has_cross_attention = has_cross_attention
        layers = model.num_decoder_layers if is_decoder else model.num_encoder_layers
        self.relative_bias: RelativeBias | None = None
        if model.relative_position_bias == "per_stack" and model.positions == "relative":
            shared_bias = shared_with.relative_bias if shared_with else None
            self.relative_bias = relative_bias_layer(
                model, is_decoder, shared_bias, **self.inner("relative_bias")
            )
        self.blocks: list[Block] = [
            Block(
                model,
                is_decoder=is_decoder,
                has_cross_attention=has_cross_attention,
                dropout_rate=dropout_rate,
                adapter_width=adapter_width,
                shared_with=shared_with.blocks[number] if shared_with else None,
                fused_attention=fused_attention,
                **self.inner(f"block_{number}"),
            )
            for number in range(layers)
        ]
        self.positions: LearnedPositions | None = None
        if model.positions == "learned":
            self.positions = (
                shared_with.positions
                if shared_with
                else LearnedPositions(model, **self.inner("positions"))
            )
        self.first_dropout = dropout_layer(model, dropout_rate, **self.inner("first_dropout"))
        self.norm: RMSNorm | None = None
        # The residual stream of pre-norm blocks leaves the top block without a norm.
        if model.norm_placement == "pre":
            self.norm = shared_with.norm if shared_with else norm_layer(model, **self.inner("norm"))
            self.last_dropout = dropout_layer(model, dropout_rate, **self.inner("last_dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the blocks."""
        if self.relative_bias:
            self.relative_bias.build()
        for block in self.blocks:
            block.build()
        # Layers of `shared_with` were built with its own stack.
        for layer in (self.norm, self.positions):
            if layer and not layer.built:
                layer.build()

    def position_biases(self, bias_of: Callable[[RelativeBias | NoBias], Tensor]) -> list[Tensor]:
        """Return `bias_of` each block's table; of one table if the blocks share it."""
        if self.settings.positions != "relative":
            return [bias_of(NoBias())]
        # Either the stack has one table, or every block has its own.
        tables = [self.relative_bias, *(block.relative_bias for block in self.blocks)]
        return [bias_of(table) for table in tables if table]

    def rotation(self, length: int) -> Rotation | None:
        """Return the angles of the first positions of a row; None if they are not rotary."""
        is_rotary = self.settings.positions == "rotary"
        return rotation(length, self.settings.d_kv) if is_rotary else None

    def add_positions(self, x_BLD: Tensor, positions: Callable[[], Tensor]) -> Tensor:
        """Return embedded ids with the vectors of their positions added, if these are learned.

        Args:
            x_BLD: embedded ids.
            positions: returns the position of each id in its example, int32, (batch or 1, length).
        """
        return x_BLD + self.positions(positions()) if self.positions else x_BLD

    def last_norm(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the output of the stack from the output of its top block."""
        if self.norm is None:
            return x_BLD
        return self.last_dropout(self.norm(x_BLD), training=training)

    def biases(
        self, segments_BL: Tensor, encoded_segments_BM: Tensor | None, prefix_BL: Tensor | None
    ) -> tuple[list[Tensor] | list[RowBias], Tensor | RowBias | None]:
        """Return the biases of self-attention, see `position_biases`, and of cross-attention."""
        own: list[Tensor] | list[RowBias]
        # Cross-attention has no position bias: inputs and targets have no common positions.
        if self.fused_attention:
            length = segments_BL.shape[1]
            order = causal_mask(length) if self.is_decoder else 0.0
            own = self.position_biases(
                lambda table: row_bias(table(length=length) + order, segments_BL, segments_BL)
            )
            between: Callable[[Tensor, Tensor], Any] = partial(row_bias, None)
        else:
            own, between = self.self_biases(segments_BL, prefix_BL), segment_mask
        no_encoder = encoded_segments_BM is None
        return own, None if no_encoder else between(segments_BL, encoded_segments_BM)

    def self_biases(self, segments_BL: Tensor, prefix_BL: Tensor | None = None) -> list[Tensor]:
        """Return the sums of position bias and masks of self-attention, see `position_biases`.

        Each is float32, (batch, 1 or heads, length, length).

        Args:
            segments_BL: number of the example at each position, 0 for padding.
            prefix_BL: 1 at positions that earlier ones see too; for a decoder.
        """
        length = segments_BL.shape[1]
        # Masks are added to the bias once per table, not once per block.
        segments = segment_mask(segments_BL, segments_BL)
        biases = self.position_biases(lambda table: table(length=length) + segments)
        if not self.is_decoder:
            return biases
        order = causal_mask(length) if prefix_BL is None else prefix_mask(prefix_BL)
        return [bias_BHLL + order for bias_BHLL in biases]

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
        biases, encoded_bias = self.biases(segments_BL, encoded_segments_BM, prefix_BL)
        # XLA, which computes fused attention, adds gradients in the order of the program.
        if len(biases) < len(self.blocks) and not self.fused_attention:
            biases = for_each_reader(biases[0], len(self.blocks))
        # Rotary angles count from the start of the row; packed examples differ only by distances.
        angles = self.rotation(segments_BL.shape[1])
        # Learned positions count from the start of each packed example.
        x_BLD = self.add_positions(x_BLD, lambda: positions_in_segments(segments_BL))
        x_BLD = self.first_dropout(x_BLD, training=training)
        for number, block in enumerate(self.blocks):
            bias = bias_of_block(biases, number)
            x_BLD = block(x_BLD, bias, encoded_BMD, encoded_bias, angles=angles, training=training)
        return self.last_norm(x_BLD, training=training)
