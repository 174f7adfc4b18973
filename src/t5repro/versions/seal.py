"""Writes into `dvc.lock` the stages that the jobs of this checkout built, and nothing else.

`dvc commit` would accept an edited file as built. Here a stage enters the lock only if its records
prove it (`proof`). Any other difference from the lock is refused with the name of the file, and the
lock is not changed.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t5repro.config.load import load_run_file
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError
from t5repro.files import real_path, write_text
from t5repro.lineage.dvc_cache import object_path
from t5repro.lineage.dvc_lock import LOCK_FILE, RAW_DATA_FILE, LockedStage, read_lock
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.store import RESULTS
from t5repro.versions import dvc_pipeline
from t5repro.versions.committed_records import restore_committed_records
from t5repro.versions.proof import (
    Checkout,
    StageFiles,
    agrees_with_lock,
    altered_files,
    files_of_stage,
    md5_of_folder,
    proof_faults,
    raw_file_faults,
    unproven_files,
)
from t5repro.versions.raw_data_check import check_raw_data, raw_data_agrees
from t5repro.versions.rehydrate import save_snapshot
from t5repro.versions.seal_records import seal_records, sign_records
from t5repro.versions.snakemake_graph import PLANNING, PROFILE, RUN_FILE, PlannedStage, resolve
from t5repro.versions.undeclared import strange_files, without_leftovers

INSIDE_DVC = "DVC_STAGE"  # environment variable that DVC sets for the commands of its stages
MAX_FAULTS_SHOWN = 10
TEMPORARY_OF_DVC = re.compile(r"\.[\w-]{22}\.tmp")  # its `tmp_fname`


@dataclass
class SealResult:
    """The result of a seal.

    Attributes:
        sealed: stages that were written into the lock.
        unchanged: stages that agreed with it.
        skipped: stage -> why it kept its entry, such as "not built".
        stale: stage -> what of it is not the present code, settings or inputs; kept its entry.
        stale_rules: the rules of these stages.
        pruned: files that were deleted because the graph does not declare them.
        repeated: committed records that were restored, because their jobs repeated the result.
        indexed: whether the index of the run's records changed.
        signed: who signed it, or why it is no longer signed; empty if nothing changed.
    """

    sealed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)
    stale_rules: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    indexed: bool = False
    signed: str = ""


def seal(run_file: Path = RUN_FILE, profile: str = PROFILE, only: str | None = None) -> SealResult:
    """Update `dvc.yaml` and `dvc.lock` with the stages that were built here, under the run lock.

    Inside ``dvc repro`` the stages are checked only, because DVC writes the lock itself.

    Args:
        run_file: the run file of the versioned graph.
        profile: Snakemake profile that the stages name.
        only: a single stage.

    Raises:
        ArtifactError: files are neither as locked nor as their jobs wrote them; names them.
    """
    settings, stages = resolve(run_file)
    names = [stage.name for stage in stages if only in (None, stage.name)]
    if not names:
        raise ArtifactError(f"no stage {only!r} in the graph of {run_file}")
    if os.environ.get(INSIDE_DVC):
        return _check(settings, stages, names)
    for path, text in dvc_pipeline.texts(settings, stages, run_file, profile).items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    return seal_stages(settings, stages, names)


def seal_settings() -> bool:
    """Bring the lock's entry of the settings up to date; return whether it changed.

    Its outputs are generated files, so whoever generates them may write it. No stage that a job
    built is touched.

    Raises:
        StorageError: a run is at work.
    """
    lock = read_lock()
    pipeline = dvc_pipeline.read_pipeline()["stages"]
    if not lock.stages or not dvc_pipeline.changed_settings_stage(lock, pipeline, Hasher()):
        return False
    _commit((), {}, {})
    return True


def seal_run(settings: Settings, *, whole: bool) -> str:
    """Seal after a run of Snakemake, in a process of its own; return a message for the user.

    Args:
        settings: of the run.
        whole: whether everything was to be built, so that no stage may stay out of date.

    Raises:
        ArtifactError: the seal was refused, or a stage stayed out of date; says why.
    """
    versioned = dvc_pipeline.versioned_run()
    if os.environ.get(INSIDE_DVC):
        return "dvc repro writes dvc.lock itself"
    if versioned is None:
        return (
            "the run is complete; there is no dvc.yaml to version it, t5repro dvc generate makes it"
        )
    run_file = versioned.run_file
    # As settings and not as text: comments and order of a run file decide nothing.
    if load_run_file(run_file) != settings:
        return (
            f"the run is complete; dvc.yaml versions {run_file} and not this run, "
            "t5repro dvc generate --run-file FILE makes it version another run"
        )
    # Planning again inside Snakemake's process would overwrite its global state.
    arguments = ["--run-file", str(run_file), "--profile", versioned.profile]
    arguments += [] if whole else ["--allow-stale"]
    process = subprocess.run(
        [sys.executable, "-m", "t5repro", "seal", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, PLANNING: "1"},
    )
    if process.returncode:
        raise ArtifactError(process.stderr.strip())
    return process.stdout.strip() or "dvc.lock agrees already"


def linked_results(run: str, root: Path = Path()) -> str:
    """Return why DVC cannot version the results of a run; nothing if it can."""
    for folder in (root / RESULTS, root / RESULTS / run):
        if not real_path(folder).is_relative_to(real_path(root)):
            return (
                f"{folder.as_posix()} is a link to {real_path(folder).as_posix()}, outside of the "
                "checkout, where DVC versions nothing: stages are built there and not sealed in "
                "dvc.lock; mount that folder in its place (mount --bind), or clone onto that disk"
            )
    return ""


def _check(settings: Settings, stages: list[PlannedStage], names: Iterable[str]) -> SealResult:
    """Refuse stages that their records do not prove; delete undeclared files; seal the records."""
    checkout, result = Checkout(), SealResult()
    result.repeated = restore_committed_records(settings.run.name)
    proven = {}
    for stage in (stage for stage in stages if stage.name in names):
        files = files_of_stage(stage, checkout.hasher)
        _refuse_strange_files(strange_files(stage, files))
        if faults := proof_faults(settings, stage, files, checkout):
            raise _refusal(faults)
        result.pruned += _prune(files)
        proven[stage.name] = md5_of_folder(stage, files)
    result.indexed = seal_records(settings.run.name, stages, proven, settings.data.folder)
    return result


def seal_stages(settings: Settings, stages: list[PlannedStage], names: Iterable[str]) -> SealResult:
    """Update some stages of `dvc.lock`; see `seal`."""
    checkout, result = Checkout(), SealResult()
    lock = read_lock()
    pipeline = dvc_pipeline.read_pipeline()["stages"]
    files = {stage.name: files_of_stage(stage, checkout.hasher) for stage in stages}
    folders = {stage.folder: md5_of_folder(stage, files[stage.name]) for stage in stages}
    selection = set(names)
    # Everything is checked before anything is written, so that a refusal leaves no half result.
    refused = raw_file_faults(stages, lock, checkout.hasher)
    for stage in (stage for stage in stages if stage.name in selection):
        stage_files = files[stage.name]
        locked = lock.stages.get(stage.name, LockedStage())
        entry = pipeline[stage.name]
        if not stage_files.files:
            result.skipped[stage.name] = "not built"
        elif stage_files.missing:
            result.skipped[stage.name] = f"unfinished: {stage_files.missing[0]} is missing"
        elif agrees_with_lock(settings, stage, entry, locked, folders, checkout.hasher):
            result.unchanged.append(stage.name)
        elif not (faults := proof_faults(settings, stage, stage_files, checkout)):
            result.sealed.append(stage.name)
        elif altered := altered_files(stage, stage_files, locked):
            refused += unproven_files(stage, altered, stage_files) or faults
        else:  # its files are as locked, but its code, settings or inputs have changed since
            result.stale[stage.name] = faults[0]
            if stage.rule not in result.stale_rules:
                result.stale_rules.append(stage.rule)
    if refused:
        raise _refusal(refused)
    finished = [stage for stage in stages if stage.name in (*result.sealed, *result.unchanged)]
    _refuse_strange_files(
        [fault for stage in finished for fault in strange_files(stage, files[stage.name])]
    )
    for name in (*result.sealed, *result.unchanged):
        result.pruned += _prune(files[name])
    # A stage that came out as committed must be in the cache too: `dvc push` sends nothing else.
    uncached = [name for name in result.unchanged if not _is_cached(files[name], lock.stages[name])]
    changed = [*result.sealed, *uncached]
    # DVC takes longer to start than everything else here.
    if changed or not dvc_pipeline.lock_is_current(lock, pipeline, checkout.hasher):
        if changed and (fault := linked_results(settings.run.name)):
            raise ArtifactError(fault)
        _commit(changed, folders, {stage.name: stage for stage in stages})
    result.repeated = restore_committed_records(settings.run.name)
    proven = {
        stage.name: folders[stage.folder]
        for stage in stages
        # The files of an unchanged stage are as locked, but its records may have been altered.
        if stage.name in result.sealed
        or (
            stage.name in result.unchanged
            and not proof_faults(settings, stage, files[stage.name], checkout)
        )
    }
    result.indexed = seal_records(settings.run.name, stages, proven, settings.data.folder)
    if result.indexed:
        result.signed = sign_records(settings.run.name)
    raw_data = Path(RAW_DATA_FILE)
    if raw_data.is_file() and settings.data.folder == raw_data.stem and not raw_data_agrees(lock):
        check_raw_data(raw_data)
    # Else the next plan would take the sealed files for edited ones.
    save_snapshot(read_lock(), [*result.sealed, *result.unchanged], stages)
    return result


def _is_cached(files: StageFiles, locked: LockedStage) -> bool:
    """Return whether DVC's cache has every output of a stage that agrees with the lock."""
    hashes = {*locked.outs.values(), *(file.md5 for file in files.files.values())}
    return all(object_path(Path(), md5).is_file() for md5 in hashes)


def _refuse_strange_files(faults: list[str]) -> None:
    if faults:
        raise ArtifactError(_list_of(faults))


def _list_of(faults: list[str]) -> str:
    lines = faults[:MAX_FAULTS_SHOWN]
    if len(faults) > len(lines):
        lines.append(f"and {len(faults) - len(lines)} more")
    return "\n  ".join(["not sealed, dvc.lock is unchanged:", *lines])


def _refusal(faults: list[str]) -> ArtifactError:
    return ArtifactError(
        _list_of(faults)
        + "\nrestore a file with dvc checkout, or build it again with snakemake --forcerun RULE"
    )


def _prune(files: StageFiles) -> list[str]:
    """Delete undeclared files; return their names, without temporary files."""
    for path in files.orphans:
        Path(path).unlink(missing_ok=True)
    return without_leftovers(files.orphans)


def _commit(
    names: Iterable[str], folders: Mapping[str, str], stages: Mapping[str, PlannedStage]
) -> None:
    """Let DVC hash and cache the outputs of stages, and write the lock atomically."""
    from dvc.repo import Repo
    from dvc.stage.serialize import to_lockfile
    from dvc.utils.serialize import dumps_yaml, load_yaml

    lock = Path(LOCK_FILE)
    # The run lock keeps other runs away, and this one other commands of DVC.
    with Repo() as repo, repo.lock:
        _remove_torn_rwlock(Path(repo.tmp_dir or ".dvc/tmp"))
        dvc_stages = {stage.name: stage for stage in repo.index.stages if hasattr(stage, "name")}
        outputs = [Path(out.def_path) for stage in dvc_stages.values() for out in stage.outs]
        _remove_leftovers_of_dvc(outputs, Path(repo.cache.local.path))
        content = load_yaml(str(lock)) if lock.is_file() else {}
        entries = dict(content.get("stages") or {})
        for name in (dvc_pipeline.SETTINGS_STAGE, *names):
            dvc_stage = dvc_stages[name]
            # `Repo.commit` would write the lock once for each stage, in place: a kill in between
            # would leave some stages new and others old.
            dvc_stage.save()
            entry = to_lockfile(dvc_stage)[name]
            if name in stages:
                _check_entry(entry, stages[name].folder, folders)
            # Relinking, DVC deletes a result before it copies it back: a kill would lose it.
            dvc_stage.commit(relink=False)
            entries[name] = _plain(entry)
        # In the order of dvc.yaml, without stages that it no longer has, and without those of
        # another run that dvc.yaml versioned before.
        ordered = {
            name: entries[name]
            for name, dvc_stage in dvc_stages.items()
            if name in entries and _paths(entries[name]) == {out.def_path for out in dvc_stage.outs}
        }
        if ordered != content.get("stages"):
            write_text(lock, dumps_yaml({"schema": "2.0", "stages": ordered}))


def _remove_torn_rwlock(folder: Path) -> None:
    """Remove DVC's list of the paths in use if a killed command left half of it.

    DVC writes it in place, and then refuses every command. The caller holds DVC's lock.
    """
    path = folder / "rwlock"
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        path.unlink()


def _remove_leftovers_of_dvc(outputs: Iterable[Path], objects: Path) -> None:
    """Remove the temporary files of killed commands of DVC, which it never deletes itself.

    It tries which kinds of links there are with a file among the objects and its link beside an
    output, and it fetches an object beside its final place. The caller holds DVC's lock.
    """
    for folder in {path.parent for path in outputs} | {objects, *objects.glob("??")}:
        for path in folder.glob(".*.tmp"):
            if TEMPORARY_OF_DVC.fullmatch(path.name):
                path.unlink(missing_ok=True)


def _paths(entry: Mapping[str, Any]) -> set[str]:
    return {output["path"] for output in entry.get("outs", ())}


def _check_entry(entry: Mapping[str, Any], folder: str, folders: Mapping[str, str]) -> None:
    """Refuse an entry with another hash than the records prove.

    DVC reads files again, or takes a hash from its own cache by size and mtime.
    """
    (output,) = entry["outs"]
    if output["md5"] != folders[folder]:
        raise ArtifactError(
            f"{folder}/ changed while it was sealed, or DVC's state has another hash for it; "
            "run t5repro seal again; dvc.lock is unchanged"
        )


def _plain(value: Any) -> Any:
    """Return plain dictionaries in place of DVC's ordered ones, which its YAML writer would tag."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(element) for element in value] if isinstance(value, list) else value
