"""The command `config`: settings of a run file, and the files generated from the schema."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from t5repro.cli.parsers import Commands, add_command, add_group
from t5repro.errors import RawDataError, SettingsError

BASE = Path("configs/base.yaml")
CURE = "run `make generate` and commit the result"


def add_config(commands: Commands) -> None:
    """Add the command."""
    group = add_group(
        commands,
        "config",
        "show, validate, presets, generate, check: settings, and files made from them",
    )
    show = add_command(group, "show", _show, "print all settings of run files as JSON")
    validate = add_command(group, "validate", _validate, "check run files as planning does")
    for parser in (show, validate):
        parser.add_argument(
            "run_files",
            type=Path,
            nargs="*",
            default=[BASE],
            metavar="run_file",
            help="several are merged as by snakemake --configfile; default: configs/base.yaml",
        )
    add_command(group, "presets", _presets, "print what each preset sets")
    add_command(
        group,
        "generate",
        _generate,
        "write the files generated from the schema and the code",
        writes=True,
    )
    add_command(group, "check", _check, "compare the generated files with schema and code")


def _show(arguments: argparse.Namespace) -> None:
    from t5repro.config.load import load_run_files
    from t5repro.config.project_files import project_file

    for path in arguments.run_files:
        _refuse_folder(path)
    print(load_run_files([*map(project_file, arguments.run_files)]).model_dump_json(indent=2))


def _presets(arguments: argparse.Namespace) -> None:
    from t5repro.config.presets.page import presets_page

    print(presets_page(), end="")


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; name a run file, such as configs/demo.yaml")


def _generate(arguments: argparse.Namespace) -> None:
    from t5repro.config import generate
    from t5repro.lineage.sources import write_closures
    from t5repro.versions import dvc_pipeline
    from t5repro.versions.seal import seal_settings

    generate.require_checkout()
    _write(generate.generated_files())
    # After them, because a rule's code includes the decisions; the pipeline names its hashes.
    for changed in write_closures():
        print(f"wrote {changed}")
    _write(dvc_pipeline.generated())
    if seal_settings():
        print("wrote dvc.lock: its stage of the settings")


def _write(texts: Mapping[Path, str]) -> None:
    from t5repro.files import write_text

    for path, text in texts.items():
        write_text(path, text)
        print(f"wrote {path}")


def _check(arguments: argparse.Namespace) -> None:
    from t5repro.config import generate
    from t5repro.lineage.sources import leftover_closures, stale_closures
    from t5repro.versions import dvc_pipeline
    from t5repro.versions.lock_check import lock_faults

    generate.require_checkout()
    # First: Snakemake brings these files up to date when it plans the graph of dvc.yaml.
    files = [*stale_closures(), *leftover_closures()]
    stale = [f"{path} is out of sync with the code; {CURE}" for path in files]
    faults = stale + generate.drifted() + dvc_pipeline.drifted()
    if faults := faults or lock_faults():
        raise SettingsError("\n".join(faults))
    print("generated files are in sync")


def _validate(arguments: argparse.Namespace) -> None:
    """Check run files as planning does, raw files included; print that they are valid.

    Faults of settings come first, with their line. In a checkout, Snakemake then plans the graph:
    rules check what only they need to know.
    """
    from t5repro.config.load import load_run_files
    from t5repro.config.logger_packages import check_logger_packages
    from t5repro.config.notes import notes
    from t5repro.config.origins import Origins, read_yaml
    from t5repro.config.project_files import is_project
    from t5repro.config.task_files import check_listed_files
    from t5repro.data.fetch import missing_files
    from t5repro.estimate.start import device_faults, memory_faults
    from t5repro.plan.run_plan import RunPlan
    from t5repro.versions.snakemake_graph import planned

    paths = arguments.run_files
    for path in paths:
        _refuse_folder(path)
        if not read_yaml(path):
            raise SettingsError(f"{path} is empty; t5repro tasks new FILE writes a run file")
    settings = load_run_files(paths)
    with Origins(paths).located_errors():
        check_listed_files(settings)
        check_logger_packages(settings)
    if missing := missing_files(settings.data):
        raise RawDataError("\n".join(["raw files are missing:", *missing]))
    if is_project():
        with planned(*paths):
            pass
    nodes = RunPlan(settings).nodes
    for fault in [*memory_faults(nodes), *device_faults(nodes), *notes(settings)]:
        print(f"t5repro config validate: warning: {fault}", file=sys.stderr)
    verb = "is" if len(paths) == 1 else "are"
    experiments = ", ".join(experiment.name for experiment in settings.experiments)
    print(
        f"{', '.join(map(str, paths))} {verb} valid: run {settings.run.name}, "
        f"experiments {experiments}"
    )
