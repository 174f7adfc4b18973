"""The cheapest experiments that fill rows of the paper's tables."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from t5repro.errors import SettingsError
from t5repro.report.published_scores import (
    DEVIATION,
    PREVIOUS_BEST,
    PublishedRow,
    published_rows,
    rows_named,
)


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
    return [
        name
        for name, own in rows.items()
        if own and (own == row.name or any(row.is_same_as(other) for other in rows_named(own)))
    ]


def cheapest_experiments(
    candidates: Sequence[Sequence[str]],
    nodes: Mapping[str, AbstractSet[str]],
    costs: Mapping[str, float],
) -> list[str]:
    """Return the experiments with the least total cost, one of each list of candidates.

    Shared nodes count once. The search is exact: it abandons a choice that costs as much as the
    best complete one.

    Args:
        candidates: experiments that fill a row, for each row; none of the lists is empty.
        nodes: experiment -> nodes that it needs.
        costs: node -> its cost, 0 or more.
    """
    best: list[str] = []
    best_cost = float("inf")

    def added(name: str, taken: AbstractSet[str]) -> float:
        return math.fsum(costs[node] for node in nodes[name] - taken)

    def search(
        left: list[Sequence[str]], chosen: list[str], taken: frozenset[str], cost: float
    ) -> None:
        nonlocal best, best_cost
        left = [names for names in left if not set(names).intersection(chosen)]
        if cost >= best_cost and best:
            return
        if not left:
            best, best_cost = chosen, cost
            return
        # Rows with one candidate come first, so that their nodes are taken when others choose.
        row = min(left, key=len)
        for name in sorted(row, key=lambda name: added(name, taken)):
            more = cost + added(name, taken)
            search(left, [*chosen, name], taken | nodes[name], more)

    search(list(candidates), [], frozenset(), 0.0)
    return best
