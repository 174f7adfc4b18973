"""Attention as one kernel of the GPU, which never writes its weights to memory (JAX only).

In T5-base a row of 512 positions has eight times as many attention weights as features: written
and read again, forward and backward, they limit a training step. The kernel, cuDNN's, computes them
block by block. It takes a position bias and the lengths of rows, and no mask: a row has one
example, from its first position.

Shape suffixes: B rows of the batch, L query positions, M key positions, D features of the
residual stream, H heads, K features of a head.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import SettingsError
from t5repro.model.attention import Attention
from t5repro.model.layers import Tensor
from t5repro.model.rotary import Rotation


class RowBias(NamedTuple):
    """What decides which keys a query sees, without an array of all rows, queries and keys.

    Attributes:
        positions_1HLM: float32 position bias, or an order of positions, the same for all rows;
            absent between encoder and decoder.
        queries_B: positions with an id in each row, int32.
        keys_B: the same of the keys' rows.
    """

    positions_1HLM: Tensor | None
    queries_B: Tensor
    keys_B: Tensor


def row_bias(positions_HLM: Tensor | None, segments_BL: Tensor, key_segments_BM: Tensor) -> RowBias:
    """Return the bias of rows of one example.

    Args:
        positions_HLM: bias of all pairs of positions; if absent, 0.
        segments_BL: 1 at positions with an id, then 0; of the queries.
        key_segments_BM: the same of the keys.
    """
    lengths = [
        ops.sum(ops.cast(segments > 0, "int32"), axis=-1)
        for segments in (segments_BL, key_segments_BM)
    ]
    return RowBias(None if positions_HLM is None else positions_HLM[None], *lengths)


class FusedAttention(Attention):
    """Attention with the weights, the loss and the gradients of `Attention`, up to rounding.

    Its output at positions of padding is 0, where `Attention` averages over padding: no other
    position reads them.

    Args:
        model: shape of the network.
        layer: see `Attention`.

    Raises:
        SettingsError: Keras's backend is not JAX, or the network has what the kernel has not:
            rotary positions, or dropout of single attention weights.
    """

    def __init__(self, model: ModelSettings, **layer: Any) -> None:
        super().__init__(model, **layer)
        if model.positions == "rotary" or model.dropout_noise == "per_position":
            raise SettingsError(
                "fused attention is for T5's positions and dropout; the network has "
                f"model.positions {model.positions!r} and model.dropout_noise "
                f"{model.dropout_noise!r}: use plain attention"
            )
        backend = keras.backend.backend()
        if backend != "jax":
            raise SettingsError(f"fused attention needs Keras's backend jax; it is {backend!r}")

    def call(
        self,
        x_BLD: Tensor,
        bias: RowBias,
        encoded_BMD: Tensor | None = None,
        angles: Rotation | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the output of each position, see `Attention.call`."""
        import jax

        keys_from = x_BLD if encoded_BMD is None else encoded_BMD
        positions_1HLM, queries_B, keys_B = bias
        # Products of their own: parts of one product would be copied for the kernel.
        q_BLHK, k_BMHK, v_BMHK = (
            self._by_position(array, name)
            for array, name in ((x_BLD, "q"), (keys_from, "k"), (keys_from, "v"))
        )
        read_BLHK = jax.nn.dot_product_attention(
            self._scaled(q_BLHK),
            k_BMHK,
            self._drop_keys(v_BMHK, training=training),
            bias=None if positions_1HLM is None else ops.cast(positions_1HLM, q_BLHK.dtype),
            scale=1.0,
            query_seq_lengths=queries_B,
            key_value_seq_lengths=keys_B,
            implementation="cudnn" if jax.default_backend() == "gpu" else "xla",
        )
        return self.product(ops.reshape(read_BLHK, (*x_BLD.shape[:2], -1)), "o")

    def _by_position(self, x_BLD: Tensor, name: str) -> Tensor:
        """Project with one matrix, (batch, positions, heads, d_kv): no axis changes its place."""
        batch, length = x_BLD.shape[:2]
        return ops.reshape(self.product(x_BLD, name), (batch, length, self.num_heads, self.d_kv))

    def _drop_keys(self, v_BMHK: Tensor, *, training: bool) -> Tensor:
        """Apply the dropout of attention weights to the values.

        T5's noise is the same for all queries of a row: a dropped weight is a dropped value.
        """
        if not training or self.dropout.rate == 0:
            return v_BMHK
        ones_BH1M = ops.ones(
            (v_BMHK.shape[0], self.num_heads, 1, v_BMHK.shape[1]), dtype=v_BMHK.dtype
        )
        noise_BH1M = self.dropout(ones_BH1M, training=True)
        return v_BMHK * ops.transpose(noise_BH1M, (0, 3, 1, 2))
