"""The Adafactor of the released T5, and the learning rates (paper section 3.1.2).

It differs from `keras.optimizers.Adafactor`, which keeps a full-size slot for every weight,
factors small matrices and caps the learning rate.

Source: mesh ``optimize.AdafactorOptimizer``, without momentum; Shazeer and Stern, 2018.
"""

import math
import string
from typing import Any

import keras
import numpy as np
from keras import ops

from t5repro.config.sections.training import LearningRate
from t5repro.model.layers import Tensor, inverse_root

FACTORED_FROM = 128  # a weight is factored when its two largest dimensions reach this
DECAY_EXPONENT = 0.8
SQUARE_FLOOR = 1e-30  # added to squared gradients
SCALE_FLOOR = 1e-3  # least root mean square that a weight's step is scaled by
CLIP = 1.0  # root mean square that an update may have before the learning rate


class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """factor / sqrt(max(step, warmup)), without the ramp-down that mesh has by default."""

    def __init__(self, factor: float, warmup_steps: int) -> None:
        self.factor = factor
        self.warmup_steps = warmup_steps

    def __call__(self, step: Tensor) -> Tensor:
        """Return the rate of the update after `step` updates."""
        longest = ops.maximum(ops.cast(step, "float32"), float(self.warmup_steps))
        return self.factor * inverse_root(longest)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments."""
        return {"factor": self.factor, "warmup_steps": self.warmup_steps}


class Constant(keras.optimizers.schedules.LearningRateSchedule):
    """The same rate at every step."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, step: Tensor) -> Tensor:
        """Return the rate."""
        return ops.convert_to_tensor(self.factor, dtype="float32")

    def get_config(self) -> dict[str, Any]:
        """Return the argument."""
        return {"factor": self.factor}


class Cosine(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warm-up from half of the factor, then half a cosine down to a final rate.

    The rates are a table: cosines have other bits on other CPUs, and its float32 values have not.

    Args:
        factor: rate after the warm-up.
        final_factor: rate after the last step.
        warmup_steps: updates until the rate is `factor`.
        steps: updates of the stage.
        offset: updates before the stage.

    Source: nanoT5 ``get_lr_scheduler`` (PyTorch's ``LinearLR``, then ``CosineAnnealingLR``).
    """

    def __init__(
        self, factor: float, final_factor: float, warmup_steps: int, steps: int, offset: int = 0
    ) -> None:
        self._arguments = {
            "factor": factor,
            "final_factor": final_factor,
            "warmup_steps": warmup_steps,
            "steps": steps,
            "offset": offset,
        }
        self.offset = offset
        rising = [factor * (0.5 + 0.5 * step / warmup_steps) for step in range(warmup_steps)]
        falling = steps - warmup_steps
        amplitude = (factor - final_factor) / 2
        self._rates = np.array(
            [
                *rising,
                *(
                    final_factor + amplitude * (1 + math.cos(math.pi * step / falling))
                    for step in range(falling)
                ),
            ],
            np.float32,
        )

    def __call__(self, step: Tensor) -> Tensor:
        """Return the rate of the update after `step` updates."""
        number = ops.cast(step, "int32") - self.offset
        return ops.take(self._rates, ops.clip(number, 0, len(self._rates) - 1))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments."""
        return dict(self._arguments)


def schedule(
    settings: LearningRate, *, steps: int = 1, offset: int = 0
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Return the learning rate that the settings describe.

    Args:
        settings: of the learning rate.
        steps: updates of the stage, for the end of a cosine.
        offset: updates before the stage; a cosine begins after them, the other schedules count
            them, as the released code does.
    """
    if settings.schedule == "cosine":
        return Cosine(settings.factor, settings.final_factor, settings.warmup_steps, steps, offset)
    if settings.schedule == "constant":
        return Constant(settings.factor)
    return InverseSquareRoot(settings.factor, settings.warmup_steps)


class Adafactor(keras.optimizers.Optimizer):
    """Adaptive steps from second moments kept as row and column means.

    Args:
        learning_rate: rate as a function of the step.

    Attributes:
        starts: path of a weight -> count of updates from which on the weight and its slots are
            updated; weights without an entry are always updated. Set it before the first update.

    The step counter is global: fine-tuning continues the count of pre-training, and the decay of
    the second moments is 1 - (step + 1)^-0.8.
    """

    def __init__(self, learning_rate: Any) -> None:
        super().__init__(learning_rate=learning_rate, name="adafactor")
        self.starts: dict[str, int] = {}

    def build(self, variables: list[Any]) -> None:
        """Create the slots: two vectors for a factored weight, else one array of its shape."""
        if self.built:
            return
        super().build(variables)
        self._paths = [path_of(variable) for variable in variables]
        self._slots = [self._make_slots(variable) for variable in variables]

    def _make_slots(self, variable: Any) -> tuple[Any, ...]:
        axes = factored_axes(tuple(variable.shape))
        path = path_of(variable)
        if axes is None:
            return (self._slot(f"{path}/moment", variable, tuple(variable.shape)),)
        return tuple(
            self._slot(f"{path}/{name}", variable, _without(variable.shape, axis))
            for name, axis in zip(("row_moment", "column_moment"), reversed(axes), strict=True)
        )

    def _slot(self, name: str, variable: Any, shape: tuple[int, ...]) -> Any:
        return self.add_variable(shape=shape, dtype="float32", name=name.replace("/", "."))

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Update one weight and its slots."""
        gradient = ops.cast(dense(gradient), "float32")
        step = ops.cast(self.iterations + 1, "float32")
        decay = 1.0 - ops.power(step, -DECAY_EXPONENT)
        index = self._get_variable_index(variable)
        slots, start = self._slots[index], self.starts.get(self._paths[index], 0)
        # Without a start the graph is as if gradual unfreezing did not exist.
        awake = ops.greater_equal(self.iterations, start) if start else None
        square = ops.square(gradient)
        axes = factored_axes(tuple(variable.shape))
        if axes is None:
            (moment,) = self._update_slots(slots, (square + SQUARE_FLOOR,), decay, awake)
            factors = [inverse_root(moment)]
            mean_square = ops.mean(square / moment)
        else:
            means = tuple(ops.mean(square, axis=axis) + SQUARE_FLOOR for axis in reversed(axes))
            row, column = self._update_slots(slots, means, decay, awake)
            row = row / ops.mean(row, axis=axes[0], keepdims=True)
            by_row, by_column = inverse_root(row), inverse_root(column)
            factors = [ops.expand_dims(by_row, axes[1]), ops.expand_dims(by_column, axes[0])]
            mean_square = mean_of_product(square, ops.square(by_row), ops.square(by_column), axes)
        clipped = ops.maximum(1.0, ops.sqrt(mean_square) / CLIP)
        scale = ops.maximum(root_mean_square(ops.convert_to_tensor(variable)), SCALE_FLOOR)
        # Numbers join the smaller array first: a pass over the weight's size costs as much as its
        # share of the step.
        update = gradient * (factors[0] * (learning_rate * scale / clipped))
        for factor in factors[1:]:
            update = update * factor
        if awake is not None:
            update = ops.where(awake, update, 0.0)
        self.assign_sub(variable, update)

    def _update_slots(
        self,
        slots: tuple[Any, ...],
        values: tuple[Tensor, ...],
        decay: Tensor,
        awake: Tensor | None,
    ) -> list[Tensor]:
        """Move each slot towards its value if the weight is awake; return the new moments."""
        moments = []
        for slot, value in zip(slots, values, strict=True):
            moment = ops.convert_to_tensor(slot) * decay + value * (1.0 - decay)
            self.assign(slot, moment if awake is None else ops.where(awake, moment, slot))
            moments.append(moment)
        return moments


def dense(gradient: Any) -> Tensor:
    """Return a gradient as an array of the weight's shape.

    TensorFlow's gradient of an embedding that is only read, as in T5 1.1, is a list of rows. Keras
    would square each occurrence of a row instead of their sum.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.convert_to_tensor(gradient)
    return ops.convert_to_tensor(gradient)


def path_of(variable: Any) -> str:
    """Return a weight's path in the model, without the model's name."""
    return str(variable.path).partition("/")[2]


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
    by_row = ops.einsum(f"{indices},{without_first}->{without_second}", x, column)
    return ops.sum(by_row * row) / math.prod(x.shape)


def root_mean_square(x: Tensor) -> Tensor:
    """Return the root of the mean of the squares."""
    return ops.sqrt(ops.mean(ops.square(x)))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(size for number, size in enumerate(shape) if number != axis)
