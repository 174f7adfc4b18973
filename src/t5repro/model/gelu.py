"""GELU, by the error function and by the tangent, from operations with fixed bits (D-043).

TensorFlow's own kernel of the error function differs between makers of CPUs. Both gradients are
written out: automatic differentiation would derive each step, in twice the passes.

Source: Hendrycks and Gimpel, 2016, "Gaussian Error Linear Units". The error function is formula
7.1.26 of Abramowitz and Stegun, "Handbook of Mathematical Functions", with an error below 1.5e-7;
its constants are from Hastings, "Approximations for Digital Computers", 1955.
"""

import math
from collections.abc import Callable
from typing import Any

from keras import ops
from keras.config import floatx

Tensor = Any  # Keras has no one tensor type

P = 0.3275911
CUBIC = 0.044715  # of the approximation with tanh
COEFFICIENTS = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def gelu(x: Tensor) -> Tensor:
    """Return x times the probability that a standard normal value is below x.

    Args:
        x: any shape and precision; computed as float32.

    Returns:
        An array of the shape and precision of `x`, with an absolute error below 2e-7 * (1 + |x|).
    """
    return ops.cast(ops.custom_gradient(_gelu_and_gradient)(ops.cast(x, floatx())), x.dtype)


def _gelu_and_gradient(x: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
    """Return the function and its gradient, Phi(x) + x * phi(x)."""
    distance = ops.maximum(x, -x)
    decay = ops.exp(-0.5 * ops.square(x))
    # A quotient of 1, which Grappler would turn into an approximate reciprocal, is avoided.
    t = 2.0 / (2.0 + (2.0 * P * math.sqrt(0.5)) * distance)
    polynomial = 0.5 * COEFFICIENTS[-1]
    for coefficient in reversed(COEFFICIENTS[:-1]):
        polynomial = polynomial * t + 0.5 * coefficient
    tail = polynomial * t * decay  # the probability beyond the distance

    def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> Tensor:
        (upstream,) = arguments if upstream is None else (upstream,)
        below = ops.where(x < 0, tail, 1.0 - tail)
        return upstream * (below + x * (decay * (1.0 / math.sqrt(2.0 * math.pi))))

    return ops.relu(x) - distance * tail, gradient


def gelu_tanh(x: Tensor) -> Tensor:
    """Return the approximation of GELU that GPT, ALBERT and XLNet use, with ``tanh``.

    Args:
        x: any shape and precision; computed in it.

    Source: Hendrycks and Gimpel, 2016, section 2.
    """
    return ops.custom_gradient(_gelu_tanh_and_gradient)(x)


def _gelu_tanh_and_gradient(x: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
    scale = math.sqrt(2.0 / math.pi)
    square = x * x
    tangent = ops.tanh(scale * (x + CUBIC * (x * square)))
    share = 0.5 * (1.0 + tangent)
    value = x * share

    def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> Tensor:
        (upstream,) = arguments if upstream is None else (upstream,)
        # The slope of `share` is share * (1 - tangent) times the slope of the tangent's argument.
        slope = (1.0 - tangent) * (scale + (3.0 * scale * CUBIC) * square)
        return upstream * (share + value * slope)

    return value, gradient
