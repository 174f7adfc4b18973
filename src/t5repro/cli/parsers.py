"""Parsers of the command line: commands, groups of commands, and what completes them."""

import argparse
import difflib
import sys
from collections.abc import Callable, Iterator
from pathlib import PosixPath
from typing import Any, NoReturn

from t5repro.cli.examples import epilog
from t5repro.progress import printable

PROGRAM = "t5repro"
Handler = Callable[[argparse.Namespace], int | None]
Writes = bool | Callable[[argparse.Namespace], bool]
Commands = Any  # argparse._SubParsersAction, which argparse does not export


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest command, and takes options between the words of a list."""

    _words: list[str]
    _is_intermixed = False

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit."""
        word, names = self._unknown_command()
        if word is not None:
            close = difflib.get_close_matches(word, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            message = f"there is no command {word!r}{hint} ({self.prog} --help lists them)"
        super().error(printable(message))  # it quotes the user's words

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words, words of a list also if options divide it."""
        self._words = list(sys.argv[1:] if args is None else args)
        has_list = any(action.nargs == "*" for action in self._get_positional_actions())
        if self._is_intermixed or not has_list:
            return super().parse_known_args(args, namespace)
        self._is_intermixed = True  # the next line calls this method again
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_intermixed = False

    def _unknown_command(self) -> tuple[str | None, list[str]]:
        names = list(subcommands(self))
        words = [word for word in self._words if not word.startswith("-")]
        return (words[0] if names and words and words[0] not in names else None), names


class PrintCompletion(argparse.Action):
    """Prints a script for the shell and ends; imports its library when asked to."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        """Print the script."""
        import shtab

        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                action.help = None  # what --help does not list, shtab leaves out
        print(shtab.complete(parser, shell=values))
        parser.exit()


class OutputFile(PosixPath):
    """A file that a command writes for its user, as an argument."""


def add_group(commands: Commands, name: str, meaning: str) -> Commands:
    """Add a group of commands, such as ``t5repro tasks``; return what receives its commands."""
    group: Parser = commands.add_parser(name, help=meaning, description=meaning)
    return group.add_subparsers(title="commands", required=True, metavar="COMMAND")


def add_command(
    commands: Commands, name: str, handler: Handler, meaning: str, *, writes: Writes = False
) -> argparse.ArgumentParser:
    """Add a command without arguments of its own; its help ends with its examples.

    Args:
        commands: the commands.
        name: of the command.
        handler: does its work.
        meaning: one line for its help.
        writes: whether it changes results, records or lists of the checkout, or says so of the
            arguments; no run may be at work then (`cli/writing.py`).
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=meaning,
        description=meaning,
        formatter_class=argparse.RawDescriptionHelpFormatter,  # keeps the lines of the examples
    )
    spelling = parser.prog.removeprefix(f"{PROGRAM} ")
    parser.epilog = epilog(spelling)
    parser.set_defaults(handler=handler, command=spelling, writes=writes)
    return parser


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return name -> parser of each command of a group; none of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def all_commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield spelling and parser of every command, such as ``tasks list``."""
    for name, command in subcommands(parser).items():
        if subcommands(command):
            yield from ((f"{name} {below}", inner) for below, inner in all_commands(command))
        else:
            yield name, command
