"""Commands of versions: DVC's pipeline and lock, Snakemake's metadata, the certificate."""

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from t5repro.cli.parsers import Commands, Handler, OutputFile, Writes, add_command, add_group
from t5repro.config.project_files import require_project
from t5repro.config.sections.devices import EngineName
from t5repro.errors import ArtifactError, LineageError, SettingsError

if TYPE_CHECKING:
    from t5repro.versions.certificate import Certificate
    from t5repro.versions.dvc_pipeline import VersionedRun

OK, FAULT = 0, 2


def add_versions(commands: Commands) -> None:
    """Add the commands that keep DVC and Snakemake in agreement."""
    _add_dvc(commands)
    seal = _add_version_command(
        commands,
        "seal",
        _seal,
        "write to dvc.lock what the jobs of this checkout built",
        writes=True,
    )
    seal.add_argument("--only", metavar="STAGE", help="one stage")
    seal.add_argument(
        "--allow-stale",
        action="store_true",
        help="name stages that stay out of date, and succeed: for a run of some targets",
    )
    sign = add_command(
        commands,
        "sign",
        _sign,
        "sign the sealed records and dvc.lock with a local key",
        writes=True,
    )
    sign.add_argument("--key", type=Path, help="private key; else the configured one")
    sign.add_argument("--run", default="demo", help="name below records/")
    sign.add_argument(
        "--allow", metavar="NAME", help="add the key to configs/allowed_signers under this name"
    )
    certificate = _add_version_command(
        commands,
        "certificate",
        _certificate,
        "print which committed stages this machine reproduced",
        several=True,
    )
    certificate.add_argument("--rev", default="HEAD", help="revision to compare with")
    certificate.add_argument("--json", action="store_true", help="print JSON")
    certificate.add_argument(
        "--html", type=OutputFile, help="write the lineage page with what was found of each stage"
    )
    certificate.add_argument(
        "--strict", action="store_true", help="require equal bytes of every stage"
    )
    certificate.add_argument(
        "--engine",
        choices=get_args(EngineName),
        help="repeat trainings and predictions of this run on the other engine, and compare",
    )
    certificate.add_argument(
        "--node",
        nargs="+",
        default=[],
        help="with --engine: rules or RULE/NODE, such as pretrain/baseline; default: all",
    )
    certificate.add_argument(
        "--steps", type=int, default=20, help="with --engine: repeated steps of a training"
    )
    certificate.add_argument(
        "--python", default="", help="with --engine: interpreter that has the engine"
    )
    certificate.add_argument(
        "--machine",
        action="store_true",
        help="before any training: compare operations of this CPU with those of other makers",
    )


def _add_dvc(commands: Commands) -> None:
    """Add the commands of the group `dvc`."""
    group = add_group(
        commands, "dvc", "generate, check, settings, dag, rehydrate, raw: DVC's files and this run"
    )
    rehydrates = "mark the stages that equal dvc.lock as done in Snakemake"
    for name, handler, meaning, writes in (
        ("generate", _generate, "write dvc.yaml", True),
        ("check", _check, "compare dvc.yaml with the graph, and dvc.lock with the code", False),
        ("settings", _resolve, "write the resolved settings", True),
        ("dag", _draw, "draw the stages", False),
        ("rehydrate", _rehydrate, rehydrates, True),
    ):
        _add_version_command(group, name, handler, meaning, writes=writes)
    raw = add_command(group, "raw", _compare_raw, "compare the raw inputs with data.dvc")
    raw.add_argument("record", type=Path, nargs="?", default=Path("data.dvc"))


def _add_version_command(
    commands: Commands,
    name: str,
    handler: Handler,
    meaning: str,
    *,
    writes: Writes = False,
    several: bool = False,
) -> argparse.ArgumentParser:
    parser = add_command(commands, name, handler, meaning, writes=writes)
    parser.add_argument(
        "--run-file",
        type=Path,
        nargs="+" if several else None,
        help=f"{'run files, as for Snakemake' if several else 'its graph is versioned'}; "
        "default: the one of dvc.yaml",
    )
    parser.add_argument(
        "--profile", help="Snakemake profile of the stages; default: as in dvc.yaml"
    )
    return parser


def _versioned(arguments: argparse.Namespace) -> "VersionedRun":
    """Return the run on the command line, and what it omits as dvc.yaml has it."""
    from t5repro.versions.dvc_pipeline import VersionedRun, versioned_run

    current = versioned_run() or VersionedRun()
    return VersionedRun(
        arguments.run_file or current.run_file, arguments.profile or current.profile
    )


def _compare_raw(arguments: argparse.Namespace) -> None:
    from t5repro.versions.raw_data_check import check_raw_data

    print(f"the raw inputs are those of {arguments.record}: {check_raw_data(arguments.record)}")


def _draw(arguments: argparse.Namespace) -> None:
    from t5repro.versions.dvc_dag import drawing

    require_project()
    print(drawing())


def _generate(arguments: argparse.Namespace) -> None:
    from t5repro.files import write_text
    from t5repro.versions.dvc_pipeline import generated

    require_project()
    for path, text in generated(arguments.run_file, arguments.profile).items():
        write_text(path, text)
        print(f"wrote {path}")


def _resolve(arguments: argparse.Namespace) -> None:
    from t5repro.versions.dvc_pipeline import write_resolved

    require_project()
    write_resolved(_versioned(arguments).run_file)
    _require_sync(arguments)


def _check(arguments: argparse.Namespace) -> None:
    from t5repro.versions.lock_check import lock_faults

    require_project()
    _require_sync(arguments, lock_faults)


def _require_sync(
    arguments: argparse.Namespace, further_faults: Callable[[], list[str]] = list
) -> None:
    from t5repro.versions.dvc_pipeline import drifted

    faults = drifted(arguments.run_file, arguments.profile)
    if faults := faults or further_faults():
        raise SettingsError("\n".join(faults))
    print("dvc.yaml is in sync with the graph")


def _seal(arguments: argparse.Namespace) -> None:
    from t5repro.versions.seal import seal

    require_project()
    versioned = _versioned(arguments)
    sealing = seal(versioned.run_file, versioned.profile, arguments.only)
    for path in sealing.pruned:
        print(f"removed {path}: the graph does not declare it")
    for stage, reason in sealing.skipped.items():
        print(f"unchanged in dvc.lock: {stage}, {reason}")
    if sealing.sealed:
        print(f"sealed: {' '.join(sealing.sealed)}")
    if sealing.repeated:
        print(f"as committed: {len(sealing.repeated)} records; those of this run: work/records/")
    if sealing.indexed:
        print("records sealed")
    if sealing.signed:
        print(sealing.signed)
    stale = [f"out of date: {name}, {reason}" for name, reason in sealing.stale.items()]
    if stale and not (arguments.only or arguments.allow_stale):
        cure = (
            "run snakemake, which builds them again; if it has nothing to do, the records are of "
            f"another run: snakemake --forcerun {' '.join(sealing.stale_rules)}; their entries in "
            "dvc.lock are unchanged"
        )
        raise ArtifactError("\n".join([*stale, cure]))
    print("\n".join(stale), end="\n" if stale else "")


def _sign(arguments: argparse.Namespace) -> None:
    from t5repro.lineage import signatures
    from t5repro.lineage.envelopes import SIGNERS_FILE
    from t5repro.lineage.signers import allow_key

    key = arguments.key or signatures.configured_key(Path())
    if key is None:
        raise LineageError(
            f"no key: add --key FILE, or set {signatures.KEY_VARIABLE}; t5repro export --new-key "
            "FILE makes one"
        )
    if arguments.allow and allow_key(key, arguments.allow, Path(SIGNERS_FILE)):
        print(f"{SIGNERS_FILE}: added the key of {arguments.allow}; commit it")
    attestation = signatures.sign(Path(), arguments.run, key)
    print(f"{signatures.signature_path(arguments.run)}: {attestation.text}")


def _rehydrate(arguments: argparse.Namespace) -> None:
    from t5repro.versions.rehydrate import rehydrate

    require_project()
    names = rehydrate(_versioned(arguments).run_file)
    print(f"equal to dvc.lock: {' '.join(names) or 'nothing'}")


def _certificate(arguments: argparse.Namespace) -> int:
    if arguments.machine:
        return _machine()
    if arguments.engine:
        return _other_engine(arguments)
    from t5repro.versions.certificate import certify

    require_project()
    run_files = _run_files(arguments)
    certificate = certify(*run_files, revision=arguments.rev, strict=arguments.strict)
    if arguments.html:
        _write_lineage(arguments.html, certificate, run_files)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(certificate), indent=2))
    else:
        print(certificate.to_text())
    return OK if certificate.holds else FAULT


def _run_files(arguments: argparse.Namespace) -> list[Path]:
    """Return the run files on the command line, or the one of dvc.yaml."""
    from t5repro.versions.dvc_pipeline import VersionedRun, versioned_run

    return arguments.run_file or [(versioned_run() or VersionedRun()).run_file]


def _other_engine(arguments: argparse.Namespace) -> int:
    from t5repro.versions.other_engine import compare_engines

    require_project()
    with tempfile.TemporaryDirectory(prefix="t5repro-") as folder:
        comparison = compare_engines(
            _run_files(arguments),
            arguments.engine,
            folder=Path(folder),
            steps=arguments.steps,
            nodes=arguments.node,
            python=arguments.python,
        )
    print(json.dumps(comparison.to_json(), indent=2) if arguments.json else comparison.to_text())
    return OK if comparison.holds else FAULT


def _write_lineage(page: Path, certificate: "Certificate", run_files: list[Path]) -> None:
    from t5repro.report.lineage_page import write_compared_lineage
    from t5repro.report.stage_graph import State
    from t5repro.versions.snakemake_graph import resolve

    words: dict[str, State] = {
        "exactly": "exact",
        "within the spread": "tolerance",
        "on another engine": "tolerance",
        "differently": "altered",
    }
    settings, stages = resolve(*run_files)
    folders = {stage.name: stage.folder for stage in stages}
    write_compared_lineage(
        page,
        f"Lineage of {settings.run.name}, compared with {certificate.revision}",
        {
            folders[verdict.stage]: words.get(verdict.outcome, "unknown")
            for verdict in certificate.verdicts
        },
    )


def _machine() -> int:
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.engines.devices import set_environment

    set_environment(DevicesSettings())  # before TensorFlow is imported
    from t5repro.model.operations.hashes import check_machine

    comparisons = check_machine()
    for comparison in comparisons:
        print(comparison)
    return FAULT if any(comparison.differing for comparison in comparisons) else OK
