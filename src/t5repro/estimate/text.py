"""The estimate as text and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from t5repro.estimate.plan import Cost, Estimate, NodeEstimate
from t5repro.estimate.power import CHOSEN_SEEDS, LIKELY, MOST_SEEDS, POWER, ColumnPower
from t5repro.estimate.prices import Price
from t5repro.estimate.tables import TableEstimate
from t5repro.plan.memory import Memory
from t5repro.report.cost import UNKNOWN, StageCost

SHOWN_NODES = 40
RIGHT = ">"
DURATIONS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
OPERATIONS = ((1e18, "EFLOP"), (1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"))
SPEEDS = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MB/s"), (1.0, "B/s"))


def quantity(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Return a value with three digits in the largest fitting unit."""
    if not value:
        return "0"
    factor, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    return f"{number(value / factor)} {unit}"


def number(value: float) -> str:
    """Return three significant digits, without an exponent."""
    # Small values, such as hours of a demo, would round to 0.00.
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 or not value else 4
    return f"{value:,.{digits}f}"


def estimate_text(
    estimate: Estimate, tables: Sequence[TableEstimate], *, every_node: bool = False
) -> str:
    """Return nodes, experiments, tables and totals as plain text.

    Args:
        estimate: the estimate.
        tables: the tables to show.
        every_node: whether to show all nodes, however many there are.
    """
    sections = [
        f"run {estimate.run} on {estimate.machine.name}",
        _nodes_text(estimate, every_node),
        _experiments_text(estimate),
    ]
    if tables:
        sections.append(_tables_text(estimate, tables))
    sections.append(_totals_text(estimate))
    return "\n\n".join(sections) + "\n"


def _nodes_text(estimate: Estimate, every_node: bool) -> str:
    nodes = list(estimate.nodes)
    note = ""
    if len(nodes) > SHOWN_NODES and not every_node:
        costly = sorted(nodes, key=lambda entry: -entry.seconds * entry.chips)[:SHOWN_NODES]
        note = f"\n{len(nodes) - SHOWN_NODES:,} further nodes; --all shows them"
        # The costliest nodes, in the order of the stages.
        nodes = [entry for entry in nodes if entry in costly]
    head = ("node", ">work", ">rate", "source", ">time", ">hours", ">disk", "memory")
    rows = [
        (
            entry.node.label,
            _work(entry),
            "" if entry.is_done else _rate(entry),
            # The source tells how far to trust the time.
            "done" if entry.is_done else entry.rate.source,
            quantity(entry.seconds, DURATIONS),
            f"{number(entry.hours)} {'chip' if estimate.is_on_chips(entry) else 'core'}-h",
            quantity(entry.disk_bytes, BYTES),
            "" if entry.is_done or entry.memory is None else memory_text(entry.memory),
        )
        for entry in nodes
    ]
    return table_text(head, rows) + note


def _experiments_text(estimate: Estimate) -> str:
    unit = f"{estimate.machine.unit}-h"
    head = ("experiment", f">alone, {unit}", f">extra, {unit}", ">work alone", ">work extra")
    rows = [
        (name, *_alone_and_extra(estimate, estimate.alone([name]), estimate.additional([name])))
        for name in estimate.experiments
    ]
    return table_text(head, rows)


def _tables_text(estimate: Estimate, tables: Sequence[TableEstimate]) -> str:
    unit = f"{estimate.machine.unit}-h"
    head = (
        "table of the paper",
        f">alone, {unit}",
        f">extra, {unit}",
        ">work alone",
        ">work extra",
        ">experiments",
        ">rows without one",
    )
    rows = [
        (
            f"table {table.number}",
            *_alone_and_extra(estimate, table.alone, table.extra),
            str(len(table.experiments)),
            str(len(table.missing)),
        )
        for table in tables
    ]
    return table_text(head, rows)


def _alone_and_extra(estimate: Estimate, alone: Cost, extra: Cost) -> tuple[str, str, str, str]:
    return (
        number(estimate.hours(alone)),
        number(estimate.hours(extra)),
        quantity(alone.flops, OPERATIONS),
        quantity(extra.flops, OPERATIONS),
    )


def _totals_text(estimate: Estimate) -> str:
    total, machine = estimate.total, estimate.machine
    low, high = estimate.hours_between()
    done = sum(entry.is_done for entry in estimate.nodes)
    head = ("rule", ">nodes", ">done", ">work", ">chip-h", ">core-h", ">disk")
    rows = []
    # `fromkeys` keeps the order of the stages and drops repeated rules.
    for rule in dict.fromkeys(entry.node.rule for entry in estimate.nodes):
        nodes = [entry for entry in estimate.nodes if entry.node.rule == rule]
        rows.append(
            _total_row(
                rule, len(nodes), sum(entry.is_done for entry in nodes), estimate.of_rule(rule)
            )
        )
    rows.append(_total_row("total", len(estimate.nodes), done, total))
    # How much the experiments share: the reason to run them together.
    separate_trainings = sum(
        len(entry.node.experiments) for entry in estimate.nodes if _is_training(entry)
    )
    trainings = sum(map(_is_training, estimate.nodes))
    lines = [
        table_text(head, rows),
        "",
        f"hours     {number(estimate.hours(total))} {machine.unit}-hours, between {number(low)} "
        f"and {number(high)}",
        f"time      {quantity(total.seconds, DURATIONS)} of trainings and predictions, one after "
        f"another on {machine.name}",
        f"shared    {_trainings(separate_trainings)} if each experiment is run alone; "
        f"{trainings:,} here",
    ]
    if estimate.absent:  # the checkout may be elsewhere
        lines.append(f"assumed   sizes of {estimate.absent:,} raw files that are not here")
    return "\n".join(lines)


def _trainings(count: int) -> str:
    return f"{count:,} training{'' if count == 1 else 's'}"


def _total_row(name: str, nodes: int, done: int, cost: Cost) -> tuple[str, ...]:
    return (
        name,
        f"{nodes:,}",
        f"{done:,}",
        quantity(cost.flops, OPERATIONS),
        number(cost.chip_hours),
        number(cost.core_hours),
        quantity(cost.disk_bytes, BYTES),
    )


def _is_training(entry: NodeEstimate) -> bool:
    return entry.node.rule in ("pretrain", "finetune")


def _work(entry: NodeEstimate) -> str:
    if entry.on_device:
        return quantity(entry.work.flops, OPERATIONS)
    return quantity(entry.work.input_bytes, BYTES)


def _rate(entry: NodeEstimate) -> str:
    if entry.on_device:
        return quantity(entry.rate.per_second * entry.chips, SPEEDS)
    return quantity(entry.rate.per_second, SPEEDS[3:])


def memory_text(memory: Memory) -> str:
    """Return whether a step fits, and the cure if it does not."""
    if not memory.available:
        return f"needs {memory.needed / 2**30:.1f} GiB"
    figures = f"{memory.needed / 2**30:.1f} of {memory.available / 2**30:.1f} GiB"
    if memory.source == "preflight":
        figures += " (preflight)"
    if memory.fits:
        return f"fits, {figures}"
    if memory.micro_batches:
        return f"needs micro_batches {memory.micro_batches}, {figures}"
    if memory.batch_size:
        return f"needs batch_size {memory.batch_size}, {figures}"
    return f"does not fit, {figures}"


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; a head that begins with > makes its column flush right."""
    titles = [title.removeprefix(RIGHT) for title in head]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if title.startswith(RIGHT) else cell.ljust(width)
            for title, cell, width in zip(head, row, widths, strict=True)
        ).rstrip()
        for row in [titles, *rows]
    )


def cost_comparison(stages: Sequence[StageCost], estimated: Mapping[str, float]) -> str:
    """Return the cost of a finished run with a column of the estimated seconds.

    Args:
        stages: costs of the stages, then the total.
        estimated: stage -> estimated seconds.
    """
    seconds = {**estimated, "total": sum(estimated.values())}
    head = ("stage", ">jobs", ">seconds", ">estimated", ">CPU seconds", ">peak MB", "machine")
    rows = [
        (
            stage.rule,
            str(stage.jobs),
            stage.seconds,
            f"{seconds[stage.rule]:,.1f}" if stage.rule in seconds else UNKNOWN,
            stage.cpu_seconds,
            stage.megabytes,
            stage.machines,
        )
        for stage in stages
    ]
    return table_text(head, rows) + "\n"


def money_text(estimate: Estimate, price: Price) -> str:
    """Return the price of the hours, with its range and its source."""
    amounts = [
        f"{hours * price.per_chip_hour:,.0f}"
        for hours in (estimate.hours(estimate.total), *estimate.hours_between())
    ]
    unit = estimate.machine.unit
    return (
        f"money     {amounts[0]} {price.currency}, between {amounts[1]} and {amounts[2]}; "
        f"{price.per_chip_hour:g} {price.currency} per {unit}-hour as of {price.as_of} "
        f"({price.source})"
    )


def estimate_values(estimate: Estimate, tables: Sequence[TableEstimate]) -> dict[str, Any]:
    """Return the estimate as JSON values; seconds, hours, bytes and operations in full."""
    low, high = estimate.hours_between()
    machine = estimate.machine
    return {
        "run": estimate.run,
        "machine": {"kind": machine.kind.name, "chips": machine.chips},
        "total": asdict(estimate.total) | {"hours_low": low, "hours_high": high},
        "nodes": [_node_values(entry) for entry in estimate.nodes],
        "experiments": [
            {
                "name": name,
                "row": estimate.rows[name],
                "alone": asdict(estimate.alone([name])),
                "extra": asdict(estimate.additional([name])),
                "attributed": asdict(estimate.attributed(name)),
            }
            for name in estimate.experiments
        ],
        "tables": [asdict(table) for table in tables],
    }


def _node_values(entry: NodeEstimate) -> dict[str, Any]:
    memory = entry.memory
    return {
        "rule": entry.node.rule,
        "node": entry.node.name,
        "experiments": list(entry.node.experiments),
        "upstream": ["/".join(key).rstrip("/") for key in entry.node.upstream],
        "done": entry.is_done,
        **asdict(entry.work),
        "rate": asdict(entry.rate),
        "seconds": entry.seconds,
        "chips": entry.chips,
        "disk_bytes": entry.disk_bytes,
        "memory": None if memory is None else asdict(memory) | {"fits": memory.fits},
    }


def power_text(columns: Sequence[ColumnPower], hours: Mapping[int, float], unit: str) -> str:
    """Return the seeds that each table needs as plain text.

    Args:
        columns: columns of tables, by table.
        hours: table -> hours of one seed of its cheapest experiments; only of tables that the run
            fills.
        unit: of the hours, ``chip`` or ``core``.
    """
    head = (
        "table",
        "column",
        ">pairs",
        ">deviation",
        f">told apart by {CHOSEN_SEEDS}",
        ">seeds for half",
        ">likely",
        ">seeds for all",
        f">{unit}-h for half",
    )
    rows = []
    for column in columns:
        half = column.seeds(0.5)
        low, high = (column.seeds(0.5, deviation) for deviation in column.spread.likely)
        is_measured = column.table in hours and half is not None
        rows.append(
            (
                f"table {column.table}",
                column.column,
                str(len(column.differences)),
                f"{column.spread.deviation:.2f} ({column.spread.freedom})",
                str(column.told_apart(CHOSEN_SEEDS)),
                _seeds(half),
                f"{_seeds(low)} to {_seeds(high)}",
                _seeds(column.seeds(1.0)),
                number(hours[column.table] * (half or 0)) if is_measured else "",
            )
        )
    note = (
        "pairs: rows that the paper tells apart, by two of its own deviations\n"
        "deviation: of our seeds, with its degrees of freedom\n"
        f"seeds: of each row, for a power of {POWER:.0%} at 5 %, if differences were the paper's\n"
        f"likely: with the ends of the {LIKELY:.0%} interval of the deviation\n"
        "hours: of the rows that this run fills, with as many seeds"
    )
    return f"{table_text(head, rows)}\n{note}\n"


def _seeds(count: int | None) -> str:
    return f"> {MOST_SEEDS}" if count is None else str(count)
