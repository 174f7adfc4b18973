"""The command `init`: a folder in which the chain runs, without a checkout."""

import argparse
from pathlib import Path

from t5repro.cli.parsers import Commands, add_command


def add_init(commands: Commands) -> None:
    """Add the command."""
    init = add_command(
        commands, "init", _init, "write rule files, run files and the bundled crawl into a folder"
    )
    init.add_argument("folder", type=Path, help="new folder, or one without these files")


def _init(arguments: argparse.Namespace) -> None:
    from t5repro.config.project_files import bundled_files, write_project
    from t5repro.lineage.leftovers import writing_beside

    with writing_beside(arguments.folder / path for path in bundled_files()):
        paths = write_project(arguments.folder)
    print(f"wrote {len(paths)} files to {arguments.folder}; commit them, and run the demo there:")
    print("  git init && git add . && git commit -m 'new project'")
    print("  snakemake --profile local")
