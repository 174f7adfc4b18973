"""A block of a stack: its sub-layers and their residuals (paper section 2.1).

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, H heads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.model.adapters import Adapter
from t5repro.model.attention import Attention, RelativeBias
from t5repro.model.layers import Dropout, FeedForward, RMSNorm, SeededLayer, Tensor
from t5repro.model.rotary import Rotation


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

    Each sub-layer is ``x + dropout(sub(norm(x)))``.

    Args:
        model: shape of the network.
        is_decoder: whether it is a block of the decoder.
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
        is_decoder: bool,
        dropout_rate: float,
        adapter_width: int = 0,
        shared_with: "Block | None" = None,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        has_cross_attention = is_decoder and not model.decoder_only
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
        self.relative_bias: RelativeBias | None = None
        if model.relative_position_bias == "per_layer":
            shared_bias = shared_with.relative_bias if shared_with else None
            self.relative_bias = relative_bias_layer(
                model, is_decoder, shared_bias, **self.inner("relative_bias")
            )
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
        turn: Rotation | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the residual stream after the block, (batch, length, features)."""
        attended_BLD = self.self_attention(
            self.self_attention_norm(x_BLD), bias_BHLL, turn=turn, training=training
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
