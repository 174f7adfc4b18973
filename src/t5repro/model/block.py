"""A block of a stack: its sub-layers and their residuals (paper section 2.1).

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, H heads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from t5repro.config.sections.devices import Remat
from t5repro.config.sections.model import ModelSettings
from t5repro.model.adapters import Adapter
from t5repro.model.attention import Attention, RelativeBias
from t5repro.model.fused_attention import FusedAttention
from t5repro.model.layers import (
    Dropout,
    FeedForward,
    RMSNorm,
    SeededLayer,
    Tensor,
    dropout_layer,
    norm_layer,
)
from t5repro.model.recomputation import recomputed
from t5repro.model.rotary import Rotation

Layer = Callable[[Tensor], Tensor]


def relative_bias_layer(
    model: ModelSettings, is_decoder: bool, shared_with: RelativeBias | None, **layer: Any
) -> RelativeBias:
    """Return the position bias of a stack or of a block."""
    return RelativeBias(
        num_heads=model.num_heads,
        buckets=model.relative_position_buckets,
        max_distance=model.relative_position_max_distance,
        bidirectional=not is_decoder,
        shared_with=shared_with,
        **layer,
    )


class Block(SeededLayer):
    """Self-attention, cross-attention if there is an encoder, and feed-forward.

    Each sub-layer is ``x + dropout(sub(norm(x)))``, or ``norm(x + dropout(sub(x)))`` with norms
    after residual connections.

    Args:
        model: shape of the network.
        is_decoder: whether it is a block of the decoder.
        has_cross_attention: whether it attends to an encoder.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapter; features; 0 means none.
        shared_with: block that lends its weights, except in cross-attention and those that
            `model.shared_parts` leaves out; if absent, the block has its own.
        fused_attention: see `Stack`.
        layer: seed, path and precision, see `SeededLayer`.

    Attributes:
        remat: which activations the backward pass computes again (`devices.remat`), on JAX; none
            unless `train.compiled_model` sets it.
    """

    remat: Remat = "none"

    def __init__(
        self,
        model: ModelSettings,
        *,
        is_decoder: bool,
        has_cross_attention: bool = False,
        dropout_rate: float,
        adapter_width: int = 0,
        shared_with: "Block | None" = None,
        fused_attention: bool = False,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.has_cross_attention = has_cross_attention
        self._shape = model
        self._dropout_rate = dropout_rate
        self._attention_class = FusedAttention if fused_attention else Attention

        def shared_or_new(name: str, create: Callable[[str], Any], part: str) -> Any:
            is_shared = shared_with is not None and model.shared_parts in ("all", part)
            return getattr(shared_with, name) if is_shared else create(name)

        attention, feed_forward = "attention", "feed_forward"
        self.self_attention_norm: RMSNorm = shared_or_new(
            "self_attention_norm", self._norm, attention
        )
        self.self_attention: Attention = shared_or_new("self_attention", self._attention, attention)
        # Dropout has no weights, and each block has its own noise.
        self.self_attention_dropout = self._dropout("self_attention_dropout")
        if has_cross_attention:
            self.cross_attention_norm = self._norm("cross_attention_norm")
            self.cross_attention = self._attention("cross_attention")
            self.cross_attention_dropout = self._dropout("cross_attention_dropout")
        self.feed_forward_norm: RMSNorm = shared_or_new(
            "feed_forward_norm", self._norm, feed_forward
        )
        self.feed_forward: FeedForward = shared_or_new(
            "feed_forward", self._feed_forward, feed_forward
        )
        self.feed_forward_dropout = self._dropout("feed_forward_dropout")
        self.relative_bias: RelativeBias | None = None
        if model.relative_position_bias == "per_layer":
            shared_bias = shared_with.relative_bias if shared_with else None
            self.relative_bias = relative_bias_layer(
                model, is_decoder, shared_bias, **self.inner("relative_bias")
            )
        self.adapter: Adapter | None = None
        if adapter_width:
            # It follows the feed-forward layer, and is shared with it.
            create = partial(self._adapter, width=adapter_width)
            self.adapter = shared_or_new("adapter", create, feed_forward)

    def _norm(self, name: str) -> RMSNorm:
        return norm_layer(self._shape, **self.inner(name))

    def _attention(self, name: str) -> Attention:
        return self._attention_class(
            self._shape, dropout_rate=self._dropout_rate, **self.inner(name)
        )

    def _feed_forward(self, name: str) -> FeedForward:
        d_ff, dropout_rate = self._shape.d_ff, self._dropout_rate
        return FeedForward(self._shape, d_ff=d_ff, dropout_rate=dropout_rate, **self.inner(name))

    def _adapter(self, name: str, *, width: int) -> Adapter:
        dropout_rate = self._dropout_rate
        return Adapter(self._shape, width=width, dropout_rate=dropout_rate, **self.inner(name))

    def _dropout(self, name: str) -> Dropout:
        return dropout_layer(self._shape, self._dropout_rate, **self.inner(name))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the sub-layers, except those that exist in `shared_with`."""
        layers: list[Any] = [self.relative_bias] if self.relative_bias else []
        layers += [self.self_attention_norm, self.self_attention]
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
        angles: Rotation | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the residual stream after the block, (batch, length, features)."""
        inputs = (x_BLD, bias_BHLL, encoded_BMD, encoded_bias_BHLM, angles)
        if training and self.remat != "none":
            return recomputed(self, partial(self._sublayers, training=True), inputs, self.remat)
        return self._sublayers(*inputs, training=training)

    def _sublayers(
        self,
        x_BLD: Tensor,
        bias_BHLL: Tensor,
        encoded_BMD: Tensor | None,
        encoded_bias_BHLM: Tensor | None,
        angles: Rotation | None,
        *,
        training: bool,
    ) -> Tensor:
        """Return the residual stream after all sub-layers, see `call`."""
        x_BLD = self.self_attention_sublayer(
            x_BLD,
            lambda x_BLD: self.self_attention(x_BLD, bias_BHLL, angles=angles, training=training),
            training=training,
        )
        if self.has_cross_attention:
            x_BLD = self.cross_attention_sublayer(
                x_BLD,
                lambda x_BLD: self.cross_attention(
                    x_BLD, encoded_bias_BHLM, encoded_BMD, training=training
                ),
                training=training,
            )
        return self.feed_forward_sublayer(x_BLD, training=training)

    def self_attention_sublayer(
        self, x_BLD: Tensor, attend: Layer, training: bool = False
    ) -> Tensor:
        """Return the residual stream after self-attention.

        Args:
            x_BLD: residual stream.
            attend: self-attention, in decoding with its caches; takes and returns an array of the
                shape of `x_BLD`.
            training: apply dropout.
        """
        norm, dropout = self.self_attention_norm, self.self_attention_dropout
        return self._residual(x_BLD, norm, attend, dropout, training)

    def cross_attention_sublayer(
        self, x_BLD: Tensor, attend: Layer, training: bool = False
    ) -> Tensor:
        """Return the residual stream after cross-attention, see `self_attention_sublayer`."""
        norm, dropout = self.cross_attention_norm, self.cross_attention_dropout
        return self._residual(x_BLD, norm, attend, dropout, training)

    def feed_forward_sublayer(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the residual stream after the feed-forward sub-layer and the adapter."""
        x_BLD = self._residual(
            x_BLD,
            self.feed_forward_norm,
            lambda x_BLD: self.feed_forward(x_BLD, training=training),
            self.feed_forward_dropout,
            training,
        )
        return x_BLD if self.adapter is None else self.adapter(x_BLD, training=training)

    def _residual(
        self, x_BLD: Tensor, norm: RMSNorm, layer: Layer, dropout: Dropout, training: bool
    ) -> Tensor:
        """Return the residual stream after a sub-layer."""
        if self._shape.norm_placement == "post":
            return norm(x_BLD + dropout(layer(x_BLD), training=training))
        return x_BLD + dropout(layer(norm(x_BLD)), training=training)
