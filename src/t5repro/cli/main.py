"""The command line: parses arguments and prints answers; what they mean is decided elsewhere.

The only reader of arguments. A subcommand imports its code when it runs, so that an audit or a dry
run never waits for TensorFlow. To add one: a row in `cli/stages.py` for a rule, a function in the
module of its group for anything else.
"""

import argparse
import contextlib
import difflib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from t5repro import __version__
from t5repro.cli import (
    audit,
    estimate,
    export,
    fetch_plan,
    predict,
    preflight,
    project,
    publish,
    results,
    settings,
    stages,
    tasks,
    versions,
)
from t5repro.cli.arguments import parsed_settings
from t5repro.cli.writing import writing
from t5repro.errors import T5ReproError
from t5repro.lineage.storage_folder import checkout_paths
from t5repro.progress import announce, log_to
from t5repro.stages import BY_NAME

NO_UTF8 = UNREADABLE = NOT_INSTALLED = 2
CLOSED_PIPE = 141  # what a shell reports after SIGPIPE
INTERRUPTED = 130  # what a shell reports after Ctrl-C
TERMINATED = 143  # what a shell reports after SIGTERM
SHELLS = ("bash", "zsh", "fish")
GROUPS = (
    (
        "a run and its results",
        (
            project.add_init,
            results.add_results,
            predict.add_predict,
            settings.add_config,
            tasks.add_tasks,
            estimate.add_estimate,
            fetch_plan.add_fetch_plan,
        ),
    ),
    ("audit", (audit.add_audit, export.add_export)),
    ("versions with DVC", (versions.add_versions,)),
    ("exchange with other libraries", (publish.add_publish,)),
    ("stages; the rules call them", (preflight.add_preflight, stages.add_stages)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return the exit code."""
    _print_any_character()
    words = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(checkout_paths(words))
    signal.signal(signal.SIGTERM, _terminate)
    log = getattr(arguments, "log", None)
    with log_to(log[0]) if log else contextlib.nullcontext():
        try:
            with _recorded(arguments), writing(arguments):
                code: int | None = arguments.handler(arguments)
            sys.stdout.flush()  # here, where a closed pipe is expected
            return code or 0
        except T5ReproError as error:
            announce(f"t5repro {arguments.command}: {error}")
            return error.exit_code
        except PermissionError as error:
            announce(
                f"t5repro {arguments.command}: {error.filename}: {error.strerror}; run it as the "
                "owner of the checkout, or have them allow reading: chmod -R a+rX"
            )
            return UNREADABLE
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package in ("", "t5repro"):
                raise
            announce(
                f"t5repro {arguments.command}: {package} is not installed; "
                "requirements/cpu-gpu.txt has the packages of all commands (make setup)"
            )
            return NOT_INSTALLED
        except BrokenPipeError:  # as in `t5repro verify | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
            return CLOSED_PIPE
        except UnicodeEncodeError as error:
            if sys.getfilesystemencoding() == "utf-8":
                raise
            announce(
                f"t5repro {arguments.command}: this locale has no file name {error.object!r}; "
                "set PYTHONUTF8=1, or a UTF-8 locale"
            )
            return NO_UTF8
        except KeyboardInterrupt:
            announce(f"t5repro {arguments.command}: stopped; the same command resumes it")
            return INTERRUPTED


def _print_any_character() -> None:
    """Escape what the terminal's encoding lacks: paths and URLs may contain any character."""
    for screen in (sys.stdout, sys.stderr):
        if isinstance(screen, io.TextIOWrapper):
            screen.reconfigure(errors="backslashreplace")


def _recorded(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return the context that writes the job's record; an empty one for other subcommands."""
    stage = arguments.command
    if not getattr(arguments, "log", None) or stage not in BY_NAME or stage == "preflight":
        return contextlib.nullcontext()
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


class _Terminated(SystemExit):
    """SIGTERM: unwinds like Ctrl-C, so that temporary files are removed and state is saved."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated(TERMINATED)


class _Parser(argparse.ArgumentParser):
    """A parser whose error for an unknown subcommand names the nearest one."""

    def error(self, message: str) -> NoReturn:
        word, names = self._unknown_command()
        if word is not None:
            close = difflib.get_close_matches(word, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            message = f"there is no command {word!r}{hint} (t5repro --help lists them)"
        super().error(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _unknown_command(self) -> tuple[str | None, list[str]]:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                words = [word for word in self._words if not word.startswith("-")]
                if words and words[0] not in action.choices:
                    return words[0], list(action.choices)
        return None, []


class _CommandParser(argparse.ArgumentParser):
    """A parser of a subcommand: options may stand between the words of a list."""

    _is_intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        has_list = any(action.nargs == "*" for action in self._get_positional_actions())
        if self._is_intermixed or not has_list:
            return super().parse_known_args(args, namespace)
        self._is_intermixed = True  # the next line calls this method again
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_intermixed = False


class _PrintCompletion(argparse.Action):
    """Prints a script for the shell and ends; imports its library when asked to."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        import shtab

        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                action.help = None  # what --help does not list, shtab leaves out
        print(shtab.complete(parser, shell=values))
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with every subcommand."""
    root = _Parser(
        prog="t5repro",
        usage="t5repro [--version] COMMAND [OPTION ...]",
        description="T5 from the crawl to the scores, with a record of every step.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"t5repro {__version__}")
    root.add_argument(
        "--completion",
        action=_PrintCompletion,
        choices=SHELLS,
        help='print what completes commands and options, for eval "$(t5repro --completion bash)"',
    )
    commands = root.add_subparsers(
        prog=root.prog,  # otherwise the usage of a subcommand starts with the whole usage of this
        dest="command",
        required=True,
        metavar="COMMAND",
        parser_class=_CommandParser,
        help=argparse.SUPPRESS,
    )
    listing = []
    for title, functions in GROUPS:
        before = set(commands.choices)
        for add in functions:
            add(commands)
        listing.append(_group_help(commands, title, before))
    root.epilog = "\n\n".join(listing) + "\n\nt5repro COMMAND --help describes a command."
    return root


def _group_help(commands: Any, title: str, before: set[str]) -> str:
    lines = [f"{title}:"]
    for name, command in commands.choices.items():
        if name not in before:
            lines.append(f"  {name:18} {command.description}")
    return "\n".join(lines)
