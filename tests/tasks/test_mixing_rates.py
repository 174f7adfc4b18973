"""Mixing rates against the paper's formula."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.presets.mixtures import MIXTURES, leave_one_out
from t5repro.errors import SettingsError
from t5repro.task_table import BY_NAME, RELEASED_GROUPS
from t5repro.tasks.mixing_rates import (
    RELEASED_TRAIN_ROWS,
    fixed_rate_share,
    mixing_rates,
    mixture_counts,
)
from t5repro.tasks.registry import TASKS, task_named

COUNTS = {"a": 1000, "b": 100, "c": 10}


def rates(counts=COUNTS, *, kind="proportional", limit=2**19, temperature=1.0):
    return mixing_rates(counts, kind=kind, limit=limit, temperature=temperature)


def test_proportional_rates_follow_the_counts():
    assert rates() == pytest.approx({"a": 1000 / 1110, "b": 100 / 1110, "c": 10 / 1110})


def test_the_limit_cuts_large_tasks():
    assert rates(limit=100) == pytest.approx({"a": 100 / 210, "b": 100 / 210, "c": 10 / 210})


def test_equal_rates_look_at_no_count():
    assert rates(kind="equal") == pytest.approx(dict.fromkeys("abc", 1 / 3))


def test_the_limit_comes_before_the_temperature():
    shares = rates(limit=50, temperature=2.0)
    a, b, c = math.sqrt(50), math.sqrt(50), math.sqrt(10)
    total = a + b + c
    assert shares == pytest.approx({"a": a / total, "b": b / total, "c": c / total})


def test_temperature_two_by_hand():
    shares = rates({"a": 400, "b": 100}, temperature=2.0)
    assert shares == pytest.approx({"a": 2 / 3, "b": 1 / 3})


def test_a_very_high_temperature_is_equal_mixing():
    assert rates(temperature=math.inf) == pytest.approx(dict.fromkeys("abc", 1 / 3))


@given(
    st.dictionaries(st.text(max_size=3), st.integers(1, 10**12), min_size=1, max_size=6),
    st.integers(1, 10**12),
    st.floats(0.05, 100),
)
def test_shares_add_up_to_one_and_keep_the_order_of_the_counts(counts, limit, temperature):
    shares = rates(counts, limit=limit, temperature=temperature)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares) == list(counts)
    ordered = sorted(counts, key=counts.get)
    assert all(shares[small] <= shares[large] + 1e-12 for small, large in pairwise(ordered))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": {}}, "a mixture has no task"),
        ({"counts": {"a": 1, "b": 0}}, "contains task 'b' with 0 training rows; allowed: at least"),
        ({"limit": 0}, "the mixture's limit is 0; allowed: above 0"),
        ({"temperature": -1.0}, "the mixture's temperature is -1.0"),
        ({"temperature": math.nan}, "the mixture's temperature is nan"),
        ({"kind": "propotional"}, "finetune.mixture is 'propotional'; allowed: 'proportional'"),
    ],
)
def test_an_impossible_mixture_is_refused(change, message):
    with pytest.raises(SettingsError, match=message):
        rates(**change)


def test_a_fixed_rate_is_neither_limited_nor_tempered():
    counts = {"a": 100, "b": 900}
    assert fixed_rate_share(counts, 500, limit=400, temperature=1.0) == pytest.approx(500 / 1000)
    assert fixed_rate_share(counts, 30, limit=400, temperature=2.0) == pytest.approx(
        30 / (10 + 20 + 30)
    )


def test_the_share_of_a_fixed_rate_stays_in_range_where_rates_would_overflow():
    assert fixed_rate_share({"a": 10**9}, 1e6, limit=2**40, temperature=0.01) == 0.0
    assert fixed_rate_share({"a": 2}, 1e300, limit=2**40, temperature=1.0) == pytest.approx(1.0)


def counts(counted, *, examples="rows", weights=None):
    return mixture_counts(counted, examples=examples, weights=weights or {})


AT_HAND = {"glue_cola": 100, "squad": 87_599, "mine": 12}


def test_counts_are_the_rows_at_hand_or_the_released_constants():
    assert counts(AT_HAND) == AT_HAND
    assert counts(AT_HAND, examples="released") == AT_HAND | {"glue_cola": 8_551}


def test_a_weight_stands_in_place_of_a_count():
    shares = counts(AT_HAND, examples="released", weights={"mine": 0.5, "glue_cola": 7.0})
    assert shares == {"glue_cola": 7.0, "squad": 87_599, "mine": 0.5}


def test_a_weight_of_a_task_without_training_rows_is_refused():
    with pytest.raises(SettingsError, match=r"names \['glue_wnli'\], which have no training rows"):
        counts(AT_HAND, weights={"glue_wnli": 2.0})


def released_totals(name):
    mixture = MIXTURES[name]
    rows = dict.fromkeys(mixture.tasks, 1)
    return counts(rows, examples="released", weights=mixture.weights)


def test_the_released_mixtures_hold_these_tasks_and_totals():
    assert sum(released_totals("glue_v002_proportional").values()) == 949_101
    assert sum(released_totals("super_glue_v102_proportional").values()) == 185_673
    assert MIXTURES["large_supervised_equal"].tasks == ("wmt_en_de", "wmt_en_fr", "cnn_dailymail")


def test_the_rte_of_both_benchmarks_counts_half_where_both_are_drawn():
    """Source: released code, `_dedupe`; not where one benchmark is left out."""
    both = released_totals("supervised_proportional")
    assert both["glue_rte"] == both["super_glue_rte"] == 1_245
    assert released_totals("supervised_without_glue")["super_glue_rte"] == 2_490
    assert released_totals("supervised_without_super_glue")["glue_rte"] == 2_490
    assert released_totals("supervised_without_squad")["glue_rte"] == 1_245


def test_every_task_of_a_mixture_exists_and_is_trained_on():
    for mixture in MIXTURES.values():
        assert not any(task_named(name).evaluation_only for name in mixture.tasks)
        evaluated = set(mixture.names) - set(mixture.tasks)
        assert all(task_named(name).evaluation_only for name in evaluated)


def test_every_trained_task_of_the_two_benchmarks_has_a_released_count():
    trained = {task.name for task in TASKS.values() if not task.evaluation_only}
    of_benchmarks = {name for name in trained if BY_NAME[name].benchmark}
    assert set(RELEASED_TRAIN_ROWS) == {*of_benchmarks, "dpr"}


def test_leave_one_out_has_all_tasks_but_the_groups():
    left = leave_one_out("glue")
    assert set(left) == set(MIXTURES["supervised_equal"].tasks) - set(RELEASED_GROUPS["glue"])
    assert len(RELEASED_GROUPS) == 7
    with pytest.raises(SettingsError, match="unknown group of tasks 'sglue'; groups are"):
        leave_one_out("sglue")
