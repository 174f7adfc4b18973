"""Arguments that several commands have, and what their words become."""

import argparse
from pathlib import Path
from typing import Any

from t5repro.config.sections.c4 import Engine

RUN_FILES = (".yaml", ".yml")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings of a stage."""
    parser.add_argument(
        "--settings",
        required=True,
        help="the stage's settings as JSON, or a run file that contains them",
    )


def add_run_files(parser: argparse.ArgumentParser) -> None:
    """Add the option that names run files."""
    parser.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        default=[Path("configs/demo.yaml")],
        metavar="FILE",
        help="run files, as for Snakemake; default: configs/demo.yaml",
    )


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add the log of a job; a job with a log below ``logs/`` is recorded."""
    parser.add_argument(
        "--log",
        type=Path,
        nargs="+",  # a storage moves the record as a second log; its path follows from the first
        metavar="FILE",
        help="file that receives all output; the record of the job may follow",
    )


def add_experiment(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--experiment``, and ``--arm``, the word of the report's tables, without help."""
    parser.add_argument("--experiment", default="", help=meaning)
    parser.add_argument(
        "--arm", dest="experiment", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )


def parsed_settings(arguments: argparse.Namespace, stage: str) -> Any:
    """Return the typed settings of a stage from ``--settings``.

    Raises:
        SettingsError: they are not that stage's.
    """
    from t5repro.config.load import load_run_file
    from t5repro.config.stage_settings import stage_model, stage_settings
    from t5repro.config.validation import parse_stage

    text: str = arguments.settings
    if text.endswith(RUN_FILES):
        values = stage_settings(load_run_file(Path(text)), stage)
        return stage_model(stage).model_validate(values)
    return parse_stage(stage, text)


def parsed_step(arguments: argparse.Namespace, stage: str) -> Any:
    """Return the typed settings for the cost of a step of a training from ``--settings``.

    Raises:
        SettingsError: they are not that stage's.
    """
    from t5repro.config.load import load_run_file
    from t5repro.config.stage_settings import step_settings

    text: str = arguments.settings
    if text.endswith(RUN_FILES):
        return step_settings(load_run_file(Path(text)), stage)
    return parsed_settings(arguments, stage)


def parsed_engine(arguments: argparse.Namespace) -> Engine:
    """Return the engine of the corpus from ``--engine``, or from a run file in ``--settings``.

    Raises:
        SettingsError: it is neither JSON of `c4.engine` and `c4.spark` nor a run file.
    """
    from t5repro.config.load import load_run_file
    from t5repro.config.stage_settings import engine_settings
    from t5repro.config.validation import parse_engine

    engine: str = getattr(arguments, "engine", "")
    text: str = engine or arguments.settings
    if text.endswith(RUN_FILES):
        return Engine.model_validate(engine_settings(load_run_file(Path(text))))
    return parse_engine(engine or "{}")
