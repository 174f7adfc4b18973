"""The cheapest experiments that fill rows."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.errors import SettingsError
from t5repro.estimate.subset import cheapest_experiments, experiments_of_row, table_rows

NAMES = ["a", "b", "c", "d", "e"]
NODES = ["1", "2", "3", "4", "5", "6"]
NAME_LISTS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)


def cost_of(names: set[str], nodes: dict[str, set[str]], costs: dict[str, float]) -> float:
    return sum(costs[node] for node in set().union(*(nodes[name] for name in names)))


@given(
    candidates=st.lists(NAME_LISTS, min_size=1, max_size=4),
    nodes=st.fixed_dictionaries({name: st.sets(st.sampled_from(NODES)) for name in NAMES}),
    costs=st.fixed_dictionaries({node: st.integers(0, 9).map(float) for node in NODES}),
)
def test_no_other_experiments_are_cheaper(
    candidates: list[list[str]], nodes: dict[str, set[str]], costs: dict[str, float]
) -> None:
    chosen = set(cheapest_experiments(candidates, nodes, costs))
    assert all(chosen.intersection(names) for names in candidates)
    every = (set(choice) for choice in itertools.product(*candidates))
    assert cost_of(chosen, nodes, costs) == min(cost_of(one, nodes, costs) for one in every)


def test_a_row_is_filled_by_experiments_of_the_same_configuration() -> None:
    (ten, fifteen, *_) = table_rows(6)
    rows = {"baseline": "Baseline average", "rate_10": ten.name, "other": ""}
    assert experiments_of_row(ten, rows) == ["rate_10"]
    assert experiments_of_row(fifteen, rows) == ["baseline"]


def test_a_table_without_scores_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"--table 3: the paper's tables with scores are \[1, 2"
    ):
        table_rows(3)
