"""Compares `dvc.lock` with the settings and the code of the checkout, without any artifact.

A stage can differ from the lock while every file of it is as locked, and its results are then not
those of the present code. Nothing else says so: git has no artifacts, and Snakemake compares
the times of files that it has no metadata of.
"""

from collections.abc import Iterator
from pathlib import Path

from t5repro.config.schema import Settings
from t5repro.lineage.dvc_lock import LOCK_FILE, read_lock
from t5repro.lineage.hashes import Hasher
from t5repro.versions import dvc_pipeline
from t5repro.versions.proof import changed_question
from t5repro.versions.snakemake_graph import PlannedStage, resolve

CURE = "run snakemake, which seals, or restore it with git checkout"
CURE_OF_SETTINGS = "run t5repro config generate, or restore it with git checkout"


def lock_faults() -> list[str]:
    """Return one line for each part of the lock that is not of the present settings and code.

    A project without a lock has none. `dvc.yaml` is in sync with the graph.
    """
    if not Path(LOCK_FILE).is_file():
        return []
    run = dvc_pipeline.versioned_run() or dvc_pipeline.VersionedRun()
    return list(_faults(*resolve(run.run_file)))


def _faults(settings: Settings, stages: list[PlannedStage]) -> Iterator[str]:
    lock, pipeline, hasher = read_lock(), dvc_pipeline.read_pipeline()["stages"], Hasher()
    for stage in stages:
        locked = lock.stages.get(stage.name)  # none: not built yet
        if locked and (changed := changed_question(settings, stage, locked, hasher)):
            yield f"{LOCK_FILE}: {stage.name}: {changed.text('as sealed', 'now')}; {CURE}"
    if path := dvc_pipeline.changed_settings_stage(lock, pipeline, hasher):
        yield f"{path} is not the one that {LOCK_FILE} was sealed with; {CURE_OF_SETTINGS}"
