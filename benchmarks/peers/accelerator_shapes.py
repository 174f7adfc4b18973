"""What the programs of the accelerator's benchmark share: shapes, ids, and their turn."""

import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import training_shapes

STARTED = time.perf_counter()
WARM_UP_STEPS = 3
ANSWER = 64  # ids of a decoded answer; none ends earlier
WIDTH, LENGTH_PENALTY = 4, 0.6


@dataclass(frozen=True)
class Job:
    """What a program measures, from its command line."""

    shape: training_shapes.Shape
    work: str
    steps: int
    options: tuple[str, ...]


SHAPES = {
    "tiny": (64, 128, 2, 2, 512, 32, 16),
    "small": (512, 2048, 8, 6, 32_128, 512, 114),
    "base": (768, 3072, 12, 12, 32_128, 512, 114),
    "large": (1024, 4096, 16, 24, 32_128, 512, 114),
}


def job() -> Job:
    """Return the job of the command line: SHAPE ROWS WORK STEPS [OPTION ...]."""
    name, rows, work, steps, *options = sys.argv[1:]
    d_model, d_ff, heads, layers, ids, inputs, targets = SHAPES[name]
    shape = training_shapes.Shape(d_model, d_ff, heads, layers, ids, int(rows), inputs, targets)
    return Job(shape, work, int(steps), tuple(options))


def batches(shape: training_shapes.Shape) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return inputs and targets of some batches, full rows."""
    draw = np.random.default_rng(0)
    return [
        tuple(
            draw.integers(2, shape.ids - 100, (shape.rows, length)).astype(np.int32)
            for length in (shape.inputs, shape.targets)
        )
        for _ in range(4)
    ]


def turn() -> float:
    """Say that the program is ready, wait for its turn, return the seconds until it was ready."""
    ready = time.perf_counter() - STARTED
    print("ready", flush=True)
    sys.stdin.readline()
    return ready


def train(
    shape: training_shapes.Shape,
    steps: int,
    step: Callable[[int], Any],
    wait: Callable[[Any], object],
) -> dict[str, float]:
    """Measure the mean of some steps.

    Args:
        shape: of the network and the batch.
        steps: number of timed steps.
        step: runs step number n without waiting for its result, and returns that.
        wait: waits for a result.
    """
    for number in range(WARM_UP_STEPS):
        result = step(number)
    wait(result)
    ready = turn()
    begin = time.perf_counter()
    for number in range(steps):
        result = step(number)
    wait(result)
    seconds = (time.perf_counter() - begin) / steps
    return {
        "ready": ready,
        "seconds": seconds,
        "positions": training_shapes.tokens(shape),
        "flops": training_shapes.flops(shape),
    }


def decode(shape: training_shapes.Shape, call: Callable[[], object]) -> dict[str, float]:
    """Measure the median of five calls that decode a batch."""
    call()
    call()
    ready = turn()
    ends = [time.perf_counter()]
    for _ in range(5):
        call()
        ends.append(time.perf_counter())
    seconds = median(b - a for a, b in itertools.pairwise(ends))
    return {"ready": ready, "seconds": seconds, "positions": shape.rows * ANSWER}


def tell(result: dict[str, Any]) -> None:
    """Print the result."""
    print(json.dumps(result), flush=True)
