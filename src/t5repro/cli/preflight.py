"""The subcommand `preflight`: a training step compiled for a TPU slice, without a TPU."""

import argparse
from pathlib import Path
from typing import Any

MEANING = "compile a training step for a TPU slice, without a TPU"


def add_preflight(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("preflight", help=MEANING, description=MEANING)
    parser.set_defaults(handler=_preflight)
    parser.add_argument(
        "--settings",
        required=True,
        help="the stage's settings as JSON, or a run file to take them from",
    )
    parser.add_argument("--log", type=Path, help="file that gets everything printed")
    parser.add_argument("--stage", choices=["pretrain", "finetune"], default="pretrain")
    parser.add_argument("--slice", default="", help="such as v5e:4x4; else devices.slice")
    parser.add_argument("--python", help="interpreter with the packages of the extra preflight")
    parser.add_argument("--report", type=Path, help="JSON file to write if the step fits")


def _preflight(arguments: argparse.Namespace) -> None:
    from t5repro.config.load import load_run_file
    from t5repro.config.stage_settings import stage_model, stage_settings
    from t5repro.config.validation import parse_stage
    from t5repro.train.preflight import default_python, preflight

    text: str = arguments.settings
    if text.endswith((".yaml", ".yml")):
        values = stage_settings(load_run_file(Path(text)), arguments.stage)
        settings: Any = stage_model(arguments.stage).model_validate(values)
    else:
        settings = parse_stage(arguments.stage, text)
    preflight(
        settings,
        slice_name=arguments.slice,
        python=arguments.python or default_python(),
        report=arguments.report,
    )
