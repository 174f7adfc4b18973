"""The base of all optimizers: slots per weight, later starts, clipping of gradients."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops
from keras.config import floatx

from t5repro.engines.mesh import slot_layout
from t5repro.model.layers import Tensor

SCALE_FLOOR = 1e-3  # least root mean square that a weight's step is scaled by


class Optimizer(keras.optimizers.Optimizer):
    """An optimizer that updates each weight from its gradient and its own slots.

    Args:
        learning_rate: rate as a function of the step.
        name: of the optimizer.
        max_grad_norm: norm of all gradients together above which they are scaled down to it;
            0 means never.

    Attributes:
        starts: path of a weight -> count of updates from which on the weight and its slots are
            updated; weights without an entry are always updated. Set it before the first update.
        rate_factors: path of a weight -> factor of its learning rate; 1 without an entry.
        gradient_factors: path of a weight -> factor of its clipped gradient; 1 without an entry.
    """

    def __init__(self, learning_rate: Any, *, name: str, max_grad_norm: float = 0.0) -> None:
        super().__init__(learning_rate=learning_rate, name=name)
        self.max_grad_norm = max_grad_norm
        self.starts: dict[str, int] = {}
        self.rate_factors: dict[str, float] = {}
        self.gradient_factors: dict[str, float] = {}

    @abstractmethod
    def slot_shapes(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Return the names and shapes of the slots of a weight of a shape."""

    def slot_axes(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes of a weight that one of its slots has: all, unless it is reduced.

        Args:
            name: of the slot.
            shape: of the weight.
        """
        return tuple(range(len(shape)))

    @abstractmethod
    def change(
        self, gradient: Tensor, weight: Tensor, slots: Sequence[Tensor], learning_rate: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the update, which is subtracted from a weight, and the new values of its slots.

        Args:
            gradient: float32, of the shape of the weight.
            weight: its values.
            slots: their values, in the order of `slot_shapes`.
            learning_rate: of this update.
        """

    def build(self, variables: list[Any]) -> None:
        """Create the slots."""
        if self.built:
            return
        super().build(variables)
        self._paths = [path_of(variable) for variable in variables]
        self._slots = [
            [
                self.add_variable(
                    shape=shape,
                    dtype=floatx(),
                    name=f"{path}/{name}".replace("/", "."),
                    layout=slot_layout(variable, self.slot_axes(name, tuple(variable.shape))),
                )
                for name, shape in self.slot_shapes(tuple(variable.shape)).items()
            ]
            for path, variable in zip(self._paths, variables, strict=True)
        ]

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Update one weight and its slots."""
        index = self._get_variable_index(variable)
        path, slots = self._paths[index], self._slots[index]
        first_update = self.starts.get(path, 0)
        # Without a start the graph has no condition.
        awake = ops.greater_equal(self.iterations, first_update) if first_update else None
        gradient = ops.cast(dense(gradient), floatx())
        if path in self.gradient_factors:
            gradient = gradient * self.gradient_factors[path]
        update, moments = self.change(
            gradient,
            ops.convert_to_tensor(variable),
            [ops.convert_to_tensor(slot) for slot in slots],
            learning_rate * self.rate_factors[path] if path in self.rate_factors else learning_rate,
        )
        for slot, moment in zip(slots, moments, strict=True):
            self.assign(slot, moment if awake is None else ops.where(awake, moment, slot))
        self.assign_sub(variable, update if awake is None else ops.where(awake, update, 0.0))

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        """Add up the gradients of all replicas, and clip their sum.

        Keras clips before it adds them up: then the update would depend on the number of devices.
        """
        reduced = super()._all_reduce_sum_gradients(grads_and_vars)
        if not self.max_grad_norm:
            return reduced
        gradients, variables = zip(*reduced, strict=True)
        return list(zip(clip_by_global_norm(gradients, self.max_grad_norm), variables, strict=True))

    def _clip_gradients(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Clip gradients under JAX, where they are the whole batch's already.

        Keras calls `_all_reduce_sum_gradients` under TensorFlow only, and this one before it.
        """
        gradients = super()._clip_gradients(gradients)
        if not self.max_grad_norm or keras.backend.backend() == "tensorflow":
            return gradients
        return clip_by_global_norm(gradients, self.max_grad_norm)


def clip_by_global_norm(gradients: Sequence[Any], max_norm: float) -> list[Tensor]:
    """Scale gradients down so that the norm of all of them together is at most `max_norm`."""
    arrays = [dense(gradient) for gradient in gradients]
    norm = ops.sqrt(sum(ops.sum(ops.square(ops.cast(array, floatx()))) for array in arrays))
    # Grappler would turn a constant over the norm into an approximate reciprocal (D-043).
    excess = ops.maximum(norm, max_norm) * (1.0 / max_norm)
    return [array / excess for array in arrays]


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


def root_mean_square(x: Tensor) -> Tensor:
    """Return the root of the mean of the squares."""
    return ops.sqrt(ops.mean(ops.square(x)))
