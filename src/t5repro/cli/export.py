"""The command `export`: standard documents of a run, signed where the standard signs."""

import argparse
from pathlib import Path

from t5repro.cli.parsers import Commands, OutputFile, add_command
from t5repro.errors import LineageError

FORMATS = ("ro-crate", "prov", "in-toto", "openlineage", "croissant", "cyclonedx", "ai-act")


def add_export(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "export",
        _export,
        "write a run as a document of a standard, or check signed statements",
    )
    parser.add_argument(
        "artifact", nargs="?", help="only what this was made from; named as for trace"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--format", choices=FORMATS, help="the standard")
    what.add_argument("--verify", type=Path, metavar="FILE", help="signed statements to check")
    what.add_argument("--new-key", type=Path, metavar="FILE", help="private key to make")
    parser.add_argument("--run", help="name below results/, where there are several")
    parser.add_argument(
        "--output", type=OutputFile, help="file, or folder of a crate; else printed"
    )
    parser.add_argument("--key", type=Path, help="private key that signs in-toto statements")
    parser.add_argument("--public-key", type=Path, help="public key that --verify holds them to")
    parser.add_argument("--license", help="licence to state, or its address: ro-crate, croissant")
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="what a provider states: ai-act, as YAML"
    )
    parser.add_argument("--json", action="store_true", help="answer as JSON")


def _export(arguments: argparse.Namespace) -> int:
    from t5repro.export import commands

    if arguments.new_key:
        return commands.new_key(arguments.new_key, as_json=arguments.json)
    if arguments.verify:
        if arguments.public_key is None:
            raise LineageError("--verify needs --public-key FILE: whose signature is to be trusted")
        return commands.verify(arguments.verify, arguments.public_key, as_json=arguments.json)
    return commands.export(
        arguments.format,
        arguments.artifact,
        run=arguments.run,
        output=arguments.output,
        key=arguments.key,
        license_text=arguments.license,
        answers=arguments.answers,
        as_json=arguments.json,
    )
