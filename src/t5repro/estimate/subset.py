"""The cheapest experiments that fill rows of the paper's tables."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from t5repro.errors import SettingsError
from t5repro.report.published_scores import DEVIATION, PREVIOUS_BEST, PublishedRow, published_rows


def table_rows(table: int) -> list[PublishedRow]:
    """Return the rows of a table that a run can fill.

    Raises:
        SettingsError: the paper has no such table of scores.
    """
    tables = sorted({row.table for row in published_rows()})
    if table not in tables:
        raise SettingsError(f"--table {table}: the paper's tables with scores are {tables}")
    return [
        row
        for row in published_rows()
        if row.table == table and row.name not in (DEVIATION, PREVIOUS_BEST)
    ]


def experiments_of_row(row: PublishedRow, rows: Mapping[str, str]) -> list[str]:
    """Return the experiments that reproduce a row, under this name or another table's.

    Args:
        row: row of a table.
        rows: experiment -> its row; empty for none.
    """
    return [name for name, own in rows.items() if row.is_reproduced_by(own)]


def cheapest_experiments(
    candidates: Sequence[Sequence[str]],
    nodes: Mapping[str, AbstractSet[str]],
    costs: Mapping[str, float],
) -> list[str]:
    """Return the experiments with the least total cost, one of each list of candidates.

    Shared nodes count once. The search is exact: it abandons a choice that costs as much as the
    best complete one.

    Args:
        candidates: experiments that fill a row, for each row; every list has an entry.
        nodes: experiment -> nodes that it needs.
        costs: node -> its cost, 0 or more.
    """
    best: list[str] = []
    best_cost = float("inf")

    def added(name: str, paid_nodes: AbstractSet[str]) -> float:
        return math.fsum(costs[node] for node in nodes[name] - paid_nodes)

    def search(
        open_rows: list[Sequence[str]], choice: list[str], paid_nodes: frozenset[str], cost: float
    ) -> None:
        nonlocal best, best_cost
        # An experiment may fill rows of several tables.
        open_rows = [names for names in open_rows if not set(names).intersection(choice)]
        if cost >= best_cost and best:
            return
        if not open_rows:
            best, best_cost = choice, cost
            return
        # Rows with one candidate come first, so that their nodes are taken when others choose.
        row = min(open_rows, key=len)
        # The cheapest first: an early complete choice is a tight bound for the rest.
        for name in sorted(row, key=lambda name: added(name, paid_nodes)):
            more = cost + added(name, paid_nodes)
            search(open_rows, [*choice, name], paid_nodes | nodes[name], more)

    search(list(candidates), [], frozenset(), 0.0)
    return best
