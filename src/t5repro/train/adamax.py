"""Adamax with decoupled weight decay: Adam with a largest value as second moment, as in MT-DNN.

Source: Kingma and Ba, 2015, section 7.1; MT-DNN `bert_optim`, ``Adamax`` of v0.1, which
corrects no bias and adds epsilon twice, and of later versions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops

from t5repro.model.layers import Tensor
from t5repro.train.optimizer import Optimizer


class Adamax(Optimizer):
    """Steps from first moments and from the largest gradients so far, with weight decay.

    Args:
        learning_rate: rate as a function of the step.
        corrects_bias: whether the first moment is divided by the sum of the weights of its mean;
            otherwise epsilon is added to the largest gradient again, as in MT-DNN v0.1.
        betas: decay of the first moment and of the largest gradient.
        epsilon: added to the absolute value of a gradient.
        decay: share of a matrix that a step subtracts, times the learning rate.
        options: see `Optimizer`.

    Slots of a weight: ``first_moment``, ``largest``, and if the bias is corrected ``total``, the
    sum of the weights of the mean, 1 - beta^n after n updates.
    """

    def __init__(
        self,
        learning_rate: Any,
        *,
        corrects_bias: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        decay: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, name="adamax", **options)
        self.corrects_bias = corrects_bias
        self.betas = betas
        self.epsilon = epsilon
        self.decay = decay

    def slot_shapes(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Return the names and shapes of the slots of a weight of a shape."""
        total = {"total": ()} if self.corrects_bias else {}
        return {"first_moment": shape, "largest": shape, **total}

    def slot_axes(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes of a weight that a slot has; ``total`` has none of them."""
        return () if name == "total" else super().slot_axes(name, shape)

    def change(
        self, gradient: Tensor, weight: Tensor, slots: Sequence[Tensor], learning_rate: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the update, which is subtracted from a weight, and the new values of its slots."""
        first, largest, *totals = slots
        share = 1 - self.betas[0]
        first = first * self.betas[0] + share * gradient
        # The absolute value, by an operation with measured bits (D-043).
        size = ops.maximum(gradient, -gradient)
        largest = ops.maximum(largest * self.betas[1], size + self.epsilon)
        totals = [total * self.betas[0] + share for total in totals]
        if totals:
            update = first / largest * (learning_rate / totals[0])
        else:
            update = first / (largest + self.epsilon) * learning_rate
        if self.decay and len(weight.shape) > 1:
            update = update + weight * (learning_rate * self.decay)
        return update, [first, largest, *totals]
