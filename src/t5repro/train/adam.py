"""Adam as each system has it: T5 as nanoT5 trains it, BERT, RoBERTa and SpanBERT, GPT; LAMB.

All have decoupled weight decay, and add epsilon to the root of the second moment before its bias
is corrected, so epsilon is compared with the raw moment.

Source: Loshchilov and Hutter, 2019; nanoT5 ``AdamWScale``; BERT ``AdamWeightDecayOptimizer``;
fairseq ``optim.adam.Adam``; GPT ``opt.adam``; ALBERT ``LAMBOptimizer`` (You et al., 2019).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.model.layers import Tensor
from t5repro.train.optimizer import SCALE_FLOOR, Optimizer, root_mean_square


@dataclass(frozen=True)
class Variant:
    """The differences between the systems' Adams.

    Attributes:
        corrects_bias: whether moments are divided by the sums of the weights of their means.
        decays: weights with decay: ``matrices``, so not biases and scales of norms, or ``all``.
        corrects_decay: whether the bias correction scales the rate of the decay as well.
        scale: factor of a weight's step: none, its root mean square (at least `SCALE_FLOOR`), or
            for a matrix its norm divided by the norm of its step (LAMB).
    """

    corrects_bias: bool
    decays: Literal["matrices", "all"] = "matrices"
    corrects_decay: bool = False
    scale: Literal["none", "root_mean_square", "trust_ratio"] = "none"


VARIANTS = {  # optimizer of the settings -> variant
    "adamw": Variant(corrects_bias=True, scale="root_mean_square"),
    "adam_bert": Variant(corrects_bias=False),
    "adam_fairseq": Variant(corrects_bias=True, decays="all"),
    "adam_gpt": Variant(corrects_bias=True, corrects_decay=True),
    "lamb": Variant(corrects_bias=False, scale="trust_ratio"),
}


class Adam(Optimizer):
    """Steps from first and second moments, with decoupled weight decay.

    Args:
        learning_rate: rate as a function of the step.
        variant: a key of `VARIANTS`.
        betas: decay of the first and of the second moment.
        epsilon: added to the root of the second moment.
        decay: share of a weight that a step subtracts, times the learning rate.
        options: see `Optimizer`.

    Slots of a weight: ``first_moment``, ``second_moment``, and if the bias is corrected
    ``totals``, the sums of the weights of the means in both, 1 - beta^n after n updates. Dividing
    by them corrects the bias, even if the training of a weight begins later.
    """

    def __init__(
        self,
        learning_rate: Any,
        *,
        variant: str = "adamw",
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-6,
        decay: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, name=variant, **options)
        self.variant = VARIANTS[variant]
        self.betas = betas
        self.epsilon = epsilon
        self.decay = decay

    def slot_shapes(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Return the names and shapes of the slots of a weight of a shape."""
        totals = {"totals": (2,)} if self.variant.corrects_bias else {}
        return {"first_moment": shape, "second_moment": shape, **totals}

    def slot_axes(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes of a weight that a slot has; ``totals`` has none of them."""
        return () if name == "totals" else super().slot_axes(name, shape)

    def change(
        self, gradient: Tensor, weight: Tensor, slots: Sequence[Tensor], learning_rate: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the update, which is subtracted from a weight, and the new values of its slots."""
        # 1. Exponential means of the gradient, of its square, and of 1: the sums of the weights.
        averages = (
            (self.betas[0], (1 - self.betas[0]) * gradient),
            (self.betas[1], (1 - self.betas[1]) * ops.square(gradient)),
            # The complements are rounded once: 1 - 0.999 in float32 has four correct digits.
            (np.array(self.betas, floatx()), np.array([1 - beta for beta in self.betas], floatx())),
        )
        moments = [
            slot * beta + share for slot, (beta, share) in zip(slots, averages, strict=False)
        ]
        first, second, *totals = moments
        # 2. The raw moments: the bias is corrected in the rate, after epsilon.
        direction = first / (ops.sqrt(second) + self.epsilon)
        is_matrix = len(weight.shape) > 1
        decay = self.decay if is_matrix or self.variant.decays == "all" else 0.0
        if self.variant.scale == "trust_ratio":
            # LAMB measures the ratio on the step that includes the decay.
            direction = direction + weight * decay if decay else direction
            ratio = trust_ratio(weight, direction) if is_matrix else 1.0
            return direction * (learning_rate * ratio), moments
        # 3. The rate: the system's scale, then the correction of both moments.
        rate = learning_rate
        if self.variant.scale == "root_mean_square":
            rate = rate * ops.maximum(root_mean_square(weight), SCALE_FLOOR)
        if totals:
            rate = rate * ops.sqrt(totals[0][1]) / totals[0][0]
        update = direction * rate
        if decay:
            decay_rate = rate if self.variant.corrects_decay else learning_rate
            update = update + weight * (decay_rate * decay)
        return update, moments


def trust_ratio(weight: Tensor, direction: Tensor) -> Tensor:
    """Return the norm of a weight over the norm of its step at a rate of 1; 1 if either is 0."""
    norms = [ops.sqrt(ops.sum(ops.square(array))) for array in (weight, direction)]
    # The inner `where` keeps a quotient by 0 out of the graph.
    exists = ops.logical_and(norms[0] > 0, norms[1] > 0)
    return ops.where(exists, norms[0] / ops.where(exists, norms[1], 1.0), 1.0)
