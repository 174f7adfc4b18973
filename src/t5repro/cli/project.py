"""Commands about the folder of a project: `init` writes one, `doctor` examines it."""

import argparse
from pathlib import Path

from t5repro.cli.arguments import add_run_files
from t5repro.cli.parsers import Commands, add_command

FAULTY = 1


def add_project(commands: Commands) -> None:
    """Add the commands."""
    init = add_command(
        commands, "init", _init, "write rule files, run files and the bundled crawl into a folder"
    )
    init.add_argument("folder", type=Path, help="new folder, or one without these files")
    doctor = add_command(
        commands, "doctor", _doctor, "name what keeps this checkout and machine from running well"
    )
    add_run_files(doctor)


def _init(arguments: argparse.Namespace) -> None:
    from t5repro.config.project_files import bundled_files, write_project
    from t5repro.lineage.leftovers import writing_beside

    with writing_beside(arguments.folder / path for path in bundled_files()):
        paths = write_project(arguments.folder)
    print(f"wrote {len(paths)} files to {arguments.folder}; commit them, and run the demo there:")
    print("  git init && git add . && git commit -m 'new project'")
    print("  snakemake --profile local")


def _doctor(arguments: argparse.Namespace) -> int:
    """Print a line for each check, and the faults below it."""
    from t5repro.config.load import load_run_files
    from t5repro.config.project_files import require_project
    from t5repro.estimate.start import run_faults
    from t5repro.versions.checkout_faults import CHECKS

    require_project()
    settings = load_run_files(arguments.configfile)
    faults = {check.__name__: list(check(Path(), settings)) for check in CHECKS}
    faults["machine"] = run_faults(settings)
    for name, lines in faults.items():
        print(f"{name.replace('_', ' '):15} {'fault' if lines else 'ok'}")
        for line in lines:
            print(f"  {line}")
    return FAULTY if any(faults.values()) else 0
