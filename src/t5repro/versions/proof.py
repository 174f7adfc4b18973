"""Whether a stage is stale: its files, settings and code against the records of its jobs.

A stage is proven if the records of all its jobs agree with its code, settings, inputs and outputs
as they are now. A file that differs from `dvc.lock` is accepted only if the record of its job has
its hash.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST
from t5repro.config.schema import Settings
from t5repro.config.withdrawn import PAGES
from t5repro.errors import ArtifactError
from t5repro.files import read_json
from t5repro.lineage.dvc_cache import folder_files, object_path
from t5repro.lineage.dvc_lock import Lock, LockedStage, TrackedPath, folder_md5
from t5repro.lineage.facts import (
    Difference,
    JobFacts,
    differences,
    facts_of_lock,
    facts_of_record,
    leaves,
    settings_of_params,
)
from t5repro.lineage.hashes import Hasher, Hashes
from t5repro.lineage.record import End, Record, read_record
from t5repro.lineage.redaction import redact
from t5repro.lineage.sources import SourceTree
from t5repro.lineage.verify_other_code import foreign_code
from t5repro.lineage.workflow_files import rule_file_hashes
from t5repro.versions import dvc_pipeline
from t5repro.versions.snakemake_graph import PlannedJob, PlannedStage
from t5repro.versions.stage_dependencies import md5_of


@dataclass(frozen=True)
class Checkout:
    """The files of the checkout as they are now.

    Attributes:
        hasher: deep, because `dvc.lock` must not take over a hash from a cache: mtime and size,
            which DVC itself relies on, can be kept by an edit.
        closure: rule -> hashes of its code; every source file is parsed once.
        rule_files: rule -> hashes of the rule files that decide its command.
    """

    hasher: Hasher = field(default_factory=lambda: Hasher(deep=True))
    closure: Callable[[str], dict[str, str]] = field(
        default_factory=lambda: cache(SourceTree().closure)
    )
    rule_files: Callable[[str], dict[str, str]] = field(
        default_factory=lambda: cache(rule_file_hashes)
    )


@dataclass(frozen=True)
class StageFiles:
    """The files in the folder of a stage.

    Attributes:
        files: path -> hashes of the files that the graph or a manifest declares.
        missing: declared paths that do not exist.
        orphans: files that nothing declares.
    """

    files: dict[str, Hashes]
    missing: list[str]
    orphans: list[str]


def files_of_stage(stage: PlannedStage, hasher: Hasher) -> StageFiles:
    """Return the files in the folder of a stage; outputs in its manifests count as declared.

    Raises:
        ArtifactError: a manifest is not a manifest.
    """
    paths = [path for job in stage.jobs for path in job.outputs]
    for path in list(paths):
        if path.endswith(MANIFEST) and Path(path).is_file():
            # Stages with many files declare only their manifest, which lists the others.
            outputs = _manifest_outputs(Path(path))
            paths += [output for output in outputs if Path(output).is_relative_to(stage.folder)]
    # Read in full: a lock that takes over a wrong hash would make the error official.
    declared = {path: hasher.of(path) for path in paths}
    existing = (path for path in sorted(Path(stage.folder).rglob("*")) if not path.is_dir())
    return StageFiles(
        files={path: hashes for path, hashes in declared.items() if hashes},
        missing=[path for path, hashes in declared.items() if not hashes],
        orphans=[path.as_posix() for path in existing if path.as_posix() not in declared],
    )


def _manifest_outputs(manifest: Path) -> list[str]:
    """Return the outputs in a manifest.

    Raises:
        ArtifactError: it is not a manifest; an altered byte can be in any of its keys.
    """
    try:
        return [str(entry["path"]) for entry in read_json(manifest)["outputs"]]
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"{manifest} is not a manifest ({type(error).__name__}: {error}); restore it with dvc "
            "checkout, or rerun the stage that writes it"
        ) from error


def md5_of_folder(stage: PlannedStage, files: StageFiles) -> str:
    """Return DVC's hash of the folder of a stage with only its declared files."""
    prefix = f"{stage.folder}/"
    return folder_md5({path.removeprefix(prefix): h.md5 for path, h in files.files.items()})


def proof_faults(
    settings: Settings, stage: PlannedStage, files: StageFiles, checkout: Checkout
) -> list[str]:
    """Return why the records of a stage do not prove its files; empty if they do."""
    stage_settings = redact(dvc_pipeline.settings_of_stage(settings, stage))  # as in records
    faults: list[str] = []
    for job in stage.jobs:
        try:
            record = read_record(job.record)
        except ArtifactError:
            faults.append(f"{job.outputs[0]}: no record says that it was built ({job.record})")
            continue
        faults += _job_faults(job, record, stage_settings, checkout)
    recorded = recorded_outputs(stage)
    return faults + [f"{path}: in no record" for path in files.files if path not in recorded]


def recorded_outputs(stage: PlannedStage) -> dict[str, str]:
    """Return path -> SHA-256 of the outputs in the records of a stage."""
    ends = (_recorded_end(job) for job in stage.jobs)
    return {output.path: output.sha256 for end in ends if end for output in end.outputs}


def _recorded_end(job: PlannedJob) -> End | None:
    try:
        return read_record(job.record).end
    except ArtifactError:
        return None


def _job_faults(job: PlannedJob, record: Record, settings: Any, checkout: Checkout) -> list[str]:
    """Return the differences between the record of a job and the checkout."""
    output, end, hasher = job.outputs[0], record.end, checkout.hasher
    if end is None or not end.ok:
        return [f"{output}: its job did not end well ({job.record})"]
    if end.code_changed:  # nobody knows which version of the file ran
        return [f"{end.code_changed[0]}: changed while the job of {output} ran"]
    recorded = facts_of_record(record)
    # A record lists every file on the command line; only the inputs of the graph must agree.
    inputs = {
        path: sha256 for path, sha256 in (recorded.inputs or {}).items() if path in job.inputs
    }
    current = JobFacts(
        settings=dict(leaves(settings)),
        definitions=checkout.closure(record.rule),
        rule_files=checkout.rule_files(record.rule),
        # Compared as they are now, because an input may have been edited after the job.
        inputs={path: hasher.sha256(path) for path in inputs},
        outputs={path: hasher.sha256(path) for path in recorded.outputs or ()},
    )
    faults = [
        f"{output}: {difference.text('in its record', 'now')}"
        for difference in differences(replace(recorded, inputs=inputs), current)
    ]
    faults += [f"{finding.path}: {finding.message}" for finding in foreign_code(output, record)]
    return faults


def raw_file_faults(stages: list[PlannedStage], lock: Lock, hasher: Hasher) -> list[str]:
    """Return raw files that agree neither with the lock nor with the record of the rule `data`."""
    stage_folders = tuple(f"{stage.folder}/" for stage in stages)
    recorded: dict[str, str] = {}
    for stage in stages:
        if stage.rule == "data":
            for end in filter(None, map(_recorded_end, stage.jobs)):
                recorded |= {file.path: file.sha256 for file in end.inputs}
    locked: dict[str, set[str]] = defaultdict(set)
    for entry in lock.stages.values():
        for path, md5 in entry.deps.items():
            locked[path].add(md5)
    current = cache(partial(md5_of, hasher=hasher))
    faults = []
    for path in dict.fromkeys(path for stage in stages for path in stage.inputs):
        # The list of withdrawn pages is in git, not in data.dvc; the records of its readers prove
        # it.
        if path.startswith(stage_folders) or path == PAGES.as_posix():
            continue
        hashes = hasher.of(path)
        # The lock or the record of `data` must know it: a new raw file is only in the record. The
        # lock may know it by a folder that it is in.
        names = [name for name in (path, *map(str, Path(path).parents)) if name in locked]
        is_locked = any(current(name) in locked[name] for name in names)
        if hashes and not is_locked and hashes.sha256 != recorded.get(path):
            faults.append(f"{path}: a raw input that differs from dvc.lock and from its record")
    return faults


def agrees_with_lock(
    settings: Settings,
    stage: PlannedStage,
    pipeline_entry: Mapping[str, Any],
    locked: LockedStage,
    folders: Mapping[str, str],
    hasher: Hasher,
) -> bool:
    """Return whether command, settings, inputs, code and outputs of a stage are as locked.

    Args:
        settings: of the run.
        stage: the stage.
        pipeline_entry: its entry in `dvc.yaml`.
        locked: its entry in `dvc.lock`.
        folders: folder of a stage -> its hash now.
        hasher: of the checkout.
    """
    deps = {path: folders.get(path) or md5_of(path, hasher) for path in pipeline_entry["deps"]}
    files = pipeline_entry.get("params", ())
    tracked = [key for file in files for keys in file.values() for key in keys]
    return (
        locked.cmd == pipeline_entry["cmd"]
        and list(locked.tracked_params) == tracked  # a lock with other keys is out of date for DVC
        and changed_question(settings, stage, locked, hasher) is None
        and locked.deps == deps
        and locked.outs == {stage.folder: folders[stage.folder]}
    )


def changed_question(
    settings: Settings, stage: PlannedStage, locked: LockedStage, hasher: Hasher
) -> Difference | None:
    """Return the first setting or code in which a stage differs from its entry in the lock."""
    current = JobFacts(
        settings=settings_of_params(dvc_pipeline.leaves_of(settings, stage)),
        locked_code={path: hasher.md5(path) for path in stage.code},
    )
    changed = differences(facts_of_lock(locked, stage.name), current, "settings", "locked_code")
    return changed[0] if changed else None


def altered_files(stage: PlannedStage, files: StageFiles, locked: LockedStage) -> list[str]:
    """Return the files of a stage that differ from the lock; all of them if it has no file list."""
    md5 = locked.outs.get(stage.folder)
    if md5 == md5_of_folder(stage, files):
        return []
    locked_files: dict[str, str] = {}
    if md5 is not None:
        # Without the list of the folder any of its files may be the altered one.
        if not object_path(Path(), md5).is_file():
            return list(files.files)
        contents = folder_files(Path(), TrackedPath(stage.folder, md5, stage.name))
        locked_files = {f"{stage.folder}/{name}": file_md5 for name, file_md5 in contents.items()}
    changed = [path for path, hashes in files.files.items() if locked_files.get(path) != hashes.md5]
    return changed + [path for path in locked_files if path not in files.files]


def unproven_files(stage: PlannedStage, altered: list[str], files: StageFiles) -> list[str]:
    """Return a fault for each altered file that no job of the stage wrote."""
    recorded = recorded_outputs(stage)
    return [
        f"{path}: changed, but no job of {stage.name} wrote it"
        for path in altered
        if path not in files.files or files.files[path].sha256 != recorded.get(path)
    ]
