"""The command line: parses arguments and prints answers; what they mean is decided elsewhere.

The only reader of arguments. A command imports its code when it runs, so that an audit or a dry
run never waits for TensorFlow. To add one: a function in the module of its group; for a
rule a job in `t5repro.jobs`, which its command is made from.
"""

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from t5repro import __version__
from t5repro.cli import (
    audit,
    crawl,
    estimate,
    export,
    predict,
    project,
    results,
    runs,
    settings,
    stages,
    tasks,
    versions,
    weights,
)
from t5repro.cli.parsers import PROGRAM, Commands, Parser, PrintCompletion
from t5repro.cli.renamed import refusal
from t5repro.cli.writing import writing
from t5repro.errors import T5ReproError
from t5repro.lineage.storage_folder import checkout_paths
from t5repro.progress import announce, log_to

NO_UTF8 = UNREADABLE = NOT_INSTALLED = 2
CLOSED_PIPE = 141  # what a shell reports after SIGPIPE
INTERRUPTED = 130  # what a shell reports after Ctrl-C
TERMINATED = 143  # what a shell reports after SIGTERM
SHELLS = ("bash", "zsh", "fish")
RENAMED_COMMAND = 2
SECTIONS = (
    (
        "a run and its results",
        (
            project.add_project,
            settings.add_config,
            tasks.add_tasks,
            crawl.add_crawl,
            estimate.add_estimate,
            results.add_results,
            predict.add_predict,
            weights.add_weights,
        ),
    ),
    ("audit", (audit.add_audit, runs.add_runs, export.add_export)),
    ("versions with DVC", (versions.add_versions,)),
    ("jobs", (stages.add_stages,)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    _print_any_character()
    words = sys.argv[1:] if argv is None else argv
    if message := refusal(words):
        announce(message)
        return RENAMED_COMMAND
    arguments = parser().parse_args(checkout_paths(words))
    signal.signal(signal.SIGTERM, _terminate)
    name, log = f"{PROGRAM} {arguments.command}", getattr(arguments, "log", None)
    with log_to(log[0]) if log else contextlib.nullcontext():
        try:
            with writing(arguments):
                code: int | None = arguments.handler(arguments)
            sys.stdout.flush()  # here, where a closed pipe is expected
            return code or 0
        except T5ReproError as error:
            announce(f"{name}: {error}")
            return error.exit_code
        except PermissionError as error:
            announce(
                f"{name}: {error.filename}: {error.strerror}; run it as the "
                "owner of the checkout, or have them allow reading: chmod -R a+rX"
            )
            return UNREADABLE
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package in ("", "t5repro"):
                raise
            announce(
                f"{name}: {package} is not installed; "
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
                f"{name}: this locale has no file name {error.object!r}; "
                "set PYTHONUTF8=1, or a UTF-8 locale"
            )
            return NO_UTF8
        except OSError as error:
            if error.filename is None:
                raise
            announce(f"{name}: {error.filename} cannot be used: {error.strerror}")
            return UNREADABLE
        except KeyboardInterrupt:
            announce(f"{name}: stopped; the same command resumes it")
            return INTERRUPTED


def _print_any_character() -> None:
    """Escape what the terminal's encoding lacks: paths and URLs may contain any character."""
    for screen in (sys.stdout, sys.stderr):
        if isinstance(screen, io.TextIOWrapper):
            screen.reconfigure(errors="backslashreplace")


class _Terminated(SystemExit):
    """SIGTERM: unwinds like Ctrl-C, so that temporary files are removed and state is saved."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated(TERMINATED)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with every subcommand."""
    root = Parser(
        prog=PROGRAM,
        usage="t5repro [--version] COMMAND [OPTION ...]",
        description="T5 from the crawl to the scores, with a record of every step.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"t5repro {__version__}")
    root.add_argument(
        "--completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f'eval "$(t5repro --completion SHELL)" ({", ".join(SHELLS)})',
    )
    commands = root.add_subparsers(
        prog=root.prog,  # otherwise the usage of a command starts with the whole usage of this
        required=True,
        metavar="COMMAND",
        help=argparse.SUPPRESS,
    )
    listing = []
    for title, functions in SECTIONS:
        listed = set(commands.choices)
        for add in functions:
            add(commands)
        listing.append(_section(commands, title, listed))
    root.epilog = "\n\n".join(listing) + "\n\nt5repro COMMAND --help describes a command."
    return root


def _section(commands: Commands, title: str, listed: set[str]) -> str:
    """Return the lines of the commands that are not yet listed."""
    lines = [f"{title}:"]
    for name, command in commands.choices.items():
        if name not in listed:
            lines.append(f"  {name:13}  {command.description}")
    return "\n".join(lines)
