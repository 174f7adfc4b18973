"""The command `estimate`: hours, disk and memory of a run before anything runs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from t5repro.cli.arguments import add_run_files
from t5repro.cli.parsers import Commands, OutputFile, add_command
from t5repro.errors import SettingsError

if TYPE_CHECKING:
    from t5repro.estimate.plan import Estimate

BEYOND_BUDGET = 3


def add_estimate(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "estimate",
        _estimate,
        "print FLOPs, hours, disk and memory of a run's nodes and experiments, before it runs",
    )
    add_run_files(parser)
    parser.add_argument(
        "--machine",
        default="",
        help="such as v5e-8, v4-8, h100-8, a100 or cpu-2; default: that of devices.slice, or a CPU",
    )
    parser.add_argument("--chips", type=int, help="number of chips; of a CPU cores")
    parser.add_argument(
        "--table",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="tables of the paper; also prints the cheapest experiments that fill them",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="HOURS",
        help="chip-hours, of a CPU core-hours; exit code 3 if the estimate is above",
    )
    parser.add_argument(
        "--power",
        type=Path,
        nargs="+",
        default=[],
        metavar="SCORES",
        help="scores.csv of runs with several seeds; prints how many tell the paper's rows apart",
    )
    parser.add_argument("--rates", type=Path, help="measured speeds, in YAML or JSON")
    parser.add_argument(
        "--probe",
        type=OutputFile,
        metavar="FILE",
        help="measure 20 steps of each distinct training on this machine, write them to FILE for "
        "--rates, and use them in place of records",
    )
    parser.add_argument("--prices", type=Path, help="prices of chips, in YAML; without, no money")
    parser.add_argument("--json", type=OutputFile, help="write the estimate to a file, too")
    parser.add_argument("--all", action="store_true", help="print every node")
    parser.add_argument(
        "--from-table", action="store_true", help="use no record of this checkout for speeds"
    )


def _estimate(arguments: argparse.Namespace) -> int:
    from t5repro.config.load import load_run_files
    from t5repro.config.project_files import project_file
    from t5repro.estimate.machines import machine_named, machine_of
    from t5repro.estimate.plan import Calibration, estimate_run
    from t5repro.estimate.prices import read_price
    from t5repro.estimate.probe import probe_rates
    from t5repro.estimate.rates import read_rates
    from t5repro.estimate.records import examples_in, samples_of
    from t5repro.estimate.start import memory_faults
    from t5repro.estimate.tables import cheapest_of_tables, table_estimates
    from t5repro.estimate.text import estimate_text, estimate_values, money_text
    from t5repro.files import write_json
    from t5repro.lineage.environment import processors
    from t5repro.lineage.record import read_records
    from t5repro.lineage.store import Folder
    from t5repro.plan.run_plan import RunPlan

    budget = arguments.budget
    if budget is not None and not 0 <= budget < float("inf"):
        raise SettingsError(f"--budget {budget:g} must be 0 or a number of hours")
    settings = load_run_files([*map(project_file, arguments.configfile)])
    # What is measured here is a run on all of these cores, several trainings at a time.
    here = processors() if arguments.probe and settings.devices.kind == "cpu" else None
    machine = (
        machine_named(arguments.machine, arguments.chips)
        if arguments.machine
        else machine_of(settings.devices, arguments.chips or here)
    )
    price = read_price(arguments.prices, machine.kind.name) if arguments.prices else None
    root = Path()
    records = read_records(Folder(root))
    measured = read_rates(arguments.rates) if arguments.rates else ()
    if arguments.probe:
        measured += probe_rates(RunPlan(settings).nodes, machine)
        write_json(arguments.probe, {"rates": [rate.model_dump() for rate in measured]})
    calibration = Calibration(
        samples=[] if arguments.from_table else samples_of(records),
        measured=measured,
        examples=examples_in(records, settings.run.name),
    )
    estimate = estimate_run(settings, machine, root=root, calibration=calibration)
    tables = table_estimates(estimate, arguments.table)
    print(estimate_text(estimate, tables, every_node=arguments.all), end="")
    if machine.memory:
        for fault in memory_faults(entry.node for entry in estimate.nodes):
            print(f"memory    {fault}")
    if price is not None:
        print(money_text(estimate, price))
    if arguments.table:
        names = cheapest_of_tables(estimate, arguments.table)
        hours = estimate.hours(estimate.alone(names))
        print(f"cheapest  {hours:,.1f} {machine.unit}-hours fill these tables: {', '.join(names)}")
    if arguments.power:
        print(f"\n{_power_text(arguments, estimate)}", end="")
    if arguments.json:
        write_json(arguments.json, estimate_values(estimate, tables))
    return _within(budget, estimate.hours(estimate.total), machine.unit)


def _power_text(arguments: argparse.Namespace, estimate: "Estimate") -> str:
    """Return the seeds that tables need, and the hours of those that the run fills."""
    from t5repro.estimate.power import column_powers, spreads
    from t5repro.estimate.tables import one_of_each_row
    from t5repro.estimate.text import power_text
    from t5repro.report.scores_csv import read_csv

    columns = column_powers(spreads(map(read_csv, arguments.power)), arguments.table)
    hours = {
        number: estimate.hours(estimate.alone(names))
        for number in {column.table for column in columns}
        if (names := one_of_each_row(estimate, number))
    }
    return power_text(columns, hours, estimate.machine.unit)


def _within(budget: float | None, hours: float, unit: str) -> int:
    """Print whether the hours are within the budget; return the exit code."""
    if budget is None:
        return 0
    from t5repro.estimate.text import number

    if hours <= budget:
        print(f"budget    {budget:,g} {unit}-hours: enough")
        return 0
    print(f"budget    {budget:,g} {unit}-hours: {number(hours - budget)} too few")
    return BEYOND_BUDGET
