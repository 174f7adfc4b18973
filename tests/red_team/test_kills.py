"""SIGKILL at any moment: no half-written file has a final name, and the next run gives equal bytes.

Moments are drawn with a fixed seed from events and not from the clock: the begin of a job, a
temporary file, or some polls later.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from clones import artifact_hashes, copy_clone, environment, run_in, snakemake

from t5repro.files import TEMPORARY_PREFIX
from t5repro.lineage.run_lock import run_lock

pytestmark = pytest.mark.workflow

TASK = "tasks/glue_sst2"
POLL_SECONDS = 0.01
MAX_POLLS = 100  # after the event
SHORT_POLLS = 20  # of a job that takes a second
PIPELINE = ("dvc.lock", "data.dvc", "dvc.yaml")


def begin(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment(folder),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_after(process: subprocess.Popen[bytes], happened: Callable[[], bool], polls: int) -> bool:
    """Kill the process group some polls after an event; return whether it was still at work."""
    try:
        while polls and process.poll() is None:
            time.sleep(POLL_SECONDS)
            if happened():
                polls -= 1
        return process.poll() is None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def temporary_files(folder: Path) -> Iterator[Path]:
    return (folder / "results").rglob(f"{TEMPORARY_PREFIX}*")


def check_files(folder: Path, expected: dict[str, str]) -> None:
    """Check that every file under a final name is complete."""
    for name, sha256 in artifact_hashes(folder).items():
        if not Path(name).name.startswith(TEMPORARY_PREFIX):
            assert expected[name] == sha256, f"{name} is incomplete"
    for name in PIPELINE:
        if (folder / name).is_file():
            assert isinstance(yaml.safe_load((folder / name).read_bytes()), dict), name


def check_equal(folder: Path, original: Path) -> None:
    """Check that a folder has the artifacts of another one, and a lock that nobody holds."""
    assert artifact_hashes(folder) == artifact_hashes(original)
    assert list(temporary_files(folder)) == []
    assert (folder / "dvc.lock").read_bytes() == (original / "dvc.lock").read_bytes()
    with run_lock(folder / ".snakemake/t5repro.lock"):
        pass


def copy_without(original: Path, target: Path, *jobs: str) -> Path:
    """Copy a clone without the results and records of some jobs, and without their lock."""
    copy_clone(original, target)
    for job in jobs:
        shutil.rmtree(target / "results/demo" / job)
        (target / "records/demo" / f"{job}.json").unlink(missing_ok=True)
    (target / "dvc.lock").unlink()
    return target


@pytest.mark.parametrize("seed", [0, 1])
def test_a_task_that_is_killed_twice_gives_equal_bytes(
    chain_once: Path, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    folder = copy_without(chain_once, tmp_path / "clone", TASK)
    expected = artifact_hashes(chain_once)
    record = folder / "records/demo" / f"{TASK}.json"
    events = [record.exists, lambda: any(temporary_files(folder))]
    draw.shuffle(events)
    for event in events:
        shutil.rmtree(folder / "results/demo" / TASK, ignore_errors=True)
        record.unlink(missing_ok=True)
        run = begin(folder, "snakemake", "--profile", "local", "-c1", "stage_tasks_glue_sst2")
        kill_after(run, event, polls=draw.randrange(1, 20))
        check_files(folder, expected)
    ran = snakemake(folder, "stage_tasks_glue_sst2", cores=1)
    assert ran.returncode == 0, ran.stdout[-3000:]
    check_equal(folder, chain_once)


def test_a_seal_that_is_killed_leaves_the_old_lock_or_the_new_one(
    chain_once: Path, tmp_path: Path
) -> None:
    draw = random.Random(2)
    folder = copy_without(chain_once, tmp_path / "clone")
    complete = (chain_once / "dvc.lock").read_bytes()
    for _ in range(4):
        seal = begin(folder, "t5repro", "seal")
        kill_after(seal, lambda: True, polls=draw.randrange(1, 400))
        lock = folder / "dvc.lock"
        assert not lock.exists() or lock.read_bytes() == complete
        check_files(folder, artifact_hashes(chain_once))
    torn = folder / ".dvc/tmp/rwlock"
    for content in ("", '{"write": {'):  # DVC writes it in place
        torn.write_text(content)
        ran = run_in(folder, "t5repro", "seal")
        assert ran.returncode == 0, ran.stdout
        (folder / "dvc.lock").unlink()
    name = ".FCKpwMZErGmdxuPme2WX7w.tmp"  # with which DVC tries links, and fetches an object
    objects = folder / ".dvc/cache/files/md5"
    of_dvc = [folder / "configs/resolved" / name, objects / name, objects / "ab" / name]
    (objects / "ab").mkdir(exist_ok=True)
    notes = folder / "configs/resolved/.notes.tmp"
    for path in (*of_dvc, notes):
        path.write_text("test")
    assert run_in(folder, "t5repro", "seal").returncode == 0
    assert [path for path in (*of_dvc, notes) if path.exists()] == [notes]
    notes.unlink()
    check_equal(folder, chain_once)


def test_a_second_run_is_refused_while_the_first_one_is_at_work(
    chain_once: Path, tmp_path: Path
) -> None:
    folder = copy_without(chain_once, tmp_path / "clone", TASK)
    words = ("snakemake", "--profile", "local", "-c1", "stage_tasks_glue_sst2")
    record = folder / "records/demo" / f"{TASK}.json"
    first = begin(folder, *words)
    try:
        while not record.exists():
            assert first.poll() is None
            time.sleep(POLL_SECONDS)
        os.killpg(first.pid, signal.SIGSTOP)  # at work for as long as the second one asks
        second = run_in(folder, *words)
        assert second.returncode != 0
        assert f"another run is at work in this folder (process {first.pid})" in second.stdout
        os.killpg(first.pid, signal.SIGCONT)
        assert first.wait() == 0
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
    check_equal(folder, chain_once)


def test_raw_files_from_the_future_are_named_and_a_touch_cures_it(
    chain_once: Path, tmp_path: Path
) -> None:
    """A clock that was set back leaves raw files that are newer than everything made from them."""
    folder = copy_without(chain_once, tmp_path / "clone", TASK)
    tomorrow = time.time() + 86_400
    raw_files = [path for path in (folder / "data").rglob("*") if path.is_file()]
    for path in raw_files:
        os.utime(path, (tomorrow, tomorrow))
    refused = snakemake(folder, "stage_tasks_glue_sst2", cores=1)
    assert refused.returncode != 0
    assert "s in the future, so Snakemake would delete what is made of it" in refused.stdout
    assert "set it to now: touch data/" in refused.stdout
    check_files(folder, artifact_hashes(chain_once))
    for path in raw_files:
        os.utime(path)
    ran = snakemake(folder, "stage_tasks_glue_sst2", cores=1)
    assert ran.returncode == 0, ran.stdout[-3000:]
    check_equal(folder, chain_once)
    assert "Nothing to be done" in snakemake(folder, "stage_tasks_glue_sst2", cores=1).stdout


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["vocab", "pretrain", "finetune", "evaluate_predict", "report"])
def test_a_stage_that_is_killed_three_times_gives_equal_bytes(
    finished: Path, tmp_path: Path, stage: str
) -> None:
    draw = random.Random(stage)
    job = stage if stage == "report" else f"{stage}/baseline"
    folder = copy_without(finished, tmp_path / "clone", job)
    record = folder / "records/demo" / f"{job}.json"
    # Snakemake does not rebuild a missing file whose readers are up to date, unless asked for it.
    target = f"results/demo/{job}/manifest.json"
    expected = artifact_hashes(finished)
    for _ in range(3):
        record.unlink(missing_ok=True)
        run = begin(folder, "snakemake", "--profile", "local", "-c2", target)
        most = SHORT_POLLS if stage == "report" else MAX_POLLS
        assert kill_after(run, record.exists, polls=draw.randrange(1, most))
        check_files(folder, expected)
    ran = snakemake(folder, target)
    assert ran.returncode == 0, ran.stdout[-3000:]
    check_equal(folder, finished)
