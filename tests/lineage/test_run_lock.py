"""Two runs in one checkout are kept apart, and a killed one leaves nothing to remove."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from t5repro.errors import StorageError
from t5repro.lineage.run_lock import job_lock, run_lock


def test_a_second_run_is_refused_with_the_first_ones_process(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        run_lock(lock),
        pytest.raises(StorageError, match=f"process {os.getpid()}"),
        run_lock(lock),
    ):
        pytest.fail("the lock was given twice")
    with run_lock(lock):
        pass


def test_a_killed_run_frees_the_lock(tmp_path: Path) -> None:
    lock, ready = tmp_path / "lock", tmp_path / "ready"
    script = (
        "import signal, sys; from pathlib import Path\n"
        "from t5repro.lineage.run_lock import acquire\n"
        "kept = acquire(Path(sys.argv[1])); Path(sys.argv[2]).touch(); signal.pause()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(lock), str(ready)])
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.02)
    with pytest.raises(StorageError, match=f"process {process.pid}"), run_lock(lock):
        pytest.fail("the lock was given twice")
    process.send_signal(signal.SIGKILL)
    process.wait()
    with run_lock(lock):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"), run_lock(tmp_path / "file/lock"):
        pytest.fail("no lock can be there")


def test_a_run_waits_for_the_jobs_that_a_killed_run_left_behind(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    script = (
        "import sys; from pathlib import Path\n"
        "from t5repro.lineage.run_lock import run_lock\n"
        "with run_lock(Path(sys.argv[1])):\n"
        "    print('at work', file=sys.stderr)\n"
    )
    with job_lock(lock):
        with job_lock(lock):
            pass  # jobs do not wait for each other
        run = subprocess.Popen(
            [sys.executable, "-c", script, str(lock)], stderr=subprocess.PIPE, text=True
        )
        assert run.stderr is not None
        assert "waiting for its end" in run.stderr.readline()
        assert run.poll() is None
    assert run.communicate()[1] == "at work\n"
    assert run.returncode == 0


@pytest.mark.parametrize("shared", ["results", "results/demo", "work", "work/demo"])
def test_two_checkouts_that_share_results_by_links_are_kept_apart(
    tmp_path: Path, shared: str
) -> None:
    for name in ("results/demo", "work/demo"):
        (tmp_path / "first" / name).mkdir(parents=True)
    (tmp_path / "second" / shared).parent.mkdir(parents=True)
    (tmp_path / "second" / shared).symlink_to(tmp_path / "first" / shared)
    locks = [tmp_path / name / ".snakemake/lock" for name in ("first", "second")]
    for holder, other in (locks, reversed(locks)):
        with (
            run_lock(holder),
            pytest.raises(StorageError, match="another checkout is at work in"),
            run_lock(other),
        ):
            pytest.fail("the lock was given twice")
    with run_lock(locks[1]):
        pass
    assert not list((tmp_path / "first/results").rglob("*.*"))  # no lock file among the results
