"""Arguments that several subcommands have, and what their words become.

An argument is named after the keyword of the function that receives it.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from t5repro.cli.examples import epilog
from t5repro.errors import SettingsError
from t5repro.lineage.input_hashes import Expected, expected_files, expected_raw_files, manifest_of

Handler = Callable[[argparse.Namespace], int | None]
Writes = bool | Callable[[argparse.Namespace], bool]
Kind = Literal["input", "raw", "either", "other"]
Commands = Any  # argparse._SubParsersAction, which argparse does not export


@dataclass(frozen=True)
class Argument:
    """An option of a subcommand.

    Attributes:
        name: keyword of the function; also the option, with dashes.
        help: its meaning.
        options: keywords of `argparse.ArgumentParser.add_argument`.
        convert: turns the parsed value into what the function receives.
        kind: ``input`` is a file of an earlier stage, ``raw`` one that the rule `data` checked,
            ``either`` may be both; all are verified before the function is called.
        listed: patterns of further files that the function reads, as the manifest lists them.
    """

    name: str
    help: str
    options: dict[str, Any] = field(default_factory=dict)
    convert: Callable[[Any], Any] | None = None
    kind: Kind = "other"
    listed: tuple[str, ...] = ()

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the option to a parser."""
        parser.add_argument("--" + self.name.replace("_", "-"), help=self.help, **self.options)

    def value(self, arguments: argparse.Namespace) -> Any:
        """Return what the function receives."""
        value = getattr(arguments, self.name)
        return self.convert(value) if self.convert else value

    def expected(self, value: Any, data: Path | None) -> Iterator[Expected]:
        """Yield the files that a function reads through this argument.

        Args:
            value: what the function receives.
            data: the manifest of the rule `data`, if the stage reads raw files.
        """
        for file in _files(value) if self.kind != "other" else ():
            if self.kind == "input" or (self.kind == "either" and manifest_of(file).is_file()):
                yield from expected_files(file, self.listed)
            elif data is not None:
                yield from expected_raw_files([file], data)


def path(
    name: str, meaning: str, *, kind: Kind = "other", listed: tuple[str, ...] = ()
) -> Argument:
    """Return a required file or folder."""
    return Argument(name, meaning, {"type": Path, "required": True}, kind=kind, listed=listed)


def optional_path(
    name: str, meaning: str, *, kind: Kind = "other", listed: tuple[str, ...] = ()
) -> Argument:
    """Return a file or folder that may be left out."""
    return Argument(name, meaning, {"type": Path}, kind=kind, listed=listed)


def paths(
    name: str,
    meaning: str,
    convert: Callable[[Sequence[Path]], Any] | None = None,
    *,
    kind: Kind = "input",
    listed: tuple[str, ...] = (),
) -> Argument:
    """Return a required list of files."""
    options = {"type": Path, "nargs": "+", "required": True, "metavar": "FILE"}
    return Argument(name, meaning, options, convert, kind=kind, listed=listed)


def named_paths(
    name: str,
    meaning: str,
    key: str,
    *,
    required: bool = True,
    kind: Kind = "input",
    listed: tuple[str, ...] = (),
) -> Argument:
    """Return a list of ``KEY=FILE``, which becomes a mapping."""
    options = {"nargs": "+", "required": True} if required else {"nargs": "*", "default": []}
    options = {**options, "metavar": f"{key}=FILE"}
    return Argument(name, meaning, options, pairs, kind=kind, listed=listed)


MANIFEST = path("manifest", "manifest to write")
DATA = Argument(
    "data", "manifest of the rule data, which has the hashes of the raw files", {"type": Path}
)
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


def _files(value: Any) -> Iterator[Path]:
    """Yield the paths in what a function receives: a path, a list or a mapping of paths."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _files(item)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings of a stage."""
    parser.add_argument(
        "--settings",
        required=True,
        help="the stage's settings as JSON, or a run file that contains them",
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
    if text.endswith((".yaml", ".yml")):
        values = stage_settings(load_run_file(Path(text)), stage)
        return stage_model(stage).model_validate(values)
    return parse_stage(stage, text)


def add_command(
    commands: Commands, name: str, handler: Handler, meaning: str, *, writes: Writes = False
) -> argparse.ArgumentParser:
    """Add a subcommand without arguments of its own; its help ends with its examples.

    Args:
        commands: the subcommands.
        name: of the subcommand.
        handler: does its work.
        meaning: one line for its help.
        writes: whether it changes results, records or lists of the checkout, or says so of the
            arguments; no run may be at work then (`cli/writing.py`).
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=meaning,
        description=meaning,
        epilog=epilog(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,  # keeps the lines of the examples
    )
    parser.set_defaults(handler=handler, writes=writes)
    return parser
