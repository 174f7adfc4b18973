"""The Adafactor of the released T5 (paper section 3.1.2).

It differs from `keras.optimizers.Adafactor`, which keeps a full-size slot for every weight,
factors small matrices and caps the learning rate.

Source: mesh ``optimize.AdafactorOptimizer``, without momentum; Shazeer and Stern, 2018.
"""

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.model.layers import Tensor, inverse_root
from t5repro.train.optimizer import SCALE_FLOOR, Optimizer, root_mean_square

FACTORED_FROM = 128  # a weight is factored when its two largest dimensions reach this
DECAY_EXPONENT = 0.8
SQUARE_FLOOR = 1e-30  # added to squared gradients
CLIP = 1.0  # root mean square that an update may have before the learning rate


class Adafactor(Optimizer):
    """Adaptive steps from second moments kept as row and column means.

    The slots of a factored weight are two vectors, of others an array of the weight's shape. The
    step counter is global: fine-tuning continues the count of pre-training, and the decay of the
    second moments is 1 - (step + 1)^-0.8.

    Args:
        learning_rate: rate as a function of the step.
        options: see `Optimizer`.
    """

    def __init__(self, learning_rate: Any, **options: Any) -> None:
        super().__init__(learning_rate, name="adafactor", **options)

    def slot_shapes(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Return the names and shapes of the slots of a weight of a shape."""
        axes = factored_axes(shape)
        if axes is None:
            return {"moment": shape}
        return {"row_moment": _without(shape, axes[1]), "column_moment": _without(shape, axes[0])}

    def slot_axes(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes of a weight that a slot has; a moment of rows lacks the columns'."""
        every = super().slot_axes(name, shape)
        axes = factored_axes(shape)
        if axes is None:
            return every
        return _without(every, axes[1 if name == "row_moment" else 0])

    def change(
        self, gradient: Tensor, weight: Tensor, slots: Sequence[Tensor], learning_rate: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the update, which is subtracted from a weight, and the new values of its slots."""
        step = ops.cast(self.iterations + 1, floatx())
        decay = 1.0 - ops.power(step, -DECAY_EXPONENT)
        # 1. New moments: of every number, or of rows and columns only.
        square = ops.square(gradient)
        axes = factored_axes(tuple(gradient.shape))
        if axes is None:
            values = [square + SQUARE_FLOOR]
        else:
            values = [ops.mean(square, axis=axis) + SQUARE_FLOOR for axis in reversed(axes)]
        moments = [
            slot * decay + value * (1.0 - decay) for slot, value in zip(slots, values, strict=True)
        ]
        # 2. Factors that divide the gradient by the root of its second moment, and the mean square
        #    of the result, without an array of it.
        if axes is None:
            factors = [inverse_root(moments[0])]
            mean_square = ops.mean(square / moments[0])
        else:
            row, column = moments
            # The moment of a number is row * column / mean(row), as in the released code.
            row = row / ops.mean(row, axis=axes[0], keepdims=True)
            row_factor, column_factor = inverse_root(row), inverse_root(column)
            factors = [
                ops.expand_dims(row_factor, axes[1]),
                ops.expand_dims(column_factor, axes[0]),
            ]
            mean_square = mean_of_product(
                square, ops.square(row_factor), ops.square(column_factor), axes
            )
        # 3. Update clipping, and a step relative to the size of the weight.
        clipped = ops.maximum(1.0, ops.sqrt(mean_square) / CLIP)
        scale = ops.maximum(root_mean_square(weight), SCALE_FLOOR)
        # Numbers join the smaller array first: a pass over the weight's size costs as much as its
        # share of the step.
        update = gradient * (factors[0] * (learning_rate * scale / clipped))
        for factor in factors[1:]:
            update = update * factor
        return update, moments


def factored_axes(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the axes of the two largest dimensions if both reach `FACTORED_FROM`, in order."""
    largest = sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2]
    if len(largest) < 2 or shape[largest[1]] < FACTORED_FROM:
        return None
    return min(largest), max(largest)


def mean_of_product(x: Tensor, row: Tensor, column: Tensor, axes: tuple[int, int]) -> Tensor:
    """Return the mean of ``x * row * column`` without making an array of its size.

    Args:
        x: any shape.
        row: of the shape of `x` without the second of the axes.
        column: of the shape of `x` without the first of the axes.
        axes: two axes of `x`.
    """
    indices = string.ascii_lowercase[: len(x.shape)]
    without_first, without_second = (indices.replace(indices[axis], "") for axis in axes)
    row_sums = ops.einsum(f"{indices},{without_first}->{without_second}", x, column)
    return ops.sum(row_sums * row) / math.prod(x.shape)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(size for number, size in enumerate(shape) if number != axis)
