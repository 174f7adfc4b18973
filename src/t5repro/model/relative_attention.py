"""Attention with learned keys of distances, and scores of equal and different types (XLNet).

The score of a query and a key is the sum of three products: with the content of the key, with a
projection of the sinusoids of their distance, and with a vector for tokens of the same or of
another type. Each product adds a bias of its own to the query.

Source: Dai et al., 2019, section 3.3; XLNet ``rel_attn_core`` and ``relative_positional_encoding``.

Shape suffixes: B rows of the batch, L queries, M keys, P distances, R directions of reading, D
features of the residual stream, H heads, K features of a head.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.attention import Attention
from t5repro.model.gradient_order import for_each_reader
from t5repro.model.initial_values import initial_matrix, normal
from t5repro.model.layers import Tensor


class Relations(NamedTuple):
    """What some queries know of all keys, the same in every block.

    Attributes:
        mask: float32 0 where a query may see a key, else `BLOCKED`, (batch, 1, queries, keys).
        differs: 1 where query and key have different types, else 0, (batch, 1, queries, keys).
        shifts: column of the scores of distances that belongs to the first key, int32 (batch,
            queries); absent if all positions are queries, in their order.
    """

    mask: Tensor
    differs: Tensor
    shifts: Tensor | None = None


def sinusoids(distances: np.ndarray, features: int) -> np.ndarray:
    """Return the sines and then the cosines of distances, float32 (distances, features).

    Args:
        distances: query position minus key position; tokens.
        features: an even number.
    """
    frequencies = 10_000.0 ** (-np.arange(0, features, 2) / features)
    angles = distances[:, np.newaxis] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def distance_rows(queries: int, keys: int, features: int, *, both_directions: bool) -> np.ndarray:
    """Return the sinusoids of all distances, (directions, queries + keys, features).

    Distances fall from `keys` to ``1 - queries``. A row that is read backwards has them negated.

    Args:
        queries: positions of a row.
        keys: the same and the memory before them.
        features: of the residual stream.
        both_directions: whether every second row is read backwards.
    """
    distances = np.arange(keys, -queries, -1)
    signs = (1, -1) if both_directions else (1,)
    return np.stack([sinusoids(sign * distances, features) for sign in signs])


def shifted(scores_BHLP: Tensor, keys: int) -> Tensor:
    """Return the scores of distances by keys, (batch, heads, queries, keys).

    Query i finds key j in column L - i + j. Reading the array with rows that are one shorter moves
    each row by one column more than the row before it.
    """
    batch, heads, length, distances = ops.shape(scores_BHLP)
    flat = ops.reshape(scores_BHLP, (batch, heads, length * distances))
    # Not by Python's brackets: TensorFlow adds up their gradients ten times slower.
    flat = ops.slice(flat, (0, 0, length), (batch, heads, length * (distances - 1)))
    rows = ops.reshape(flat, (batch, heads, length, distances - 1))
    return ops.slice(rows, (0, 0, 0, 0), (batch, heads, length, keys))


def shifted_each(scores_BHLP: Tensor, shifts_BL: Tensor, keys: int) -> Tensor:
    """Return the scores of distances by keys, of queries that are at any positions.

    The gradient is the shift back. A gather's gradient adds, in an order that a device chooses.

    Args:
        scores_BHLP: scores of distances.
        shifts_BL: column that becomes the first, int32.
        keys: columns of the result.
    """
    distances = scores_BHLP.shape[-1]

    def shift(scores_BHLP: Tensor, shifts_BL: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        first_B1L1 = shifts_BL[:, None, :, None]

        def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> tuple[Tensor, None]:
            (upstream,) = arguments if upstream is None else (upstream,)
            return _columns(upstream, ops.arange(distances, dtype="int32") - first_B1L1), None

        return _columns(scores_BHLP, ops.arange(keys, dtype="int32") + first_B1L1), gradient

    return ops.custom_gradient(shift)(scores_BHLP, shifts_BL)


def _columns(scores_BHLP: Tensor, columns_B1LM: Tensor) -> Tensor:
    """Return some columns of each row of scores, 0 in place of a column that does not exist."""
    last = scores_BHLP.shape[-1] - 1
    existing = ops.clip(columns_B1LM, 0, last)
    heads = (1, scores_BHLP.shape[1], 1, 1)
    found = ops.take_along_axis(scores_BHLP, ops.tile(existing, heads), axis=-1)
    return ops.where(columns_B1LM == existing, found, 0.0)


class RelativeAttention(Attention):
    """Multi-head attention to contents, distances and types; its matrices have no biases.

    Weights beyond `Attention`: the matrix `r` of distances, `content_bias`,
    `distance_bias` and `type_bias` of (heads, d_kv), which are added to the queries, and
    `type_table` of (2, heads, d_kv): for a key of the same type and of another.

    Args:
        model: shape of the network.
        dropout_rate: share of attention weights dropped in training.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, model: ModelSettings, *, dropout_rate: float, **layer: Any) -> None:
        without_biases = model.model_copy(update={"biases": False})
        super().__init__(without_biases, dropout_rate=dropout_rate, **layer)

    def build(self, input_shape: Any = None) -> None:
        """Create the matrices, biases and the table of types."""
        super().build(input_shape)
        d_model, heads = self.model.d_model, (self.num_heads, self.d_kv)
        self.add_matrix("r", (d_model, heads[0] * heads[1]), normal(d_model**-0.5))
        draw = initial_matrix(self.model, normal(1.0))
        self.content_bias = self.weight("content_bias", heads, draw)
        self.distance_bias = self.weight("distance_bias", heads, draw)
        self.type_bias = self.weight("type_bias", heads, draw)
        self.type_table = self.weight("type_table", (2, *heads), draw)

    def distance_keys(self, distances_RPD: Tensor) -> Tensor:
        """Return the keys of distances, (directions, heads, distances, d_kv)."""
        return self._heads(distances_RPD, "r")[0]

    def relate(
        self,
        x_BLD: Tensor,
        keys_values: list[Tensor],
        distances_RHPK: Tensor,
        relations: Relations,
        training: bool = False,
    ) -> Tensor:
        """Return the output of some queries, (batch, queries, features).

        Args:
            x_BLD: input of the queries.
            keys_values: keys and values, see `keys_and_values`.
            distances_RHPK: see `distance_keys`; row b of the batch is read in direction b mod R.
            relations: of the queries and the keys.
            training: apply dropout to the weights.
        """
        of_contents, of_distances, of_types = for_each_reader(self.queries(x_BLD), 3)
        k_BHMK, v_BHMK = keys_values
        contents = ops.matmul(
            self._biased(of_contents, self.content_bias), ops.transpose(k_BHMK, (0, 1, 3, 2))
        )
        distances = self._distance_scores(of_distances, distances_RHPK, relations, k_BHMK.shape[2])
        logits = contents + distances + self._type_scores(of_types, relations.differs)
        # float32 under every precision: bfloat16 cannot represent `BLOCKED` plus a logit.
        weights = ops.softmax(ops.cast(logits, floatx()) + relations.mask, axis=-1)
        weights = self.dropout(ops.cast(weights, self.compute_dtype), training=training)
        read_BLHK = ops.transpose(ops.matmul(weights, v_BHMK), (0, 2, 1, 3))
        batch, length = ops.shape(read_BLHK)[:2]
        return self.product(ops.reshape(read_BLHK, (batch, length, -1)), "o")

    def _biased(self, q_BHLK: Tensor, bias_HK: Tensor) -> Tensor:
        """Return queries with a bias, scaled so that their products with keys are logits."""
        return self._scaled(q_BHLK + ops.cast(bias_HK, q_BHLK.dtype)[:, None])

    def _distance_scores(
        self, q_BHLK: Tensor, distances_RHPK: Tensor, relations: Relations, keys: int
    ) -> Tensor:
        """Return the scores of the distances from queries to keys."""
        q_BHLK = self._biased(q_BHLK, self.distance_bias)
        rows, heads, length, width = ops.shape(q_BHLK)
        directions = distances_RHPK.shape[0]
        # Directions alternate from row to row, so that every part of a batch has both.
        split = ops.reshape(q_BHLK, (rows // directions, directions, heads, length, width))
        scores = ops.matmul(split, ops.transpose(distances_RHPK, (0, 1, 3, 2)))
        scores_BHLP = ops.reshape(scores, (rows, heads, length, -1))
        if relations.shifts is None:
            return shifted(scores_BHLP, keys)
        return shifted_each(scores_BHLP, relations.shifts, keys)

    def _type_scores(self, q_BHLK: Tensor, differs_B1LM: Tensor) -> Tensor:
        """Return the scores of types, 0 for keys of the same type.

        The product with the same type is one number for all keys of a query: softmax removes it.
        """
        q_BHLK = self._biased(q_BHLK, self.type_bias)
        same_HK, other_HK = ops.unstack(ops.cast(self.type_table, q_BHLK.dtype))
        # A sum, not a product with one column: oneDNN would divide it by the cache (D-043).
        more_BHL1 = ops.sum(q_BHLK * (other_HK - same_HK)[:, None], axis=-1, keepdims=True)
        return more_BHL1 * ops.cast(differs_B1LM, q_BHLK.dtype)
