"""The statistics of `ordering`: rank correlations, and differences with Welch's interval.

Source: Spearman (1904); Welch (1947).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t5repro.array_types import Float64
from t5repro.report.titles import UNDEFINED

QUANTILE = 0.975  # of Student's distribution, for an interval of 95 %
DECIMALS = 9  # equal scores must stay equal after a mean
AGREES, CONTRADICTS, WITHIN = "agrees", "contradicts", "within the spread"


@dataclass(frozen=True)
class WelchDifference:
    """A difference of means.

    Attributes:
        value: mean of the first trainings minus mean of the second.
        error: its standard error by Welch; None if either has one training.
        margin: half the width of its 95 % interval; None without an error.
    """

    value: float
    error: float | None = None
    margin: float | None = None


def ranks(values: Float64) -> Float64:
    """Return ranks from 1 along the last axis; equal values share their mean rank.

    `scipy.stats.rankdata` gives the same ranks, but its import takes longer than the report's.
    """
    compared = values[..., np.newaxis, :]
    lower = (compared < values[..., np.newaxis]).sum(axis=-1)
    equal = (compared == values[..., np.newaxis]).sum(axis=-1)
    return np.asarray(lower + (equal + 1) / 2)


def rank_correlation(first: Float64, second: Float64) -> Float64:
    """Return Spearman's correlation, -1 to 1, along the last axis; NaN if one side is constant."""
    # The mean rank of n values is (n + 1) / 2, also with ties.
    sides = [ranks(side) - (side.shape[-1] + 1) / 2 for side in (first, second)]
    products = (sides[0] * sides[1]).sum(axis=-1)
    squares = (sides[0] ** 2).sum(axis=-1) * (sides[1] ** 2).sum(axis=-1)
    correlations: Float64 = np.full_like(squares, np.nan)
    np.divide(products, np.sqrt(squares), out=correlations, where=squares > 0)
    return correlations


def welch(first: Sequence[float], second: Sequence[float]) -> WelchDifference:
    """Return the difference between the means of two groups of trainings, with Welch's interval.

    Args:
        first: score of each training.
        second: score of each training of the experiment to subtract.
    """
    value = round(statistics.fmean(first) - statistics.fmean(second), DECIMALS)
    if min(len(first), len(second)) < 2:
        return WelchDifference(value)
    variances = [statistics.variance(scores) / len(scores) for scores in (first, second)]
    total = sum(variances)
    # Equal scores within each group: no spread, so any difference exceeds it.
    if not total:
        return WelchDifference(value, 0.0, 0.0)
    from scipy.special import stdtrit  # slow to import, and most runs need no quantile

    shares = [variance / total for variance in variances]
    # Welch-Satterthwaite: the smaller and noisier group decides most.
    freedom = 1 / (shares[0] ** 2 / (len(first) - 1) + shares[1] ** 2 / (len(second) - 1))
    error = math.sqrt(total)
    return WelchDifference(value, error, error * float(stdtrit(freedom, QUANTILE)))


def verdict(difference: WelchDifference, paper: float) -> str:
    """Return whether our difference has the paper's sign, or is within the spread.

    Args:
        difference: our difference.
        paper: the paper's difference; not zero.
    """
    if difference.margin is None:
        return UNDEFINED
    if abs(difference.value) <= difference.margin:
        return WITHIN
    return AGREES if (difference.value > 0) == (paper > 0) else CONTRADICTS
