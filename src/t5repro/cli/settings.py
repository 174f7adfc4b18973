"""The subcommand `config`: settings of a run file, and the files generated from the schema."""

import argparse
from pathlib import Path

from t5repro.cli.arguments import Commands, add_command
from t5repro.errors import RawDataError, SettingsError

CURE = "run `make generate` and commit the result"


def add_config(commands: Commands) -> None:
    """Add the subcommand."""
    config = add_command(
        commands,
        "config",
        _config,
        "print, generate or check settings",
        writes=lambda arguments: arguments.action == "generate",
    )
    config.add_argument(
        "action",
        choices=["show", "validate", "generate", "check"],
        help="show: print all settings of a run file as JSON; validate: check a run file as "
        "planning does; generate: write the files generated from the schema; check: compare these "
        "with it",
    )
    config.add_argument(
        "run_file",
        type=Path,
        nargs="?",
        default=Path("configs/base.yaml"),
        help="of show and validate; default: configs/base.yaml",
    )


def _config(arguments: argparse.Namespace) -> None:
    from t5repro.config import generate
    from t5repro.config.load import load_run_file
    from t5repro.config.project_files import project_file
    from t5repro.files import write_text
    from t5repro.lineage.sources import leftover_closures, stale_closures, write_closures
    from t5repro.versions import dvc_pipeline
    from t5repro.versions.lock_check import lock_faults
    from t5repro.versions.seal import seal_settings

    if arguments.run_file.is_dir():
        raise SettingsError(
            f"{arguments.run_file} is a folder; name a run file, such as configs/demo.yaml"
        )
    if arguments.action == "show":
        print(load_run_file(project_file(arguments.run_file)).model_dump_json(indent=2))
        return
    if arguments.action == "validate":
        _validate(arguments.run_file)
        return
    generate.require_checkout()
    if arguments.action == "check":
        # First: Snakemake brings these files up to date when it plans the graph of dvc.yaml.
        files = [*stale_closures(), *leftover_closures()]
        stale = [f"{path} is out of sync with the code; {CURE}" for path in files]
        faults = stale + generate.drifted() + dvc_pipeline.drifted()
        if faults := faults or lock_faults():
            raise SettingsError("\n".join(faults))
        print("generated files are in sync")
    else:
        for changed in write_closures():
            print(f"wrote {changed}")
        for path, text in {**generate.generated_files(), **dvc_pipeline.generated()}.items():
            write_text(path, text)
            print(f"wrote {path}")
        if seal_settings():
            print("wrote dvc.lock: its stage of the settings")


def _validate(path: Path) -> None:
    """Check a run file as planning does, raw files included; print that it is valid.

    Faults of settings come first, with their line. In a checkout, Snakemake then plans the graph:
    rules check what only they need to know.
    """
    from t5repro.config.load import load_run_file
    from t5repro.config.logger_packages import check_logger_packages
    from t5repro.config.origins import Origins, read_yaml
    from t5repro.config.project_files import is_project
    from t5repro.config.task_files import check_listed_files
    from t5repro.data.fetch import missing_files
    from t5repro.versions.snakemake_graph import planned

    if not read_yaml(path):
        raise SettingsError(f"{path} is empty; t5repro new-task FILE writes a run file")
    settings = load_run_file(path)
    with Origins([path]).located_errors():
        check_listed_files(settings)
        check_logger_packages(settings)
    if missing := missing_files(settings.data):
        raise RawDataError("\n".join(["raw files are missing:", *missing]))
    if is_project():
        with planned(path):
            pass
    names = [experiment.name for experiment in settings.experiments]
    print(f"{path} is valid: run {settings.run.name}, experiments {', '.join(names)}")
