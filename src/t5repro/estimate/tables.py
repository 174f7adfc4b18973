"""The cost of the paper's tables: the experiments that fill their rows, and the cheapest."""

from collections.abc import Sequence
from dataclasses import dataclass

from t5repro.estimate.plan import Cost, Estimate
from t5repro.estimate.subset import cheapest_experiments, experiments_of_row, table_rows
from t5repro.report.published_scores import published_rows


@dataclass(frozen=True)
class TableEstimate:
    """The estimate of a table of the paper.

    Attributes:
        number: number of the table.
        experiments: experiments of the run that fill one of its rows.
        missing: rows that no experiment of the run fills.
        alone: cost of all nodes that these experiments need.
        extra: cost of the nodes that no other experiment needs.
    """

    number: int
    experiments: tuple[str, ...]
    missing: tuple[str, ...]
    alone: Cost
    extra: Cost


def table_estimates(estimate: Estimate, tables: Sequence[int] = ()) -> list[TableEstimate]:
    """Return the estimates of tables.

    Args:
        estimate: the estimate of the run.
        tables: numbers; if empty, all tables with at least one row that the run fills.

    Raises:
        SettingsError: the paper has no such table of scores.
    """
    numbers = tables or sorted({row.table for row in published_rows()})
    estimates = [_table_estimate(estimate, number) for number in numbers]
    return [table for table in estimates if tables or table.experiments]


def _table_estimate(estimate: Estimate, number: int) -> TableEstimate:
    candidates = {row.name: experiments_of_row(row, estimate.rows) for row in table_rows(number)}
    names = {name for names in candidates.values() for name in names}
    experiments = tuple(name for name in estimate.experiments if name in names)
    return TableEstimate(
        number=number,
        experiments=experiments,
        missing=tuple(row for row, names in candidates.items() if not names),
        alone=estimate.alone(experiments),
        extra=estimate.additional(experiments),
    )


def one_of_each_row(estimate: Estimate, table: int) -> list[str]:
    """Return the first experiment of the run for each row of a table that it fills: one seed."""
    candidates = [experiments_of_row(row, estimate.rows) for row in table_rows(table)]
    return list(dict.fromkeys(names[0] for names in candidates if names))


def cheapest_of_tables(estimate: Estimate, tables: Sequence[int]) -> list[str]:
    """Return the cheapest experiments that fill every row of tables that the run can fill.

    One experiment fills a row; repeats of it, as for a standard deviation, are left out.

    Raises:
        SettingsError: the paper has no such table of scores.
    """
    candidates = [
        names
        for number in tables
        for row in table_rows(number)
        if (names := experiments_of_row(row, estimate.rows))
    ]
    nodes = {
        name: {entry.node.label for entry in estimate.nodes if name in entry.node.experiments}
        for name in estimate.experiments
    }
    costs = {entry.node.label: entry.seconds * entry.chips for entry in estimate.nodes}
    cheapest = set(cheapest_experiments(candidates, nodes, costs))
    return [name for name in estimate.experiments if name in cheapest]
