"""Write into `dvc.lock` what jobs of this checkout built, and nothing else.

A file may differ from `dvc.lock` only if the record of its job names its very hash. A stage enters
the lock only if the records of all its jobs agree with the code, settings, inputs and outputs that
are here now. Anything else is refused by name, and the lock stays as it was. `dvc commit` would
take an edited file for a built one.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t5repro.config.load import load_run_file
from t5repro.config.schema import Settings
from t5repro.config.withdrawn import PAGES
from t5repro.errors import ArtifactError
from t5repro.files import TEMPORARY_PREFIX, read_json, write_text
from t5repro.lineage.record import Record, read_record
from t5repro.lineage.redaction import redact
from t5repro.lineage.run_lock import run_lock
from t5repro.lineage.sources import closure, differing_files
from t5repro.versions import dvc_pipeline
from t5repro.versions.frozen import check_frozen
from t5repro.versions.lockfile import LOCK, Hasher, Hashes, Locked, locked_files, read_lock
from t5repro.versions.rehydrate import remember, versioned_run_file
from t5repro.versions.snakemake_graph import PLANNING, PROFILE, RUN_FILE, Job, Stage, resolve

RAW = Path("data.dvc")
INSIDE_DVC = "DVC_STAGE"  # DVC sets it for the commands of its stages
SHOWN = 10


@dataclass
class Sealed:
    """What a seal did."""

    sealed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    pruned: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Present:
    """What lies in a stage's folder now: declared files with their hashes, and the rest."""

    files: dict[str, Hashes]
    missing: list[str]
    orphans: list[str]


def seal(run_file: Path = RUN_FILE, profile: str = PROFILE, only: str | None = None) -> Sealed:
    """Bring `dvc.yaml` and `dvc.lock` to what was built here.

    Inside ``dvc repro`` nothing is written, DVC does that: the stage is checked alone.

    Args:
        run_file: whose graph is versioned.
        profile: Snakemake profile that the stages name.
        only: a single stage.

    Raises:
        ArtifactError: a file is neither as locked nor as a job left it; names every such file.
        StorageError: another run is at work.
    """
    settings, stages = resolve(run_file)
    chosen = [stage.name for stage in stages if only in (None, stage.name)]
    if not chosen:
        raise ArtifactError(f"no stage {only!r} in the graph of {run_file}")
    if os.environ.get(INSIDE_DVC):
        return _check(settings, [stage for stage in stages if stage.name in chosen])
    with run_lock():
        for path, text in dvc_pipeline.texts(settings, stages, run_file, profile).items():
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                write_text(path, text)
        return seal_stages(settings, stages, chosen)


def seal_run(settings: Settings) -> str:
    """Seal after a run of Snakemake, in a process of its own; return what to tell the person.

    Raises:
        ArtifactError: it was refused; says why.
    """
    run_file = versioned_run_file()
    if os.environ.get(INSIDE_DVC):
        return "dvc repro writes dvc.lock itself"
    if run_file is None:
        return "not sealed: there is no dvc.yaml; t5repro dvc generate makes it"
    if load_run_file(run_file) != settings:
        return f"not sealed: dvc.yaml versions {run_file}, and the settings of this run are others"
    words = ["--run-file", str(run_file), "--profile", dvc_pipeline.profile_of_pipeline()]
    ran = subprocess.run(
        [sys.executable, "-m", "t5repro", "seal", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, PLANNING: "1"},
    )
    if ran.returncode:
        raise ArtifactError(ran.stderr.strip())
    return ran.stdout.strip() or "dvc.lock agrees already"


def _check(settings: Settings, stages: list[Stage]) -> Sealed:
    """Refuse stages whose jobs do not agree with what is here; remove orphans."""
    hasher, done = Hasher(), Sealed()
    for stage in stages:
        present = present_files(stage, hasher)
        if faults := proof_faults(settings, stage, present, hasher):
            raise _refusal(faults)
        done.pruned += _prune(present)
    return done


def seal_stages(settings: Settings, stages: list[Stage], chosen: Iterable[str]) -> Sealed:
    """Bring the chosen stages of `dvc.lock` to what was built here; see `seal`."""
    hasher, done = Hasher(), Sealed()
    lock = read_lock()
    wanted = dvc_pipeline.read_pipeline()["stages"]
    refused = raw_faults(stages, lock, hasher)
    present = {stage.name: present_files(stage, hasher) for stage in stages}
    folders = {
        stage.folder: hasher.folder(stage.folder, present[stage.name].files) for stage in stages
    }
    for stage in (stage for stage in stages if stage.name in set(chosen)):
        here, locked = present[stage.name], lock.get(stage.name, Locked())
        if not here.files:
            done.left[stage.name] = "not built"
        elif here.missing:
            done.left[stage.name] = f"unfinished: {here.missing[0]} is missing"
        elif _agrees(settings, stage, wanted[stage.name], locked, folders, hasher):
            done.unchanged.append(stage.name)
        else:
            faults = proof_faults(settings, stage, here, hasher)
            altered = _altered(stage, here, locked, folders)
            if not faults:
                done.sealed.append(stage.name)
            elif altered:
                refused += _unproven(stage, altered, here, faults)
            else:
                done.left[stage.name] = f"out of date: {faults[0]}"
    if refused:
        raise _refusal(refused)
    for name in (*done.sealed, *done.unchanged):
        done.pruned += _prune(present[name])
    _commit(done.sealed, folders, {stage.name: stage for stage in stages})
    if RAW.is_file() and settings.data.folder == RAW.stem:
        check_frozen(RAW)
    remember(read_lock(), [*done.sealed, *done.unchanged])
    return done


def present_files(stage: Stage, hasher: Hasher) -> Present:
    """Hash what lies in a stage's folder; a manifest declares what it lists."""
    declared = [path for job in stage.jobs for path in job.outputs]
    for path in list(declared):
        if path.endswith("manifest.json") and Path(path).is_file():
            listed = _listed(Path(path))
            declared += [name for name in listed if Path(name).is_relative_to(stage.folder)]
    declared = list(dict.fromkeys(declared))
    found = {path: hasher.of(path) for path in declared}
    files = {path: hashes for path, hashes in found.items() if hashes}
    folder = Path(stage.folder)
    lying = [path.as_posix() for path in sorted(folder.rglob("*")) if not path.is_dir()]
    return Present(
        files=files,
        missing=[path for path, hashes in found.items() if not hashes],
        orphans=[path for path in lying if path not in found],
    )


def _listed(manifest: Path) -> list[str]:
    """Return the outputs that a manifest lists.

    Raises:
        ArtifactError: it is not a manifest; an altered byte may have hit any of its words.
    """
    try:
        return [str(item["path"]) for item in read_json(manifest)["outputs"]]
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"{manifest} is not a manifest ({type(error).__name__}: {error}); restore it with dvc "
            "checkout, or rerun the stage that writes it"
        ) from error


def proof_faults(settings: Settings, stage: Stage, present: Present, hasher: Hasher) -> list[str]:
    """Return why the records of a stage do not prove what is here; nothing if they do."""
    expected = redact(dvc_pipeline.settings_of_stage(settings, stage))
    faults: list[str] = []
    for job in stage.jobs:
        try:
            record = read_record(job.record)
        except ArtifactError:
            faults.append(f"{job.outputs[0]}: no record says that it was built ({job.record})")
            continue
        faults += _faults_of_job(job, record, expected, hasher)
    named = {path for job in stage.jobs for path in _recorded_outputs(job)}
    faults += [f"{path}: in no record" for path in present.files if path not in named]
    return faults


def _recorded_outputs(job: Job) -> dict[str, str]:
    try:
        end = read_record(job.record).end
    except ArtifactError:
        return {}
    return {item.path: item.sha256 for item in end.outputs} if end else {}


def _faults_of_job(job: Job, record: Record, expected: Any, hasher: Hasher) -> list[str]:
    if record.end is None or not record.end.ok:
        return [f"{job.outputs[0]}: its job did not end well ({job.record})"]
    if record.end.code_changed:
        return [f"{record.end.code_changed[0]}: changed while the job of {job.outputs[0]} ran"]
    faults = []
    if record.start.settings != expected:
        faults.append(f"{job.outputs[0]}: built with other settings ({job.record})")
    faults += [
        f"{path}: not the code that {job.outputs[0]} was built with"
        for path in differing_files(record.start.closure, closure(record.rule))
    ]
    inputs = {item.path: item.sha256 for item in record.end.inputs}
    faults += [
        f"{path}: not the input that {job.outputs[0]} was built from"
        for path in inputs
        if path in job.inputs and _sha256(hasher, path) != inputs[path]
    ]
    faults += [
        f"{item.path}: changed after its job ended"
        for item in record.end.outputs
        if _sha256(hasher, item.path) != item.sha256
    ]
    return faults


def _sha256(hasher: Hasher, path: str) -> str | None:
    found = hasher.of(path)
    return found.sha256 if found else None


def raw_faults(stages: list[Stage], lock: dict[str, Locked], hasher: Hasher) -> list[str]:
    """Return raw inputs that are neither as locked nor as the rule `data` found them."""
    made = tuple(f"{stage.folder}/" for stage in stages)
    proven: dict[str, str] = {}
    for stage in stages:
        if stage.rule == "data":
            for job in stage.jobs:
                try:
                    end = read_record(job.record).end
                except ArtifactError:
                    continue
                proven |= {item.path: item.sha256 for item in end.inputs} if end else {}
    faults = []
    for path in dict.fromkeys(path for stage in stages for path in stage.inputs):
        # The list of withdrawn pages is committed, not frozen: records of its readers vouch for it.
        if path.startswith(made) or path == PAGES.as_posix():
            continue
        found = hasher.of(path)
        known = {entry.deps[path] for entry in lock.values() if path in entry.deps}
        if found and found.md5 not in known and found.sha256 != proven.get(path):
            faults.append(f"{path}: a raw input that differs from dvc.lock and from what ran")
    return faults


def _agrees(
    settings: Settings,
    stage: Stage,
    wanted: dict[str, Any],
    locked: Locked,
    folders: dict[str, str],
    hasher: Hasher,
) -> bool:
    """Tell whether a stage is as `dvc.lock` says: command, settings, inputs, code, outputs."""
    leaves = dvc_pipeline.leaves_of(settings, stage)
    params = {f"{stage.name}.{name}": value for name, value in leaves.items()}
    deps = {path: folders.get(path) or _md5(hasher, path) for path in wanted["deps"]}
    return (
        locked.cmd == wanted["cmd"]
        and same_values(locked.params, params)
        and locked.deps == deps
        and locked.outs == {stage.folder: folders[stage.folder]}
    )


def same_values(locked: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Compare leaves; DVC writes 1e-06 as YAML 1.2 has it, which our reader takes for text."""
    return locked.keys() == here.keys() and all(
        locked[name] == value or (isinstance(value, float) and str(locked[name]) == str(value))
        for name, value in here.items()
    )


def _md5(hasher: Hasher, path: str) -> str | None:
    found = hasher.of(path)
    return found.md5 if found else None


def _altered(stage: Stage, here: Present, locked: Locked, folders: dict[str, str]) -> list[str]:
    """Return the files of a stage that differ from the lock; all if the lock does not list them."""
    was = locked.outs.get(stage.folder)
    if was == folders[stage.folder]:
        return []
    files = locked_files(stage.folder, was) if was else {}
    if files is None:
        return list(here.files)
    changed = [path for path, found in here.files.items() if files.get(path) != found.md5]
    return changed + [path for path in files if path not in here.files]


def _unproven(stage: Stage, altered: list[str], here: Present, faults: list[str]) -> list[str]:
    """Return the altered files that no job wrote; if jobs wrote them all, what else is wrong."""
    written = {path: sha for job in stage.jobs for path, sha in _recorded_outputs(job).items()}
    foreign = [
        path
        for path in altered
        if path not in here.files or here.files[path].sha256 != written.get(path)
    ]
    return [f"{path}: changed, but no job of {stage.name} wrote it" for path in foreign] or faults


def _refusal(faults: list[str]) -> ArtifactError:
    more = f"\n  and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
    return ArtifactError(
        "not sealed, dvc.lock is as it was:\n  "
        + "\n  ".join(faults[:SHOWN])
        + more
        + "\nrestore a file with dvc checkout, or build it again with snakemake --forcerun RULE"
    )


def _prune(present: Present) -> list[str]:
    """Delete what a stage's folder holds and the graph does not declare."""
    for path in present.orphans:
        Path(path).unlink(missing_ok=True)
    return [path for path in present.orphans if not Path(path).name.startswith(TEMPORARY_PREFIX)]


def _commit(names: Iterable[str], folders: dict[str, str], stages: dict[str, Stage]) -> None:
    """Let DVC hash, cache and lock the stages; write the lock in one piece."""
    from dvc.repo import Repo
    from dvc.stage.serialize import to_lockfile
    from dvc.utils.serialize import dumps_yaml, load_yaml

    with Repo() as repo, repo.lock:
        known = {stage.name: stage for stage in repo.index.stages if hasattr(stage, "name")}
        content = load_yaml(str(LOCK)) if LOCK.is_file() else {}
        entries = dict(content.get("stages") or {})
        for name in (dvc_pipeline.SETTINGS_STAGE, *names):
            stage = known[name]
            stage.save()
            entry = to_lockfile(stage)[name]
            if name in stages:
                _same_as_read(entry, stages[name].folder, folders)
            stage.commit()
            entries[name] = _plain(entry)
        kept = {name: entries[name] for name in known if name in entries}
        if kept != content.get("stages"):
            write_text(LOCK, dumps_yaml({"schema": "2.0", "stages": kept}))


def _same_as_read(entry: dict[str, Any], folder: str, folders: dict[str, str]) -> None:
    (out,) = entry["outs"]
    if out["md5"] != folders[folder]:
        raise ArtifactError(
            f"{folder}/ changed while it was sealed, or DVC remembers another content for it; "
            "run t5repro seal again, with dvc.lock and .dvc/tmp as they were"
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
