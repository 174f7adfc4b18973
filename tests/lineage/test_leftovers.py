"""What a killed run leaves is removed by the next run of its job, and by no other."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t5repro.c4.dedup.spill import spill_folder
from t5repro.errors import StorageError
from t5repro.files import atomic_path
from t5repro.lineage.leftovers import exclusive

KILLED = """
import os, signal, sys
from pathlib import Path
from t5repro.c4.dedup.spill import spill_folder
from t5repro.lineage.leftovers import exclusive
from t5repro.files import atomic_path

manifest, output = map(Path, sys.argv[1:])
with exclusive(manifest, [output]), spill_folder(manifest) as folder, atomic_path(output):
    (folder / "bucket-0").write_bytes(b"rows")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def job(tmp_path):
    """Return manifest and output of a job that was killed while it wrote."""
    files = tmp_path / "00000.manifest.json", tmp_path / "00000.parquet"
    killed = subprocess.run([sys.executable, "-c", KILLED, *files], check=False)
    assert killed.returncode == -signal.SIGKILL
    return files


def test_the_next_run_of_a_killed_job_removes_what_it_left(tmp_path, job):
    manifest, output = job
    assert sorted(name.split("-", 2)[2] for name in names(tmp_path)) == [
        "00000.manifest.json",  # the lock
        "00000.manifest.json-spill",
        "00000.parquet",
    ]
    with exclusive(manifest, [output]):
        assert names(tmp_path) == [".writing-lock-00000.manifest.json"]
    assert names(tmp_path) == []


def test_another_job_of_the_folder_removes_nothing_of_it(tmp_path, job):
    left = names(tmp_path)
    with exclusive(tmp_path / "00001.manifest.json", [tmp_path / "00001.parquet"]):
        pass
    assert names(tmp_path) == left


def test_nothing_is_removed_while_the_job_runs_elsewhere(tmp_path, job):
    manifest, output = job
    left = names(tmp_path)
    with (tmp_path / ".writing-lock-00000.manifest.json").open("w") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        with exclusive(manifest, [output]):
            assert names(tmp_path) == left
    assert names(tmp_path) == left


def test_a_job_keeps_its_own_temporary_files(tmp_path):
    manifest, output = tmp_path / "manifest.json", tmp_path / "0.parquet"
    with (
        exclusive(manifest, [output]),
        spill_folder(manifest) as folder,
        atomic_path(output) as temporary,
    ):
        temporary.write_bytes(b"pages")
        assert folder.is_dir()
    assert names(tmp_path) == ["0.parquet"]


def test_finished_files_and_those_of_others_stay(tmp_path):
    kept = ["00000.parquet", ".writing-abcdefgh-00001.parquet", ".writing-x-00000.parquet"]
    for name in [*kept, ".writing-abcdefgh-00000.parquet"]:
        (tmp_path / name).write_bytes(b"")
    with exclusive(tmp_path / "m.json", [tmp_path / "00000.parquet"]):
        pass
    assert names(tmp_path) == sorted(kept)


@pytest.mark.skipif(os.getuid() != 0, reason="needs /proc, in which no user can write")
def test_a_folder_that_cannot_be_written_is_named():
    with pytest.raises(StorageError, match="/proc/none"), exclusive(Path("/proc/none/m.json"), ()):
        pass


def test_a_job_without_named_outputs_removes_all_below_its_folder(tmp_path: Path) -> None:
    left = [".writing-0123abcd-report.html", "answers/.writing-0123abcd-squad.html"]
    others = ["report.html", ".writing-mine", "../other/.writing-0123abcd-report.html"]
    for name in (*left, *others):
        (tmp_path / "node" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "node" / name).write_text("half")
    with exclusive(tmp_path / "node/manifest.json"):
        assert not [name for name in left if (tmp_path / "node" / name).exists()]
    assert all((tmp_path / "node" / name).exists() for name in others)
