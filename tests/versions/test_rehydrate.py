"""When Snakemake's metadata is written again, and for which stages it must not be."""

import base64
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from checkout import ROOT
from made_graphs import write

from t5repro.config.load import load_run_file
from t5repro.lineage.dvc_lock import Lock, LockedStage
from t5repro.versions.dvc_pipeline import SETTINGS_STAGE, leaves_of
from t5repro.versions.rehydrate import (
    METADATA,
    _has_locked_settings,
    _job_hash,
    needed,
    save_snapshot,
)
from t5repro.versions.snakemake_graph import PlannedJob, PlannedStage

OUTPUT, RUN_FILE = "results/r/vocab/a", "configs/demo.yaml"
LOCK = Lock(
    stages={
        SETTINGS_STAGE: LockedStage(deps={RUN_FILE: "0"}, outs={"configs/resolved/code": "1.dir"}),
        "vocab-a": LockedStage(outs={OUTPUT: "2.dir"}),
    }
)


def metadata_of(output: str) -> str:
    """Return the path of Snakemake's metadata of an output."""
    key = base64.urlsafe_b64encode(output.encode()).decode()
    # As `Persistence._record_path` divides a name that is too long for a file system.
    parts = [key[first : first + 254] for first in range(0, len(key), 254)]
    return "/".join([METADATA.as_posix(), *(f"@{part}" for part in parts[:-1]), parts[-1]])


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (RUN_FILE, "configs/resolved/code/vocab.json", f"{OUTPUT}/x"):
        write(tmp_path, name, "before")
    write(tmp_path, metadata_of(f"{OUTPUT}/x"), "{}")
    monkeypatch.chdir(tmp_path)
    save_snapshot(LOCK, ["vocab-a"], ())
    return tmp_path


def test_restored_results_that_were_sealed_before_a_plan_are_rehydrated_all_the_same(
    checkout: Path,
) -> None:
    (metadata,) = (checkout / METADATA).iterdir()
    metadata.unlink()
    save_snapshot(LOCK, ["vocab-a"], ())
    assert needed(LOCK)


def test_metadata_of_another_stage_whose_name_begins_alike_vouches_for_no_stage(
    checkout: Path,
) -> None:
    (metadata,) = (checkout / METADATA).iterdir()
    metadata.unlink()
    write(checkout, metadata_of(f"{OUTPUT}_seed_1/x"), "{}")
    save_snapshot(LOCK, ["vocab-a"], ())
    assert needed(LOCK)


def test_metadata_of_one_job_vouches_for_no_other_job_of_its_stage(checkout: Path) -> None:
    long = f"{OUTPUT}/{'y' * 200}/{'z' * 200}"
    jobs = [PlannedJob((), (), (output,), Path("r")) for output in (f"{OUTPUT}/x", long)]
    stages = [PlannedStage("vocab-a", "vocab", "a", OUTPUT, tuple(jobs))]
    save_snapshot(LOCK, ["vocab-a"], stages)
    assert needed(LOCK)
    write(checkout, metadata_of(long), "{}")
    save_snapshot(LOCK, ["vocab-a"], stages)
    assert not needed(LOCK)


def test_an_edited_run_file_or_source_file_is_left_to_snakemake(checkout: Path) -> None:
    assert not needed(LOCK)
    write(checkout, RUN_FILE, "edited run file")
    write(checkout, "configs/resolved/code/vocab.json", "edited code")
    assert not needed(LOCK)


def test_a_restored_file_or_another_lock_is_noticed(checkout: Path) -> None:
    os.utime(checkout / OUTPUT / "x", ns=(1, 1))
    assert needed(LOCK)
    save_snapshot(LOCK, ["vocab-a"], ())
    assert not needed(LOCK)
    changed = replace(LOCK.stages["vocab-a"], outs={OUTPUT: "3.dir"})
    assert needed(Lock(stages={**LOCK.stages, "vocab-a": changed}))


def test_a_stage_with_edited_settings_gets_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = load_run_file(Path(RUN_FILE))
    stage = PlannedStage("vocab-baseline", "vocab", "baseline", "results/demo/vocab/baseline", ())
    params = {f"{stage.name}.{name}": value for name, value in leaves_of(settings, stage).items()}
    locked = {stage.name: LockedStage(params=params)}
    assert _has_locked_settings(settings, stage, Lock(stages=locked))
    vocab = settings.vocab.model_copy(update={"vocab_size": settings.vocab.vocab_size + 1})
    edited = settings.model_copy(update={"vocab": vocab})
    assert not _has_locked_settings(edited, stage, Lock(stages=locked))


def test_equal_jobs_of_two_runs_have_equal_metadata_and_others_have_other() -> None:
    first, equal, other = (
        SimpleNamespace(output=outputs) for outputs in (["a", "b"], ["a", "b"], ["a"])
    )
    assert _job_hash(first) == _job_hash(equal) != _job_hash(other)
