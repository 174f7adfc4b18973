"""Arguments that several subcommands have, and what their words become.

An argument is named after the keyword of the function that receives it.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t5repro.errors import SettingsError

Handler = Callable[[argparse.Namespace], int | None]
Commands = Any  # argparse._SubParsersAction, which argparse does not export


@dataclass(frozen=True)
class Argument:
    """An option of a subcommand.

    Attributes:
        name: keyword of the function; also the option, with dashes.
        help: its meaning.
        options: keywords of `argparse.ArgumentParser.add_argument`.
        convert: turns the parsed value into what the function receives.
    """

    name: str
    help: str
    options: dict[str, Any] = field(default_factory=dict)
    convert: Callable[[Any], Any] | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the option to a parser."""
        parser.add_argument("--" + self.name.replace("_", "-"), help=self.help, **self.options)

    def value(self, arguments: argparse.Namespace) -> Any:
        """Return what the function receives."""
        value = getattr(arguments, self.name)
        return self.convert(value) if self.convert else value


def path(name: str, meaning: str) -> Argument:
    """Return a required file or folder."""
    return Argument(name, meaning, {"type": Path, "required": True})


def optional_path(name: str, meaning: str) -> Argument:
    """Return a file or folder that may be left out."""
    return Argument(name, meaning, {"type": Path})


def paths(
    name: str, meaning: str, convert: Callable[[Sequence[Path]], Any] | None = None
) -> Argument:
    """Return a required list of files."""
    options = {"type": Path, "nargs": "+", "required": True, "metavar": "FILE"}
    return Argument(name, meaning, options, convert)


def named_paths(name: str, meaning: str, key: str, *, required: bool = True) -> Argument:
    """Return a list of ``KEY=FILE``, which becomes a mapping."""
    options = {"nargs": "+", "required": True} if required else {"nargs": "*", "default": []}
    return Argument(name, meaning, {**options, "metavar": f"{key}=FILE"}, pairs)


MANIFEST = path("manifest", "manifest to write")
KEPT_STEPS = Argument(
    "kept_steps",
    "steps of fine-tuning that are evaluated in addition to the last",
    {"nargs": "*", "type": int, "default": [], "metavar": "STEP"},
)


def pairs(words: Sequence[str]) -> dict[str, Path]:
    """Return ``{"en": Path("list")}`` from ``["en=list"]``.

    Raises:
        SettingsError: a word is not ``NAME=FILE``.
    """
    return dict(map(_pair, words))


def pair_lists(words: Sequence[str]) -> dict[str, list[Path]]:
    """Return ``{"train": [Path("a"), Path("b")]}`` from ``["train=a", "train=b"]``.

    Raises:
        SettingsError: a word is not ``NAME=FILE``.
    """
    files: dict[str, list[Path]] = {}
    for name, file in map(_pair, words):
        files.setdefault(name, []).append(file)
    return files


def _pair(word: str) -> tuple[str, Path]:
    name, separator, file = word.partition("=")
    if not separator or not name or not file:
        raise SettingsError(f"argument {word!r} must be NAME=FILE")
    return name, Path(file)


def by_folder(files: Sequence[Path]) -> dict[str, Path]:
    """Return ``{"glue_cola": Path(".../glue_cola/train.jsonl")}``."""
    return {file.parent.name: file for file in files}


def by_stem(files: Sequence[Path]) -> dict[str, Path]:
    """Return ``{"glue_cola": Path(".../glue_cola.jsonl")}``."""
    return {file.stem: file for file in files}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings of a stage."""
    parser.add_argument(
        "--settings",
        required=True,
        help="the stage's settings as JSON, or a run file that contains them",
    )


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add the log of a job; a job with a log below ``logs/`` is recorded."""
    parser.add_argument("--log", type=Path, help="file that receives all output")


def parsed_settings(arguments: argparse.Namespace, stage: str) -> Any:
    """Return the typed settings of a stage from ``--settings``.

    Raises:
        SettingsError: they are not that stage's.
    """
    from t5repro.config.load import load_run_file
    from t5repro.config.stage_settings import stage_model, stage_settings
    from t5repro.config.validation import parse_stage

    text: str = arguments.settings
    if text.endswith((".yaml", ".yml")):
        values = stage_settings(load_run_file(Path(text)), stage)
        return stage_model(stage).model_validate(values)
    return parse_stage(stage, text)


def add_command(
    commands: Commands, name: str, handler: Handler, meaning: str
) -> argparse.ArgumentParser:
    """Add a subcommand without arguments of its own."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(handler=handler)
    return parser
