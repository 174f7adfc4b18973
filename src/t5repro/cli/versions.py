"""The command line of versioning: dvc.yaml, seal, rehydrate."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, SettingsError

Handler = Callable[[argparse.Namespace], None]
RUN_FILE = Path("configs/demo.yaml")


def add_lineage(commands: Any) -> None:
    """Add the subcommands that keep DVC and Snakemake of one mind."""
    dvc = _lineage_command(
        commands, "dvc", _dvc, "generate or check dvc.yaml; write the resolved settings"
    )
    dvc.add_argument("action", choices=["generate", "check", "settings"])
    seal = _lineage_command(
        commands, "seal", _seal, "write into dvc.lock what jobs of this checkout built"
    )
    seal.add_argument("--only", metavar="STAGE", help="one stage")

    certificate = _lineage_command(
        commands, "certificate", _certificate, "say which stages this machine reproduced"
    )
    certificate.add_argument("--rev", default="HEAD", help="revision to compare with")
    certificate.add_argument("--json", action="store_true", help="print JSON")
    _lineage_command(commands, "rehydrate", _rehydrate, "tell Snakemake what is as dvc.lock says")


def _lineage_command(
    commands: Any, name: str, handler: Handler, meaning: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(handler=handler)
    parser.add_argument("--run-file", type=Path, default=RUN_FILE, help="whose graph is versioned")
    parser.add_argument("--profile", default="local", help="Snakemake profile of the stages")
    return parser


def _dvc(arguments: argparse.Namespace) -> None:
    from t5repro.files import write_text
    from t5repro.versions import dvc_pipeline

    if arguments.action == "generate":
        for path, text in dvc_pipeline.generated(arguments.run_file, arguments.profile).items():
            write_text(path, text)
            print(f"wrote {path}")
        return
    if arguments.action == "settings":
        dvc_pipeline.write_resolved(arguments.run_file)
    if faults := dvc_pipeline.drifted(arguments.run_file, arguments.profile):
        raise SettingsError("\n".join(faults))
    print("dvc.yaml is in sync with the graph")


def _seal(arguments: argparse.Namespace) -> None:
    from t5repro.versions.seal import seal

    done = seal(arguments.run_file, arguments.profile, arguments.only)
    for path in done.pruned:
        print(f"removed {path}: the graph does not declare it")
    for stage, reason in done.skipped.items():
        print(f"left as it was: {stage}, {reason}")
    if done.sealed:
        print(f"sealed: {' '.join(done.sealed)}")


def _rehydrate(arguments: argparse.Namespace) -> None:
    from t5repro.versions.rehydrate import rehydrate

    names = rehydrate(arguments.run_file)
    print(f"as dvc.lock says: {' '.join(names) or 'nothing'}")


def _certificate(arguments: argparse.Namespace) -> None:
    import dataclasses
    import json

    from t5repro.versions.certificate import certify

    found = certify(arguments.run_file, arguments.rev)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(found), indent=2))
    else:
        print(found.to_text())
    if not found.holds:
        raise ArtifactError("a stage came out differently than committed")
