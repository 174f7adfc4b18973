"""Commands about a finished run: show, cost, batches."""

import argparse
import dataclasses
import json
from pathlib import Path

from t5repro.cli.parsers import Commands, OutputFile, add_command
from t5repro.errors import SettingsError


def add_results(commands: Commands) -> None:
    """Add the commands that show a finished run."""
    show = add_command(commands, "show", _show, "print the scores of a run and its report's path")
    show.add_argument("run", type=Path, help="folder of the run, such as results/demo")
    cost = add_command(commands, "cost", _cost, "print time, memory and machine of every stage")
    cost.add_argument("run", type=Path, help="folder of the run, such as results/demo")
    cost.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="run files of the run; adds the seconds that they are estimated to take",
    )
    cost.add_argument("--html", type=OutputFile, help="write the table as a page, too")
    batches = add_command(
        commands,
        "batches",
        _batches,
        "print the documents of a pre-training step, or the steps of a document",
    )
    batches.add_argument("manifest", type=Path, help="manifest of the pre-training")
    question = batches.add_mutually_exclusive_group(required=True)
    question.add_argument("--step", type=int, help="number of a step, from 0")
    question.add_argument("--document", type=int, help="index of a document of tokens, from 0")


def _show(arguments: argparse.Namespace) -> None:
    from t5repro.report.text_table import scores_text

    print(scores_text(arguments.run), end="")


def _cost(arguments: argparse.Namespace) -> None:
    from t5repro.files import write_text
    from t5repro.report.cost import cost_page, cost_text, job_costs, stage_costs

    stages = stage_costs(job_costs(arguments.run))
    if arguments.html:
        write_text(arguments.html, cost_page(arguments.run.resolve().name, stages))
    if not arguments.configfile:
        print(cost_text(stages), end="")
        return
    from t5repro.estimate.text import cost_comparison

    print(cost_comparison(stages, _estimated(arguments)), end="")


def _estimated(arguments: argparse.Namespace) -> dict[str, float]:
    """Return stage -> estimated seconds of a finished run."""
    from t5repro.config.load import load_run_files
    from t5repro.config.project_files import project_file
    from t5repro.estimate.plan import estimated_seconds
    from t5repro.lineage.record import read_records
    from t5repro.lineage.store import Folder

    settings = load_run_files([*map(project_file, arguments.configfile)])
    folder = arguments.run.resolve()
    if settings.run.name != folder.name:
        raise SettingsError(
            f"--configfile has the run {settings.run.name!r} and {arguments.run} is another; name "
            "the run files of that run"
        )
    return estimated_seconds(settings, read_records(Folder(folder.parents[1])))


def _batches(arguments: argparse.Namespace) -> None:
    from t5repro.engines.devices import default_devices, set_environment
    from t5repro.files import read_json

    read_json(arguments.manifest)  # a wrong file is named before the engine starts
    set_environment(default_devices())  # its log is quiet
    from t5repro.systems.step_audit import open_recorded_inputs, spans_in_step, steps_of_document

    inputs, steps = open_recorded_inputs(arguments.manifest)
    if arguments.step is None:
        read = steps_of_document(inputs, arguments.document, steps=steps)
        print(json.dumps({"document": arguments.document, "steps": read}))
        return
    if not 0 <= arguments.step < steps:
        raise SettingsError(f"--step is {arguments.step}; the training had steps 0 to {steps - 1}")
    for span in spans_in_step(inputs, arguments.step):
        row = dataclasses.asdict(span)
        if span.denoiser is None:  # the objective is no mixture of denoisers
            del row["denoiser"]
        print(json.dumps(row))
