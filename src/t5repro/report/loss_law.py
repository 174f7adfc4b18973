"""The law of the loss on held-out text over the compute of pre-training: L = E + A / C^b.

L is in nats per target token, C in operations. A and b are least squares of log(L - E) on log(C)
over the means of the trainings, E is the value from 0 to the lowest mean with the smallest squares
of log(L). With less than `FEWEST_FOR_FLOOR` computes E is 0. The 95 % intervals draw the trainings
of every compute with replacement.

Source: Kaplan et al. (2020), equation 1.1; Hoffmann et al. (2022), section 3.3, for E.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t5repro.array_types import Float64
from t5repro.randomness import stream
from t5repro.report.bootstrap import RESAMPLES, percentile_interval

FEWEST_FOR_FLOOR = 5  # computes from which on E is fitted
FLOORS = 40  # values of E that are tried in a round
ROUNDS = 4  # each between the neighbours of the best value of the one before it


@dataclass(frozen=True)
class Law:
    """L = floor + scale / C^exponent; C in 10^15 operations, L in nats per target token."""

    floor: float
    scale: float
    exponent: float

    def loss(self, operations: Float64) -> Float64:
        """Return the loss at a number of operations, in multiples of 10^15."""
        return np.asarray(self.floor + self.scale * operations**-self.exponent)


def fit(losses: Mapping[float, Sequence[float]]) -> Law:
    """Return the law of the means at each compute, see the module.

    Args:
        losses: operations, in multiples of 10^15 -> loss of each training; at least two computes.
    """
    means = np.array([[statistics.fmean(values) for values in losses.values()]])
    floor, scale, exponent = (float(values[0]) for values in _fits(np.array(list(losses)), means))
    return Law(floor, scale, exponent)


def _fits(computes: Float64, means: Float64) -> tuple[Float64, Float64, Float64]:
    """Return floor, scale and exponent of each row of means, (rows, computes)."""
    low, high = np.zeros(len(means)), means.min(axis=1)
    if len(computes) < FEWEST_FOR_FLOOR:
        _, scale, exponent = _fits_above(low, computes, means)
        return low, scale, exponent
    row = np.arange(len(means))
    for _ in range(ROUNDS):
        # The highest one is left out: there a loss less the floor may be 0.
        floors = low + (high - low) * np.arange(FLOORS)[:, np.newaxis] / FLOORS
        errors = np.stack([_fits_above(floor, computes, means)[0] for floor in floors])
        best, width = floors[errors.argmin(axis=0), row], (high - low) / FLOORS
        low, high = np.maximum(best - width, low), np.minimum(best + width, high)
    _, scale, exponent = _fits_above(best, computes, means)
    return best, scale, exponent


def _fits_above(
    floors: Float64, computes: Float64, means: Float64
) -> tuple[Float64, Float64, Float64]:
    """Return squared error of log(L), scale and exponent of each row of means above its floor."""
    floors = floors[:, np.newaxis]
    x = np.log(computes) - np.log(computes).mean()
    y = np.log(means - floors)
    slopes = (y * x).sum(axis=1) / (x * x).sum()
    fitted = y.mean(axis=1, keepdims=True) + slopes[:, np.newaxis] * x
    # Judged by the loss itself: its logarithm less E would reward an E near the lowest mean.
    errors = ((np.log(np.exp(fitted) + floors) - np.log(means)) ** 2).sum(axis=1)
    return errors, np.exp(y.mean(axis=1) - slopes * np.log(computes).mean()), -slopes


def intervals(
    losses: Mapping[float, Sequence[float]], *, seed: int
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Return the 95 % intervals of floor and exponent; None if a compute has one training.

    Args:
        losses: see `fit`.
        seed: the run's seed.
    """
    if any(len(values) < 2 for values in losses.values()):
        return None, None
    draws = stream(seed, "report", "scaling")
    means = np.stack(
        [
            draws.choice(np.array(values), (RESAMPLES, len(values))).mean(axis=1)
            for values in losses.values()
        ],
        axis=1,
    )
    floors, _, exponents = _fits(np.array(list(losses)), means)
    return percentile_interval(floors), percentile_interval(exponents)
