"""Rotary position embeddings: queries and keys of self-attention turned by their position.

The product of a turned query and a turned key depends only on their distance, so a network with
them has no position biases.

Source: Su et al., 2021 (RoFormer); feature i is paired with feature i + d_kv / 2 as in GPT-NeoX
and LLaMA.

Shape suffixes: N positions, F pairs of features of a head.
"""

from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.model.layers import Tensor

BASE = 10_000  # the slowest pair turns by almost 1 / BASE radians per position
DIGITS = Context(prec=30)  # more than a float64 holds
SERIES_TERMS = 24  # of the exponential series: beyond, terms of an angle up to 1 round to nothing


class Rotation(NamedTuple):
    """The angles of some positions.

    Attributes:
        cos: float32, (positions, d_kv / 2), or a shape that broadcasts to (batch, heads,
            positions, d_kv / 2).
        sin: the same.
    """

    cos: Tensor
    sin: Tensor

    def select(self, positions: Tensor) -> "Rotation":
        """Return the angles of one position of each row, (rows, 1, 1, d_kv / 2).

        Args:
            positions: int32, (rows,); one row serves all.
        """
        cos, sin = (ops.take(table, positions, axis=0)[:, None, None] for table in self)
        return Rotation(cos, sin)


def rotation(length: int, d_kv: int) -> Rotation:
    """Return the angles of the positions from 0: position times ``BASE ** (-2 i / d_kv)``.

    Sines, cosines and powers of NumPy and of the C library have another last bit on other CPUs.
    Here are only float64 sums and products, which IEEE 754 fixes, and decimal arithmetic. Their
    error grows by some 1e-16 per position, far below the rounding to float32.

    Args:
        length: number of positions.
        d_kv: width of a head; features, even.
    """
    exponents = [DIGITS.divide(Decimal(-2 * pair), Decimal(d_kv)) for pair in range(d_kv // 2)]
    angle_F = np.array([float(DIGITS.power(BASE, exponent)) for exponent in exponents])
    cos_F, sin_F = _cos_sin(angle_F)
    cos_NF, sin_NF = np.ones((length, len(angle_F))), np.zeros((length, len(angle_F)))
    for position in range(1, length):  # the angle of the position before, and one more
        cos, sin = cos_NF[position - 1], sin_NF[position - 1]
        cos_NF[position] = cos * cos_F - sin * sin_F
        sin_NF[position] = sin * cos_F + cos * sin_F
    return Rotation(cos_NF.astype(floatx()), sin_NF.astype(floatx()))


def _cos_sin(angle_F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine of angles from 0 to 1 by their series."""
    cos_F, sin_F, term_F = np.zeros_like(angle_F), np.zeros_like(angle_F), np.ones_like(angle_F)
    for number in range(0, SERIES_TERMS, 2):
        cos_F = cos_F + term_F
        term_F = term_F * angle_F / (number + 1)
        sin_F = sin_F + term_F
        term_F = -term_F * angle_F / (number + 2)
    return cos_F, sin_F


def rotate(x: Tensor, angles: Rotation | None) -> Tensor:
    """Return queries or keys turned by their position.

    Args:
        x: (batch, heads, positions, d_kv).
        angles: angles of the positions; if absent, `x` is returned unchanged.
    """
    if angles is None:
        return x
    # float32 under every precision: bfloat16 cannot tell apart the slow pairs of near positions.
    *outer, features = ops.shape(x)
    halves = ops.reshape(ops.cast(x, floatx()), (*outer, 2, features // 2))
    first, second = ops.unstack(halves, 2, axis=-2)
    turned = ops.stack(
        [first * angles.cos - second * angles.sin, second * angles.cos + first * angles.sin],
        axis=-2,
    )
    return ops.cast(ops.reshape(turned, (*outer, features)), x.dtype)
