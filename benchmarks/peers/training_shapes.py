"""What every program of the training benchmark shares: shapes, made-up ids, the clock."""

import itertools
import json
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import clock
import numpy as np

WARM_UP_STEPS = 2  # the first compiles
DROPOUT = 0.1
RATE = 1e-3


class Shape(NamedTuple):
    """A network and a batch."""

    d_model: int
    d_ff: int
    num_heads: int
    layers: int
    ids: int
    rows: int
    inputs: int
    targets: int


SHAPES = {
    "tiny": Shape(192, 768, 3, 3, 4096, 16, 128, 40),
    "small": Shape(512, 2048, 8, 6, 32_128, 8, 512, 114),
}


def batch(shape: Shape) -> dict[str, np.ndarray]:
    """Return full rows of made-up ids."""
    draw = np.random.default_rng(0)
    inputs, targets = (
        draw.integers(2, shape.ids, (shape.rows, length)).astype(np.int32)
        for length in (shape.inputs, shape.targets)
    )
    shifted = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
    return {"inputs": inputs, "targets": targets, "shifted": shifted}


def tokens(shape: Shape) -> int:
    """Return the positions of one step."""
    return shape.rows * (shape.inputs + shape.targets)


def flops(shape: Shape) -> int:
    """Return the operations of the matrix products of one step, as t5repro counts them."""
    from t5repro.config.flops import step_flops
    from t5repro.config.sections.model import ModelSettings
    from t5repro.config.sections.training import TrainingSettings

    return step_flops(
        settings(shape, ModelSettings),
        TrainingSettings(
            batch_size=shape.rows, inputs_length=shape.inputs, targets_length=shape.targets
        ),
        embedding_rows=shape.ids,
    )


def settings(shape: Shape, model: type) -> object:
    """Return the shape as t5repro's settings."""
    return model(
        d_model=shape.d_model,
        d_ff=shape.d_ff,
        num_heads=shape.num_heads,
        num_encoder_layers=shape.layers,
        num_decoder_layers=shape.layers,
    )


class Clock:
    """Times of steps, from the end of one to the end of the next."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.used: list[tuple[float, float]] = []

    def tick(self) -> None:
        """Note the end of a step."""
        self.ends.append(time.perf_counter())
        self.used.append((clock.busy_seconds(), time.process_time()))

    def tell(self, tokens: int, operations: int) -> None:
        """Print the median step after the warm-up.

        Args:
            tokens: positions of a step.
            operations: floating-point operations of a step.
        """
        step_ends = self.ends[WARM_UP_STEPS - 1 :]
        spent = median(b - a for a, b in itertools.pairwise(step_ends))
        busy, own = (
            used_after - used_before
            for used_before, used_after in zip(
                self.used[WARM_UP_STEPS - 1], self.used[-1], strict=True
            )
        )
        result = {
            "seconds": spent,
            "tokens": tokens,
            "flops": operations,
            "processor": own / (len(step_ends) - 1),
            "others": max(0.0, (busy - own) / (step_ends[-1] - step_ends[0])),
        }
        print(json.dumps(result))


def measure(step: Callable[[], object], steps: int, tokens: int, operations: int) -> None:
    """Run a step again and again and print its time, see `Clock.tell`."""
    clock = Clock()
    for _ in range(steps + WARM_UP_STEPS):
        step()
        clock.tick()
    clock.tell(tokens, operations)
