"""A seal deletes only files that a job is known to have written, inside the checkout."""

import shutil
import subprocess
from pathlib import Path

import pytest
from clones import commit
from made_graphs import lock, small_run, write
from made_records import sealed_run

from t5repro.lineage.hashes import Hasher
from t5repro.versions.proof import files_of_stage
from t5repro.versions.snakemake_graph import PlannedJob, PlannedStage
from t5repro.versions.undeclared import strange_files

FOLDER = "results/r/c4_clean/a"
JOB = PlannedJob((), (), (f"{FOLDER}/0.parquet", f"{FOLDER}/0.manifest.json"), Path("records/r/0"))
STAGE = PlannedStage("c4_clean-a", "c4_clean", "a", FOLDER, (JOB,))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose stage has one job; the outputs of the other are former ones."""
    root = small_run(tmp_path / "checkout")
    monkeypatch.chdir(root)
    return root


def strange() -> list[str]:
    files = files_of_stage(STAGE, Hasher())
    return [fault.partition(":")[0] for fault in strange_files(STAGE, files)]


def test_outputs_of_a_former_manifest_may_be_deleted_and_a_users_file_not(checkout: Path) -> None:
    write(checkout, f"{FOLDER}/.writing-abcdefgh-0.parquet", "half")
    assert files_of_stage(STAGE, Hasher()).orphans[1:] == [
        f"{FOLDER}/1.manifest.json",
        f"{FOLDER}/1.parquet",
    ]
    assert strange() == []
    write(checkout, f"{FOLDER}/thesis.tex", "precious")
    assert strange() == [f"{FOLDER}/thesis.tex"]


def test_only_temporary_files_and_locks_of_jobs_are_deleted_and_none_of_a_user(
    checkout: Path,
) -> None:
    for name in ("abcdefgh-0.parquet", "lock-0.manifest.json"):
        write(checkout, f"{FOLDER}/.writing-{name}", "half")
    assert strange() == []
    mine = [f"{FOLDER}/.writing-{name}" for name in ("lock-of-mine", "mine")]
    for path in mine:
        write(checkout, path, "precious")
    assert strange() == mine


def test_outputs_that_a_record_has_may_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sealed_run(tmp_path / "sealed")
    monkeypatch.chdir(root)
    shutil.rmtree(root / ".git")
    for name in ("dvc.lock", f"{FOLDER}/1.manifest.json"):
        (root / name).unlink()
    assert strange() == []
    shutil.rmtree(root / "records")
    assert strange() == [f"{FOLDER}/1.parquet"]


def test_outputs_that_the_lock_had_may_be_deleted(checkout: Path) -> None:
    (checkout / FOLDER / "1.manifest.json").unlink()
    lock(checkout, folders=(FOLDER,), code="code")
    assert strange() == []
    (checkout / "dvc.lock").unlink()
    assert strange() == [f"{FOLDER}/1.parquet"]


def test_outputs_that_the_committed_lock_has_may_be_deleted(checkout: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], check=True)
    (checkout / FOLDER / "1.manifest.json").unlink()
    lock(checkout, folders=(FOLDER,), code="code")
    commit(checkout, "results")
    (checkout / "dvc.lock").unlink()
    assert strange() == []


def test_nothing_is_deleted_through_a_link_out_of_the_checkout(
    checkout: Path, tmp_path: Path
) -> None:
    (checkout / FOLDER).rename(tmp_path / "elsewhere")
    (checkout / FOLDER).symlink_to(tmp_path / "elsewhere")
    files = files_of_stage(STAGE, Hasher())
    faults = strange_files(STAGE, files)
    assert len(faults) == 2
    assert "a link out of the checkout, where nothing is deleted" in faults[0]


def test_a_temporary_file_behind_a_link_out_of_the_checkout_is_not_deleted(
    checkout: Path, tmp_path: Path
) -> None:
    for name in ("1.manifest.json", "1.parquet"):
        (checkout / FOLDER / name).unlink()
    write(checkout, f"{FOLDER}/.writing-abcdefgh-0.parquet", "half")
    (checkout / FOLDER).rename(tmp_path / "elsewhere")
    (checkout / FOLDER).symlink_to(tmp_path / "elsewhere")
    assert strange() == [f"{FOLDER}/.writing-abcdefgh-0.parquet"]


def test_a_manifest_that_was_altered_vouches_for_no_file(checkout: Path) -> None:
    former = checkout / FOLDER / "1.manifest.json"
    former.write_text(former.read_text().replace("1.parquet", "2.parquet"))
    assert strange() == [f"{FOLDER}/1.manifest.json", f"{FOLDER}/1.parquet"]
