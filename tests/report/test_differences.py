"""The first experiment minus the second, with its spread over seeds."""

from collections.abc import Callable
from typing import Any

import pytest

from t5repro.report.differences import differences, mean_difference
from t5repro.report.experiments import Experiment
from t5repro.report.rows import ScoreRow, score_rows

Make = Callable[[float], dict[str, Any]]


def rows_of(make: Make, **shifts: dict[int, float]) -> list[ScoreRow]:
    """Return the rows of experiments: name -> seed -> points lost on most tasks."""
    experiments = [
        Experiment(name, tuple(f"{name}_{seed}" for seed in by_seed), tuple(by_seed))
        for name, by_seed in shifts.items()
    ]
    scores = {
        f"{name}_{seed}": make(shift)
        for name, by_seed in shifts.items()
        for seed, shift in by_seed.items()
    }
    return score_rows(experiments, scores)


def test_a_difference_is_that_of_the_means_with_the_deviation_of_equal_seeds(
    make_scores: Make,
) -> None:
    rows = rows_of(
        make_scores, baseline={0: 0.0, 1: 1.0, 2: 2.0}, no_pretraining={2: 9.0, 1: 6.0, 0: 3.0}
    )
    difference = differences(rows, "baseline", "no_pretraining")["squad", "em"]
    assert difference.value == pytest.approx(5.0)
    assert difference.sd == pytest.approx(2.0)  # of 3, 5 and 7
    assert str(difference) == "+5.00 ±2.00"


def test_one_seed_has_no_spread(make_scores: Make) -> None:
    rows = rows_of(make_scores, baseline={0: 4.0}, no_pretraining={0: 0.0})
    assert str(differences(rows, "baseline", "no_pretraining")["squad", "em"]) == "−4.00"


def test_other_seeds_are_no_pairs_so_there_is_no_spread(make_scores: Make) -> None:
    rows = rows_of(make_scores, baseline={0: 0.0, 1: 2.0}, no_pretraining={2: 3.0, 3: 5.0})
    difference = differences(rows, "baseline", "no_pretraining")["squad", "em"]
    assert (difference.value, difference.sd) == (pytest.approx(3.0), None)


def test_a_number_that_one_experiment_lacks_has_no_difference(make_scores: Make) -> None:
    rows = rows_of(make_scores, baseline={0: 0.0}, no_pretraining={0: 1.0})
    by_key = differences(rows, "baseline", "no_pretraining")
    assert ("super_glue_copa", "accuracy") not in by_key
    assert ("glue", "average") not in by_key
    assert ("glue_mrpc", "accuracy") in by_key


def test_the_mean_is_over_first_metrics_and_its_spread_is_that_of_the_means_of_seeds(
    make_scores: Make,
) -> None:
    rows = rows_of(make_scores, baseline={0: 0.0, 1: 0.0}, no_pretraining={0: 11.0, 1: 22.0})
    effect = mean_difference(rows, "baseline", "no_pretraining")
    assert effect is not None
    # Of eleven tasks with a score, the shift lowers nine, raises CoLA and leaves RTE.
    assert (effect.better, effect.worse, effect.equal) == (9, 1, 1)
    assert effect.mean.value == pytest.approx(16.5 * 8 / 11)
    assert effect.mean.sd == pytest.approx(8 / 2**0.5)  # of 8 and 16


def test_experiments_without_a_common_score_have_no_mean(make_scores: Make) -> None:
    rows = rows_of(make_scores, baseline={0: 0.0})
    assert mean_difference(rows, "baseline", "no_pretraining") is None
