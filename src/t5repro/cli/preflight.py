"""The command `preflight`: compile a training step for a TPU slice, without a TPU."""

import argparse
from pathlib import Path

from t5repro.cli.arguments import add_log, add_settings, parsed_settings
from t5repro.cli.parsers import Commands, add_command


def add_preflight(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands, "preflight", _preflight, "compile a training step for a TPU slice, without a TPU"
    )
    add_settings(parser)
    add_log(parser)
    parser.add_argument("--stage", choices=["pretrain", "finetune"], default="pretrain")
    parser.add_argument("--slice", default="", help="such as v5e:4x4; default: devices.slice")
    parser.add_argument("--python", help="interpreter with the packages of the extra preflight")
    parser.add_argument("--report", type=Path, help="JSON file to write if the step fits")


def _preflight(arguments: argparse.Namespace) -> None:
    from t5repro.train.preflight import default_python, preflight

    preflight(
        parsed_settings(arguments, arguments.stage),
        slice_name=arguments.slice,
        python=arguments.python or default_python(),
        report=arguments.report,
    )
