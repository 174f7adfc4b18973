"""A run whose results are as committed changes no tracked file."""

import json
import subprocess
from pathlib import Path

import pytest
from clones import artifact_hashes, commit, copy_clone, run_in, snakemake

pytestmark = pytest.mark.workflow
RECORD = "records/demo/tasks/glue_cola.json"
RERUN = ("--forcerun", "tasks_glue_cola", "--", "stage_tasks_glue_cola")


@pytest.fixture
def committed(finished: Path, tmp_path: Path) -> Path:
    """A finished clone whose results are committed."""
    folder = copy_clone(finished, tmp_path / "clone")
    commit(folder, "results")
    return folder


def changed_files(folder: Path) -> list[str]:
    status = ["git", "status", "--porcelain"]
    printed = subprocess.run(status, cwd=folder, check=True, text=True, stdout=subprocess.PIPE)
    return [line[3:] for line in printed.stdout.splitlines()]


def start_of(path: Path) -> str:
    return str(json.loads(path.read_text(encoding="utf-8"))["start"]["at"])


def test_a_repeated_job_keeps_its_committed_record_and_its_own_stays_in_work(
    committed: Path,
) -> None:
    before = start_of(committed / RECORD)
    ran = snakemake(committed, *RERUN)
    assert ran.returncode == 0, ran.stdout
    assert changed_files(committed) == []
    assert start_of(committed / RECORD) == before != start_of(committed / "work" / RECORD)
    repro = run_in(committed, "dvc", "repro", "--force", "--single-item", "tasks_glue_cola")
    assert repro.returncode == 0, repro.stdout
    assert changed_files(committed) == []


def test_a_job_of_other_code_leaves_its_new_record_and_one_of_a_remark_does_not(
    committed: Path,
) -> None:
    source = committed / "src/t5repro/tasks/build.py"
    for addition, leaves_record in (("# a remark\n", False), ("\nprint\n", True)):
        source.write_text(source.read_text(encoding="utf-8") + addition, encoding="utf-8")
        ran = snakemake(committed, *RERUN)
        assert ran.returncode == 0, ran.stdout
        assert (RECORD in changed_files(committed)) is leaves_record


def test_a_committed_record_that_was_altered_after_its_seal_is_not_restored(
    committed: Path,
) -> None:
    record = committed / RECORD
    record.write_text(record.read_text(encoding="utf-8").replace('"attempt": 1', '"attempt": 7'))
    commit(committed, "an altered record")
    ran = snakemake(committed, *RERUN)
    assert ran.returncode == 0, ran.stdout
    assert json.loads(record.read_text(encoding="utf-8"))["start"]["attempt"] == 1


@pytest.mark.slow
def test_a_clone_that_builds_everything_anew_stays_clean(committed: Path, tmp_path: Path) -> None:
    clone = tmp_path / "again"
    subprocess.run(["git", "clone", "--quiet", committed, clone], check=True)
    ran = snakemake(clone)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert artifact_hashes(clone) == artifact_hashes(committed)
    assert changed_files(clone) == []
