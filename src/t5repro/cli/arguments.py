"""Options that name files and steps, and what their words mean."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from t5repro.errors import SettingsError


def pairs(items: Sequence[str]) -> dict[str, Path]:
    """Return ``{"en": Path("list")}`` from ``["en=list"]``."""
    pairs = {}
    for item in items:
        name, separator, path = item.partition("=")
        if not separator or not name or not path:
            raise SettingsError(f"argument {item!r} must be NAME=FILE")
        pairs[name] = Path(path)
    return pairs


def add_examples(parser: argparse.ArgumentParser, option: str, meaning: str) -> None:
    """Add an option that takes the examples of several tasks."""
    parser.add_argument(f"--{option}", type=Path, nargs="+", required=True, help=meaning)


def by_folder(paths: Sequence[Path]) -> dict[str, Path]:
    """Return ``{"glue_cola": Path(".../glue_cola/train.jsonl")}``."""
    return {path.parent.name: path for path in paths}


def by_name(paths: Sequence[Path]) -> dict[str, Path]:
    """Return ``{"glue_cola": Path(".../glue_cola.jsonl")}``."""
    return {path.stem: path for path in paths}


def add_kept_steps(command: argparse.ArgumentParser) -> None:
    """Add the option that names kept checkpoints."""
    command.add_argument(
        "--kept-steps",
        nargs="*",
        type=int,
        default=[],
        metavar="STEP",
        help="steps of fine-tuning that are evaluated beside the last",
    )
