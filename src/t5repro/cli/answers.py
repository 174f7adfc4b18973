"""Answers of the audit commands: options that all have, printing, exit codes."""

import argparse
import json
import sys
from typing import Any, Protocol

from t5repro.cli.parsers import Commands, Handler, Writes, add_command
from t5repro.progress import printable

OK, FINDINGS = 0, 1


class Answer(Protocol):
    """The answer to an audit question."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""

    def to_text(self) -> str:
        """Return the answer as human-readable text."""


def add_question(
    commands: Commands, name: str, handler: Handler, meaning: str, *, writes: Writes = False
) -> argparse.ArgumentParser:
    """Add a command with the option ``--json``; return its parser."""
    parser = add_command(commands, name, handler, meaning, writes=writes)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    return parser


def print_answer(answer: Answer, arguments: argparse.Namespace) -> None:
    """Print an answer as text, or as JSON if asked for."""
    if arguments.json:
        print_json(answer.to_json())
    else:
        print_text(answer.to_text())


def print_json(values: dict[str, Any]) -> None:
    """Print an answer as JSON."""
    # ASCII: valid JSON whatever the encoding of the terminal.
    sys.stdout.write(json.dumps(values, sort_keys=True) + "\n")


def print_text(text: str) -> None:
    """Print an answer without characters that act on a terminal."""
    sys.stdout.write(printable(text))
