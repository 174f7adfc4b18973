"""The command of a stage: its row in the table of `cli/stages.py`, and how it is run."""

import argparse
import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from t5repro.cli.arguments import DATA, Argument, parsed_settings
from t5repro.cli.c4 import ENGINE
from t5repro.lineage.input_hashes import Expected, verify_inputs

Handler = Callable[..., None]


@dataclass(frozen=True)
class StageCommand:
    """The subcommand of a stage.

    The settings of the stage are the first argument of its function, `arguments` become keywords.

    Attributes:
        stage: name of the stage and of the subcommand.
        help: what it does.
        function: ``module:function`` below `t5repro`, or a handler that takes the settings, the
            parsed arguments and the keywords. The inputs are verified before it is called.
        arguments: its options.
        on_engine: whether the handler takes the inputs, too, and verifies them on its engine.
    """

    stage: str
    help: str
    function: str | Handler
    arguments: tuple[Argument, ...]
    on_engine: bool = False


def run_stage(row: StageCommand, arguments: argparse.Namespace) -> None:
    """Do the work of a stage; with a log, its record is written."""
    with _recorded(row.stage, arguments) if arguments.log else contextlib.nullcontext():
        _run_verified(row, arguments)


def _recorded(stage: str, arguments: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return the context that writes the record of a job."""
    from t5repro.config.stage_settings import received
    from t5repro.lineage.record import recording

    values = parsed_settings(arguments, stage).model_dump(mode="json")
    return recording(
        stage,
        log=arguments.log[0],
        settings=received(stage, values),
        files=list(_named_files(arguments)),
        manifest=getattr(arguments, "manifest", None),
    )


def _named_files(arguments: argparse.Namespace) -> Iterator[Path]:
    """Yield every file that the command line names, except the log."""
    for option, value in sorted(vars(arguments).items()):
        if option in ("log", "settings", "engine"):
            continue
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, Path):
                yield word
            elif isinstance(word, str) and "=" in word:
                yield Path(word.partition("=")[2])


def _run_verified(row: StageCommand, arguments: argparse.Namespace) -> None:
    """Verify the inputs of a stage and do its work."""
    values = {argument.name: argument.value(arguments) for argument in row.arguments}
    for other in (DATA, ENGINE):  # no arguments of the function
        values.pop(other.name, None)
    settings = parsed_settings(arguments, row.stage)
    expected = expected_inputs(row, arguments)
    if not row.on_engine:
        verify_inputs(expected)
    if isinstance(row.function, str):
        entry_function(row.function)(settings, **values)
    elif row.on_engine:
        row.function(settings, arguments, values, expected)
    else:
        row.function(settings, arguments, values)


def expected_inputs(row: StageCommand, arguments: argparse.Namespace) -> list[Expected]:
    """Return the files that a job reads, with the hashes that their manifests state.

    Raises:
        ArtifactError: a manifest is missing or was altered.
    """
    data = getattr(arguments, DATA.name, None)
    return [
        file
        for argument in row.arguments
        for file in argument.expected(argument.value(arguments), data)
    ]


def entry_function(name: str) -> Callable[..., None]:
    """Import ``module:function`` below `t5repro`."""
    module, _, function = name.partition(":")
    entry_point: Callable[..., None] = getattr(
        importlib.import_module(f"t5repro.{module}"), function
    )
    return entry_point
