"""Attention, relative-position bias and the masks that keep packed examples apart.

Paper section 2.1 (positions) and 3.2.1 (masks). T5 does not divide logits by the square root of
the head's width: the initial values of the queries carry that factor.

Shape suffixes: B rows of the batch, L query positions, M key positions, D features of the
residual stream, H heads, K features of a head.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.engines.mesh import weight_shares
from t5repro.model.initial_values import glorot_uniform, normal
from t5repro.model.layers import Projections, SeededLayer, Tensor, dropout_layer
from t5repro.model.rotary import Rotation, rotate

BLOCKED = -1e9  # added to masked logits; finite, so that a row without keys is not NaN


def relative_position_bucket(
    relative_position: np.ndarray, *, bidirectional: bool, buckets: int, max_distance: int
) -> np.ndarray:
    """Return the bucket of each distance.

    Each near distance has its own bucket, farther ones share buckets that widen logarithmically
    up to `max_distance`. The arithmetic is float64: in float32 the quotient of logarithms can be
    just under a whole number, which would move a boundary by one.

    Args:
        relative_position: key position minus query position, any shape; tokens.
        bidirectional: keys to the right use half of the buckets; otherwise they share bucket 0.
        buckets: number of buckets.
        max_distance: distance from which all share the last bucket; tokens.

    Source: mesh ``_relative_position_bucket``.
    """
    # 1. Half of the buckets for each direction, or all of them for earlier keys.
    distance = -relative_position.astype(np.int64)
    offset = np.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        offset = np.where(distance < 0, buckets, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(distance, 0)
    # 2. The nearer half of these buckets has one distance each.
    exact = buckets // 2
    if exact == 0 or max_distance <= exact:
        return offset + np.minimum(distance, buckets - 1)
    # 3. The other half is spaced evenly in the logarithm of the distance up to `max_distance`.
    octaves = np.log(np.maximum(distance, 1) / exact) / math.log(max_distance / exact)
    # The nudge puts a distance that is an exact boundary (16, 32, 64 of the published sizes)
    # into the farther bucket on every machine, whatever its logarithm rounds to.
    shared_bucket = exact + np.floor(octaves * (buckets - exact) + 1e-9).astype(np.int64)
    return offset + np.where(distance < exact, distance, np.minimum(shared_bucket, buckets - 1))


class RelativeBias(SeededLayer):
    """One learned number per head and bucket of distance, for a stack or one of its blocks."""

    def __init__(
        self,
        *,
        num_heads: int,
        buckets: int,
        max_distance: int,
        bidirectional: bool,
        shared_with: "RelativeBias | None" = None,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.shared_with = shared_with
        self.num_heads = num_heads
        self.buckets = buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional

    def build(self, input_shape: Any = None) -> None:
        """Create the table, or use the one of `shared_with`."""
        self.table: Any = (
            self.shared_with.table
            if self.shared_with
            else self.weight("table", (self.num_heads, self.buckets), glorot_uniform())
        )

    def call(self, length: int) -> Tensor:
        """Return the bias of all pairs of positions, float32, shape (heads, length, length)."""
        positions = np.arange(length)
        bucket_LM = relative_position_bucket(
            positions[None, :] - positions[:, None],
            bidirectional=self.bidirectional,
            buckets=self.buckets,
            max_distance=self.max_distance,
        )
        return ops.take(self.table, bucket_LM.astype("int32"), axis=1)

    def distance_bias(self, distance: Tensor, farthest: int) -> Tensor:
        """Return the bias of keys at a distance before their query.

        Args:
            distance: int32, any shape, from 0 to `farthest`; tokens.
            farthest: the longest possible distance; tokens.

        Returns:
            float32 of (heads, *shape of `distance`).
        """
        bucket_L = relative_position_bucket(
            -np.arange(farthest + 1),
            bidirectional=self.bidirectional,
            buckets=self.buckets,
            max_distance=self.max_distance,
        )
        bias_HL = ops.take(self.table, bucket_L.astype("int32"), axis=1)
        return ops.take(bias_HL, distance, axis=1)


class NoBias:
    """Stands for `RelativeBias` in a network without position biases: zeros for all heads."""

    def __call__(self, length: int) -> np.ndarray:
        """Return float32 zeros of shape (1, length, length)."""
        return np.zeros((1, length, length), floatx())

    def distance_bias(self, distance: Tensor, farthest: int) -> Tensor:
        """Return float32 zeros of (1, *shape of `distance`)."""
        return ops.zeros_like(distance[None], dtype=floatx())


def bias_of_block(biases: Sequence[Tensor], number: int) -> Tensor:
    """Return the bias of a block; if there is only one, all blocks share it."""
    return biases[number if len(biases) > 1 else 0]


def segment_mask(query_segments_BL: Tensor, key_segments_BM: Tensor) -> Tensor:
    """Return float32 0 where a query may see a key and `BLOCKED` elsewhere.

    Shape (batch, 1, queries, keys). Positions of padding (segment 0) see only padding.
    """
    same = ops.equal(query_segments_BL[:, None, :, None], key_segments_BM[:, None, None, :])
    return ops.where(same, 0.0, BLOCKED)


def prefix_mask(prefix_BL: Tensor) -> Tensor:
    """Return float32 0 where the key is not after the query or belongs to a prefix.

    A row holds several examples: the mask of segments keeps their prefixes apart.

    Args:
        prefix_BL: 1 at positions of a prefix, else 0.

    Returns:
        (batch, 1, queries, keys).
    """
    length = prefix_BL.shape[1]
    # The prefix is a property of the key: every query of the row sees it.
    visible_BLM = ops.logical_or(causal_mask(length)[None] == 0, prefix_BL[:, None, :] > 0)
    return ops.where(visible_BLM, 0.0, BLOCKED)[:, None]


def causal_mask(length: int) -> np.ndarray:
    """Return float32 0 where the key is not after the query; shape (queries, keys)."""
    return np.triu(np.full((length, length), BLOCKED, floatx()), k=1)


class Attention(Projections):
    """Multi-head attention; T5's has no biases and does not scale its logits.

    Weights are matrices over all heads, `q`, `k`, `v` of (d_model, heads * d_kv) and `o` of the
    transposed shape, as the released code stores them: the optimizer sees matrices.

    Args:
        model: shape of the network.
        dropout_rate: share of attention weights dropped in training.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, model: ModelSettings, *, dropout_rate: float, **layer: Any) -> None:
        super().__init__(model, **layer)
        self.num_heads = model.num_heads
        self.d_kv = model.d_kv
        self.dropout = dropout_layer(model, dropout_rate, **self.inner("dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the matrices and biases."""
        d_model, inner = self.model.d_model, self.num_heads * self.d_kv
        # Logits of unit variance without a division: the queries carry 1 / sqrt(d_kv).
        self.add_matrix("q", (d_model, inner), normal((d_model * self.d_kv) ** -0.5))
        self.add_matrix("k", (d_model, inner), normal(d_model**-0.5))
        self.add_matrix("v", (d_model, inner), normal(d_model**-0.5))
        self.add_matrix("o", (inner, d_model), normal(inner**-0.5))

    def call(
        self,
        x_BLD: Tensor,
        bias: Tensor,
        encoded_BMD: Tensor | None = None,
        angles: Rotation | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the output of each position, (batch, queries, features).

        Args:
            x_BLD: input of the queries, (batch, queries, features).
            bias: float32, added to the logits; broadcasts to (batch, heads, queries, keys).
            encoded_BMD: input of keys and values, (batch, keys, features); if absent, `x_BLD`.
            angles: see `queries_keys_values`; for self-attention.
            training: apply dropout to the weights.
        """
        if encoded_BMD is None:
            q_BHLK, k_BHMK, v_BHMK = self.queries_keys_values(x_BLD, angles)
        else:
            q_BHLK = self.queries(x_BLD)
            k_BHMK, v_BHMK = self.keys_and_values(encoded_BMD)
        return self.read(q_BHLK, k_BHMK, v_BHMK, bias, training=training)

    def queries_keys_values(self, x_BLD: Tensor, angles: Rotation | None) -> list[Tensor]:
        """Return queries, keys and values, each of (batch, heads, positions, d_kv).

        Args:
            x_BLD: input, (batch, positions, features).
            angles: angles of the positions, which turn queries and keys; absent without rotary
                position embeddings.
        """
        queries, keys, values = self._heads(x_BLD, "q", "k", "v")
        return [rotate(queries, angles), rotate(keys, angles), values]

    def queries(self, x_BLD: Tensor) -> Tensor:
        """Return queries of (batch, heads, positions, d_kv)."""
        return self._heads(x_BLD, "q")[0]

    def keys_and_values(self, encoded_BMD: Tensor) -> list[Tensor]:
        """Return keys and values, each of (batch, heads, keys, d_kv)."""
        return self._heads(encoded_BMD, "k", "v")

    def _heads(self, x_BLD: Tensor, *names: str) -> list[Tensor]:
        """Project with the matrices `names` and split by matrix and head."""
        batch, length = ops.shape(x_BLD)[:2]
        if length == 1:
            # Decoding: concatenating the weights would move more numbers than the product.
            single = (batch, self.num_heads, 1, self.d_kv)
            return [ops.reshape(self.product(x_BLD, name), single) for name in names]
        if weight_shares() > 1:
            # Matrices side by side have the heads of a device in several places.
            heads = (batch, length, self.num_heads, self.d_kv)
            return [
                ops.transpose(ops.reshape(self.product(x_BLD, name), heads), (0, 2, 1, 3))
                for name in names
            ]
        shape = (batch, length, len(names), self.num_heads, self.d_kv)
        split = ops.reshape(self.product(x_BLD, *names), shape)
        # (matrix, batch, head, position, feature)
        return ops.unstack(ops.transpose(split, (2, 0, 3, 1, 4)), len(names), axis=0)

    def _scaled(self, q_BHLK: Tensor) -> Tensor:
        """Return the queries, scaled so that their products with keys are the logits."""
        if not self.model.scale_attention:
            return q_BHLK
        # With one number for all features, Grappler would fuse factor, product and mask to an
        # operation whose bits are not measured (D-043).
        return q_BHLK * ops.full((self.d_kv,), self.d_kv**-0.5, dtype=q_BHLK.dtype)

    def read(
        self, q_BHLK: Tensor, k_BHMK: Tensor, v_BHMK: Tensor, bias: Tensor, training: bool = False
    ) -> Tensor:
        """Return the weighted values after the output matrix, (batch, queries, features)."""
        logits_BHLM = ops.matmul(self._scaled(q_BHLK), ops.transpose(k_BHMK, (0, 1, 3, 2)))
        # float32 under every precision: bfloat16 cannot represent `BLOCKED` plus a logit.
        weights_BHLM = ops.softmax(ops.cast(logits_BHLM, floatx()) + bias, axis=-1)
        weights_BHLM = ops.cast(weights_BHLM, self.compute_dtype)
        weights_BHLM = self.dropout(weights_BHLM, training=training)
        read_BLHK = ops.transpose(ops.matmul(weights_BHLM, v_BHMK), (0, 2, 1, 3))
        batch, length = ops.shape(read_BLHK)[:2]
        return self.product(ops.reshape(read_BLHK, (batch, length, -1)), "o")

    def read_both(self, q_BHLK: Tensor, *sources: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the output over several arrays of keys as if they were concatenated.

        Decoding has the keys of the inputs in one array and the keys of the answer in another;
        concatenating them would copy both at every step.

        Args:
            q_BHLK: queries.
            sources: keys, values and bias of each array, as for `read`.
        """
        q_BHLK = self._scaled(q_BHLK)
        # One softmax over the logits of all sources; their weighted values then add up.
        logits = [
            ops.cast(ops.matmul(q_BHLK, ops.transpose(keys, (0, 1, 3, 2))), floatx()) + bias
            for keys, _, bias in sources
        ]
        weights = ops.cast(ops.softmax(ops.concatenate(logits, axis=-1)), self.compute_dtype)
        read_BHLK, offset = 0, 0
        for _, values, _ in sources:
            stop = offset + values.shape[2]
            read_BHLK = read_BHLK + ops.matmul(weights[..., offset:stop], values)
            offset = stop
        read_BLHK = ops.transpose(read_BHLK, (0, 2, 1, 3))
        batch, length = ops.shape(read_BLHK)[:2]
        return self.product(ops.reshape(read_BLHK, (batch, length, -1)), "o")
