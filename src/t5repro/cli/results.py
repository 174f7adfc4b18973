"""Subcommands that show a finished run: show, batches."""

import argparse
import dataclasses
import json
from pathlib import Path

from t5repro.cli.arguments import Commands, add_command
from t5repro.errors import SettingsError


def add_results(commands: Commands) -> None:
    """Add the subcommands that show a finished run."""
    show = add_command(commands, "show", _show, "print the scores of a run and its report's path")
    show.add_argument("run", type=Path, help="folder of the run, such as results/demo")
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


def _batches(arguments: argparse.Namespace) -> None:
    from t5repro.inputs.document_steps import steps_of_documents
    from t5repro.inputs.step_audit import open_recorded_inputs, spans_in_step

    inputs, steps = open_recorded_inputs(arguments.manifest)
    if arguments.step is None:
        by_document = steps_of_documents(inputs, [arguments.document], steps=steps)
        answer = {"document": arguments.document, "steps": by_document[arguments.document]}
        print(json.dumps(answer))
        return
    if not 0 <= arguments.step < steps:
        raise SettingsError(f"--step is {arguments.step}; the training had steps 0 to {steps - 1}")
    for span in spans_in_step(inputs, arguments.step):
        print(json.dumps(dataclasses.asdict(span)))
