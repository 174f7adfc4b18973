"""Learning rates as functions of the step (paper section 3.1.2, and related systems).

`config/sections/training.py` has the settings of a schedule; the defaults of a stage are at
`learning_rate` in `config/sections/pretrain.py` and `config/sections/finetune.py`.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.training import LearningRate
from t5repro.model.layers import Tensor, inverse_root

GPT_WARMUP_SHARE = 0.002  # of the steps of a fine-tuning of GPT


class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """factor / sqrt(max(step, warmup)), without the ramp-down that mesh has by default."""

    def __init__(self, factor: float, warmup_steps: int) -> None:
        self.factor = factor
        self.warmup_steps = warmup_steps

    def __call__(self, step: Tensor) -> Tensor:
        """Return the rate of the update after `step` updates."""
        longest = ops.maximum(ops.cast(step, floatx()), float(self.warmup_steps))
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
        return ops.convert_to_tensor(self.factor, dtype=floatx())

    def get_config(self) -> dict[str, Any]:
        """Return the argument."""
        return {"factor": self.factor}


class Table(keras.optimizers.schedules.LearningRateSchedule):
    """A rate for each update of a stage; the last one holds from then on.

    Cosines have other bits on other CPUs; the float32 values of a table are equal.

    Args:
        rates: of the updates of the stage, in order.
        offset: updates before the stage.
    """

    def __init__(self, rates: Iterable[float], offset: int = 0) -> None:
        self.rates = np.array([*rates], floatx())
        self.offset = offset

    def __call__(self, step: Tensor) -> Tensor:
        """Return the rate of the update after `step` updates."""
        number = ops.cast(step, "int32") - self.offset
        return ops.take(self.rates, ops.clip(number, 0, len(self.rates) - 1))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments."""
        return {"rates": self.rates.tolist(), "offset": self.offset}


def cosine(settings: LearningRate, steps: int, step: int) -> float:
    """Rise from a share of the factor, then fall along half a cosine to the final rate.

    Source: nanoT5 ``get_lr_scheduler`` (PyTorch's ``LinearLR``, then ``CosineAnnealingLR``).
    """
    warmup, first_share = settings.warmup_of(steps), settings.warmup_start
    if step < warmup:
        return settings.factor * (first_share + (1 - first_share) * step / warmup)
    amplitude = (settings.factor - settings.final_factor) / 2
    angle = math.pi * (step - warmup) / (steps - warmup)
    return settings.final_factor + amplitude * (1 + math.cos(angle))


def linear(settings: LearningRate, steps: int, step: int) -> float:
    """Rise from 0 to the factor, then fall along a line to the final rate.

    Source: fairseq ``polynomial_decay`` with power 1.
    """
    warmup = settings.warmup_of(steps)
    if step < warmup:
        return settings.factor * step / warmup
    remaining_share = 1 - (step - warmup) / (steps - warmup)
    return settings.final_factor + (settings.factor - settings.final_factor) * remaining_share


def bert_linear(settings: LearningRate, steps: int, step: int) -> float:
    """Rise from 0 to the factor, then follow the line from the factor at step 0 to the final rate.

    The rate falls by a jump at the end of the warm-up.

    Source: BERT ``optimization.create_optimizer``.
    """
    warmup = settings.warmup_of(steps)
    if step < warmup:
        return settings.factor * step / warmup
    return settings.final_factor + (settings.factor - settings.final_factor) * (1 - step / steps)


def gpt_linear(settings: LearningRate, steps: int, step: int) -> float:
    """Fall along a line from the factor to 0, with a warm-up in the first 0.2 % of the steps.

    Source: GPT ``opt.warmup_linear``.
    """
    done = step / steps
    return settings.factor * min(done / GPT_WARMUP_SHARE, 1) * (1 - done)


RATES: dict[str, Callable[[LearningRate, int, int], float]] = {
    "cosine": cosine,
    "linear": linear,
    "bert_linear": bert_linear,
    "gpt_linear": gpt_linear,
}


def schedule(
    settings: LearningRate, *, steps: int = 1, offset: int = 0
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Return the learning rate that the settings describe.

    Args:
        settings: of the learning rate.
        steps: updates of the stage; a schedule of `RATES` reaches its last rate at their end.
        offset: updates before the stage. A schedule of `RATES` begins after them; T5's schedules
            count them, as the released code does.
    """
    if settings.schedule == "constant":
        return Constant(settings.factor)
    if settings.schedule == "inverse_square_root":
        return InverseSquareRoot(settings.factor, settings.warmup_steps)
    rate = RATES[settings.schedule]
    return Table((rate(settings, steps, step) for step in range(max(steps, 1))), offset)
