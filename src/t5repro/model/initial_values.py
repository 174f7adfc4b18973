"""Initial values of weights, as functions of the run's seed and the weight's path.

Constants are from the released code.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.engines.mesh import shared_array
from t5repro.randomness import stream

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

TRUNCATION = 2.0  # standard deviations; values beyond are drawn again, without re-scaling


class Initial(keras.initializers.Initializer):
    """Initial values as a function of the run's seed and the weight's path.

    NumPy draws them, so a CPU, a GPU and a TPU start from the same weights.

    Args:
        draw: takes a generator and a shape, returns float64 or float32 values.
        seed: the run's seed.
        name: path of the weight in the model.
    """

    def __init__(self, draw: Draw, seed: int, name: str) -> None:
        self._draw = draw
        self._seed = seed
        self._name = name

    def __call__(self, shape: tuple[int, ...], dtype: str | None = None, layout: Any = None) -> Any:
        """Return the values.

        Args:
            shape: of the weight.
            dtype: of the values.
            layout: how devices share the weight, under JAX; if absent, they do not.
        """
        values = self._draw(stream(self._seed, "weights", self._name), tuple(shape))
        values = values.astype("float32", copy=False)
        if layout is not None:
            return shared_array(values.astype(dtype, copy=False), layout)
        return ops.convert_to_tensor(values, dtype=dtype)


def normal(deviation: float) -> Draw:
    """Draw from N(0, deviation^2)."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation)

    return draw


def truncated_normal(deviation: float) -> Draw:
    """Draw from N(0, deviation^2), again for values beyond `TRUNCATION` deviations.

    The loss of variance by truncation is not corrected, as in TensorFlow's ``truncated_normal``,
    which the released code calls.
    """

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = generator.standard_normal(shape, dtype=np.float32).reshape(-1)
        outside = np.flatnonzero(np.abs(values) > TRUNCATION)
        while outside.size:
            values[outside] = generator.standard_normal(outside.size, dtype=np.float32)
            # Only values still outside are drawn again.
            outside = outside[np.abs(values[outside]) > TRUNCATION]
        return values.reshape(shape) * np.float32(deviation)

    return draw


def glorot_uniform() -> Draw:
    """Draw uniformly within sqrt(6 / (rows + columns)), TensorFlow's default for a matrix."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        limit = np.float32(np.sqrt(6.0 / sum(shape)))
        return (generator.random(shape, dtype=np.float32) * 2 - 1) * limit

    return draw


def he_uniform() -> Draw:
    """Draw uniformly within sqrt(6 / rows), Keras's default for the first matrix of LoRA."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        limit = np.float32(np.sqrt(6.0 / shape[0]))
        return (generator.random(shape, dtype=np.float32) * 2 - 1) * limit

    return draw


def ones() -> Draw:
    """Return ones."""
    return lambda _, shape: np.ones(shape, np.float32)


def zeros() -> Draw:
    """Return zeros."""
    return lambda _, shape: np.zeros(shape, np.float32)


def initial_matrix(model: ModelSettings, t5_draw: Draw) -> Draw:
    """Return the initial values of a matrix or an embedding.

    Args:
        model: shape of the network.
        t5_draw: the values that T5's released code draws for this weight.
    """
    deviation = model.initializer_range
    draws = {
        "t5": t5_draw,
        "normal": normal(deviation),
        "truncated_normal": truncated_normal(deviation),
    }
    return draws[model.initializer]
