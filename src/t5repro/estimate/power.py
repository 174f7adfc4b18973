"""How many seeds tell the paper's rows apart: the power of a comparison, before it runs.

The spread of seeds comes from `scores.csv` of finished runs; the differences are the paper's. Two
rows are compared as the report does, by the means of their trainings with Welch's two-sided
interval of 95 % (`report/order_statistics.py`). Here both rows have the same true spread and number
of seeds.

Source: Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), section 2.4.
"""

import bisect
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t5repro.errors import SettingsError
from t5repro.estimate.subset import table_rows
from t5repro.report.order_statistics import QUANTILE
from t5repro.report.partial_averages import PARTIAL, partial_averages
from t5repro.report.published_scores import baseline_deviation, exceeds_deviation, published_rows
from t5repro.report.rows import BEST, ScoreRow
from t5repro.report.titles import AVERAGE

POWER = 0.8  # probability that a difference exceeds its interval
MOST_SEEDS = 100  # beyond this a desk has no answer
CHOSEN_SEEDS = 3  # of the studies of this project
LIKELY = 0.8  # of the true deviation: its interval
POINTS = 200  # of an integral; 20,000 points change a power by less than 1e-4


@dataclass(frozen=True)
class Spread:
    """The spread of one column over seeds.

    Attributes:
        deviation: standard deviation, pooled over experiments; on the scale of 100.
        freedom: its degrees of freedom: trainings minus experiments.
    """

    deviation: float
    freedom: int

    @property
    def likely(self) -> tuple[float, float]:
        """The interval of 80 % of the true deviation, from the chi-squared distribution."""
        from scipy.special import chdtri  # slow to import

        tails = ((1 - LIKELY) / 2, (1 + LIKELY) / 2)  # of the upper tail
        low, high = (
            self.deviation * math.sqrt(self.freedom / chdtri(self.freedom, tail)) for tail in tails
        )
        return float(low), float(high)


@dataclass(frozen=True)
class ColumnPower:
    """A column of a table of the paper.

    Attributes:
        table: number of the table.
        column: ``task.metric`` of the paper.
        spread: over our seeds.
        differences: of all pairs of rows that the paper tells apart, by two of its own deviations;
            the smallest first.
    """

    table: int
    column: str
    spread: Spread
    differences: tuple[float, ...]

    def seeds(self, share: float, deviation: float | None = None) -> int | None:
        """Return the seeds of a row that tell a share of the pairs apart.

        Args:
            share: of the pairs, above 0 and at most 1.
            deviation: in place of the measured one.

        Returns:
            None if `MOST_SEEDS` do not suffice.
        """
        # The largest differences are told apart first.
        index = len(self.differences) - math.ceil(share * len(self.differences))
        value = self.spread.deviation if deviation is None else deviation
        return seeds_needed(self.differences[index], value)

    def told_apart(self, seeds: int) -> int:
        """Return the number of pairs that some seeds of each row tell apart."""
        return sum(
            power(difference, self.spread.deviation, seeds) >= POWER
            for difference in self.differences
        )


def power(difference: float, deviation: float, seeds: int) -> float:
    """Return the probability that a difference of two rows exceeds Welch's interval, with its sign.

    Args:
        difference: true difference of the means.
        deviation: standard deviation of a training, of both rows.
        seeds: trainings of each row, 2 or more.
    """
    if not deviation:
        return float(difference != 0)
    from scipy.special import betaincinv, nctdtr, stdtrit  # slow to import

    # The sum of both variances has 2 n - 2 degrees of freedom, whatever its parts are. The share of
    # one of them, from which Welch's degrees of freedom follow, has a beta distribution.
    half = (seeds - 1) / 2
    shares = betaincinv(half, half, (np.arange(POINTS) + 0.5) / POINTS)
    limits = stdtrit((seeds - 1) / (shares**2 + (1 - shares) ** 2), QUANTILE)
    shift = abs(difference) / deviation * math.sqrt(seeds / 2)
    return float(np.mean(1 - nctdtr(2 * seeds - 2, shift, limits)))


def seeds_needed(difference: float, deviation: float) -> int | None:
    """Return the fewest seeds of each row with a power of `POWER`; None above `MOST_SEEDS`."""
    counts = range(2, MOST_SEEDS + 1)
    # The power grows with the seeds.
    index = bisect.bisect_left(counts, POWER, key=lambda n: power(difference, deviation, n))
    return counts[index] if index < len(counts) else None


def spreads(runs: Iterable[Sequence[ScoreRow]]) -> dict[str, Spread]:
    """Return column -> spread over the seeds of each experiment, pooled over all experiments.

    A benchmark without its average has one over the tasks that are there. A column in which all
    trainings of all experiments have one score, as of trivial answers, says nothing and is absent.

    Args:
        runs: the rows of `scores.csv` of each run.

    Raises:
        SettingsError: no experiment has two seeds.
    """
    squares: dict[str, float] = {}
    freedom: dict[str, int] = {}
    for rows in runs:
        for column, values in _values_of_seeds(rows):
            mean = statistics.fmean(values)
            squares[column] = squares.get(column, 0.0) + sum((v - mean) ** 2 for v in values)
            freedom[column] = freedom.get(column, 0) + len(values) - 1
    if not freedom:
        raise SettingsError(
            "--power: no experiment in these files has scores of two seeds; name the scores.csv of "
            "runs whose experiments have several, such as studies/*/scores.csv"
        )
    return {
        column: Spread(math.sqrt(total / freedom[column]), freedom[column])
        for column, total in squares.items()
        if total
    }


def _values_of_seeds(rows: Sequence[ScoreRow]) -> Iterable[tuple[str, list[float]]]:
    """Yield column and scores of the seeds of each experiment with at least two."""
    seeds = [row for row in rows if row.arm and not row.experiment.endswith(BEST)]
    scores = {
        (row.arm, f"{row.task}.{row.metric}"): row.value for row in seeds if row.value is not None
    }
    partial = partial_averages(scores, sorted({row.arm for row in seeds}))
    scores |= {(arm, key.replace(PARTIAL, AVERAGE)): value for (arm, key), value in partial.items()}
    experiment_of = {row.arm: row.experiment for row in seeds}
    values: dict[tuple[str, str], list[float]] = {}
    for (arm, column), value in scores.items():
        values.setdefault((experiment_of[arm], column), []).append(value)
    return (
        (column, column_values)
        for (_, column), column_values in values.items()
        if len(column_values) > 1
    )


def column_powers(spread_of: Mapping[str, Spread], tables: Sequence[int]) -> list[ColumnPower]:
    """Return the columns that have a spread and pairs of rows which the paper tells apart.

    Args:
        spread_of: column -> spread.
        tables: numbers of tables; if empty, all tables of validation scores.
    """
    columns = []
    numbers = sorted({row.table for row in published_rows() if row.split == "validation"})
    for number in (n for n in numbers if not tables or n in tables):
        rows = table_rows(number)
        for column, spread in spread_of.items():
            deviation = baseline_deviation(column, split="validation")
            scores = [row.values[column] for row in rows if column in row.values]
            pairs = (abs(first - second) for first, second in itertools.combinations(scores, 2))
            if differences := sorted(d for d in pairs if exceeds_deviation(d, deviation)):
                columns.append(ColumnPower(number, column, spread, tuple(differences)))
    return columns
