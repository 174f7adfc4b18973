"""AdamW with steps scaled by the size of each weight, as nanoT5 pre-trains T5 with it.

Source: Loshchilov and Hutter, 2019; nanoT5 ``AdamWScale``, which takes the scale of the steps from
Adafactor. It divides before it corrects the bias, so epsilon is compared with the raw moment.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from t5repro.model.layers import Tensor
from t5repro.train.optimizer import SCALE_FLOOR, dense, path_of, root_mean_square

BETAS = (0.9, 0.999)  # decay of the first and of the second moment
EPSILON = 1e-6


class AdamW(keras.optimizers.Optimizer):
    """Steps from first and second moments, with decoupled weight decay.

    Args:
        learning_rate: rate as a function of the step.
        decay: share of a matrix that a step subtracts, times the learning rate; vectors (the
            scales of norms) have no decay.

    Attributes:
        starts: as of `optimizer.Adafactor`.

    Slots of a weight: ``first_moment``, ``second_moment``, and ``totals``, the sums of the weights
    of the means in both, 1 - beta^n after n updates. Dividing by them corrects the bias, also of
    weights whose training begins later.
    """

    def __init__(self, learning_rate: Any, *, decay: float = 0.0) -> None:
        super().__init__(learning_rate=learning_rate, name="adamw")
        self.decay = decay
        self.starts: dict[str, int] = {}

    def build(self, variables: list[Any]) -> None:
        """Create the slots."""
        if self.built:
            return
        super().build(variables)
        self._paths = [path_of(variable) for variable in variables]
        self._slots = [
            tuple(
                self.add_variable(
                    shape=shape, dtype="float32", name=f"{path}/{name}".replace("/", ".")
                )
                for name, shape in (
                    ("first_moment", tuple(variable.shape)),
                    ("second_moment", tuple(variable.shape)),
                    ("totals", (2,)),
                )
            )
            for path, variable in zip(self._paths, variables, strict=True)
        ]

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Update one weight and its slots."""
        gradient = ops.cast(dense(gradient), "float32")
        index = self._get_variable_index(variable)
        start = self.starts.get(self._paths[index], 0)
        # Without a start the graph is as if gradual unfreezing did not exist.
        awake = ops.greater_equal(self.iterations, start) if start else None
        averages = (
            (BETAS[0], (1 - BETAS[0]) * gradient),
            (BETAS[1], (1 - BETAS[1]) * ops.square(gradient)),
            # The complements are rounded once: 1 - 0.999 in float32 has four correct digits.
            (np.array(BETAS, np.float32), np.array([1 - beta for beta in BETAS], np.float32)),
        )
        moments = []
        for slot, (beta, share) in zip(self._slots[index], averages, strict=True):
            moment = ops.convert_to_tensor(slot) * beta + share
            self.assign(slot, moment if awake is None else ops.where(awake, moment, slot))
            moments.append(moment)
        first, second, totals = moments
        weight = ops.convert_to_tensor(variable)
        scale = ops.maximum(root_mean_square(weight), SCALE_FLOOR)
        corrected_rate = learning_rate * scale * ops.sqrt(totals[1]) / totals[0]
        update = first * corrected_rate / (ops.sqrt(second) + EPSILON)
        if self.decay and len(variable.shape) > 1:
            update = update + weight * (learning_rate * self.decay)
        if awake is not None:
            update = ops.where(awake, update, 0.0)
        self.assign_sub(variable, update)
