"""The seeds that tell rows apart, against drawn trainings and published tables."""

from dataclasses import replace

import numpy as np
import pytest

from t5repro.errors import SettingsError
from t5repro.estimate.power import (
    MOST_SEEDS,
    POWER,
    ColumnPower,
    Spread,
    column_powers,
    power,
    seeds_needed,
    spreads,
)
from t5repro.report.order_statistics import welch
from t5repro.report.rows import ScoreRow

DRAWS = 4000
ERROR = 4 * (0.25 / DRAWS) ** 0.5  # four standard errors of a share


@pytest.mark.parametrize(("difference", "seeds"), [(3.0, 2), (3.0, 3), (2.0, 5), (1.0, 12)])
def test_the_power_is_the_share_of_drawn_comparisons_that_exceed_the_interval(
    difference: float, seeds: int
) -> None:
    draws = np.random.default_rng(seeds).normal(0.0, 1.7, (DRAWS, 2, seeds))
    draws[:, 0] += difference * 1.7
    compared = [welch(first.tolist(), second.tolist()) for first, second in draws]
    told_apart = sum(c.margin is not None and c.value > c.margin for c in compared)
    assert told_apart / DRAWS == pytest.approx(power(difference * 1.7, 1.7, seeds), abs=ERROR)


@pytest.mark.parametrize("difference", [0.4, 1.0, 2.0, 5.0])
def test_no_fewer_seeds_have_the_power(difference: float) -> None:
    seeds = seeds_needed(difference, 1.0)
    assert seeds is not None
    assert power(difference, 1.0, seeds) >= POWER
    assert seeds == 2 or power(difference, 1.0, seeds - 1) < POWER


def test_a_difference_that_no_desk_can_tell_has_no_number_of_seeds() -> None:
    assert seeds_needed(0.1, 1.0) is None
    assert power(0.1, 1.0, MOST_SEEDS) < POWER


def row(experiment: str, arm: str, value: float, task: str = "wmt_en_de") -> ScoreRow:
    seed = int(arm[-1])
    return ScoreRow(experiment, arm, seed, 1, task, "bleu", value, None, "copy", 0.0, 100, 0, 0.0)


def test_the_spread_is_pooled_over_experiments_and_runs() -> None:
    first = [row("a", f"a{n}", value) for n, value in enumerate((1.0, 2.0, 3.0))]
    second = [row("b", f"b{n}", value) for n, value in enumerate((10.0, 14.0))]
    mean = replace(first[0], arm="", value=2.0)
    best = replace(first[0], experiment="a:best", arm="a0:best", value=99.0)
    (spread,) = spreads([[*first, mean, best], second]).values()
    assert spread == Spread(pytest.approx(((2 + 8) / 3) ** 0.5), 3)
    low, high = spread.likely
    assert (low, high) == pytest.approx((1.2648, 4.1347), rel=1e-3)  # chi-squared 6.251 and 0.584


def test_scores_that_never_differ_say_nothing_and_single_seeds_are_refused() -> None:
    constant = [row("a", f"a{n}", 0.0, "glue_cola") for n in range(3)]
    assert spreads([[*constant, row("b", "b0", 1.0), row("b", "b1", 2.0)]]).keys() == {
        "wmt_en_de.bleu"
    }
    with pytest.raises(SettingsError, match="no experiment in these files has scores of two seeds"):
        spreads([[row("a", "a0", 1.0)]])


def test_pairs_are_those_that_the_paper_tells_apart() -> None:
    (column,) = column_powers({"wmt_en_de.bleu": Spread(0.5, 10)}, [4])
    # Prefix 26.86, BERT-style 26.78, deshuffling 26.11; the paper's deviation is 0.112.
    assert column.differences == pytest.approx((0.67, 0.75))
    assert column.seeds(0.5) == seeds_needed(0.75, 0.5) == 9
    assert column.seeds(1.0) == seeds_needed(0.67, 0.5)
    assert column.told_apart(9) == 1
    assert column.told_apart(20) == 2


def test_half_of_an_odd_number_of_pairs_is_its_larger_half() -> None:
    column = ColumnPower(4, "wmt_en_de.bleu", Spread(1.0, 4), (1.0, 2.0, 4.0))
    assert column.seeds(0.5) == seeds_needed(2.0, 1.0)
    assert column.seeds(0.5, 2.0) == seeds_needed(2.0, 2.0)
