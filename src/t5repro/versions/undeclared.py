"""The files in the folder of a stage that the graph does not declare: former outputs, or a user's.

Only what a job is known to have written is deleted, and nothing outside the checkout, to which the
folder of a stage may be a link.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from t5repro.artifacts import MANIFEST
from t5repro.errors import ArtifactError
from t5repro.files import read_manifest, real_path
from t5repro.lineage.dvc_cache import folder_files
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock, TrackedPath, parse_lock, read_lock
from t5repro.lineage.git import file_at
from t5repro.lineage.leftovers import is_leftover
from t5repro.lineage.record import read_record
from t5repro.lineage.store import RECORDS, RESULTS
from t5repro.versions.proof import StageFiles
from t5repro.versions.snakemake_graph import PlannedStage


def strange_files(stage: PlannedStage, files: StageFiles) -> list[str]:
    """Return a fault for each undeclared file that may not be deleted."""
    if not files.orphans:
        return []
    if not real_path(Path(stage.folder)).is_relative_to(real_path(Path())):
        cure = "the folder is a link out of the checkout, where nothing is deleted; move it away"
        return [f"{path}: {cure}" for path in files.orphans]
    undeclared = without_leftovers(files.orphans)
    former_outputs = set(_former_outputs(stage, undeclared))
    return [
        f"{path}: no job is known to have written it, so it is not deleted; move it to another "
        "folder"
        for path in undeclared
        if path not in former_outputs
    ]


def without_leftovers(paths: Iterable[str]) -> list[str]:
    """Return the files that are not temporary files of a job that was killed."""
    return [path for path in paths if not is_leftover(Path(path).name)]


def _former_outputs(stage: PlannedStage, undeclared: list[str]) -> Iterator[str]:
    """Yield the files that locks, records and former manifests have of a stage."""
    for lock in (read_lock(), _committed_lock()):
        md5 = lock.stages[stage.name].outs.get(stage.folder) if stage.name in lock.stages else None
        if md5:
            try:
                contents = folder_files(Path(), TrackedPath(stage.folder, md5, stage.name))
            except ArtifactError:  # the cache does not have the list
                continue
            yield from (f"{stage.folder}/{name}" for name in contents)
    # Of jobs that the graph no longer has, too.
    records = Path(RECORDS) / Path(stage.folder).relative_to(RESULTS)
    for path in [records.with_name(f"{records.name}.json"), *records.rglob("*.json")]:
        try:
            end = read_record(path).end
        except ArtifactError:
            continue
        yield from (output.path for output in end.outputs) if end else ()
    for name in undeclared:
        if name.endswith(MANIFEST):
            try:
                outputs = read_manifest(Path(name))["outputs"]  # verifies its checksum
            except ArtifactError:
                continue
            yield from (name, *(str(entry["path"]) for entry in outputs))


def _committed_lock() -> Lock:
    """Return the committed lock; an empty one without git."""
    return parse_lock(file_at(Path(), "HEAD", LOCK_FILE))
