"""A run that is asked to stop does stop, and leaves the folder free for the next."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from clones import artifact_hashes, copy_clone, environment

from t5repro.lineage.run_lock import run_lock

pytestmark = pytest.mark.workflow

# Snakemake hashes the inputs of a finished job with its scheduler's lock held: this takes seconds.
INPUT_BYTES = 2 << 30  # a hole, not bytes on the disk
RULES = """
include: "Snakefile"


rule big:
    input:
        "big.bin",
    output:
        "small.txt",
    shell:
        "touch {output}"


rule bigger:
    input:
        "small.txt",
    output:
        "smaller.txt",
    shell:
        "sleep 3600; touch {output}"
"""


def test_sigterm_while_snakemake_hashes_an_input_ends_the_run(fresh: Path) -> None:
    (fresh / "big.smk").write_text(RULES)
    with (fresh / "big.bin").open("wb") as file:
        file.truncate(INPUT_BYTES)
    job = subprocess.Popen(
        ["snakemake", "--profile", "local", "--cores", "2", "-s", "big.smk", "smaller.txt"],
        cwd=fresh,
        env=environment(fresh),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_the_job_ended(fresh / "small.txt", job)
        for _ in range(3):  # hundreds of signals would end it by the depth of their recursion
            os.killpg(job.pid, signal.SIGTERM)
            time.sleep(0.1)
        assert job.wait() != 0
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    assert not (fresh / "smaller.txt").exists()
    with run_lock(fresh / ".snakemake/t5repro.lock"):
        pass


def wait_until_the_job_ended(output: Path, run: subprocess.Popen[bytes]) -> None:
    """Wait until an output is there and its job, a child of Snakemake, is not."""
    while not output.exists() or psutil.Process(run.pid).children(recursive=True):
        assert run.poll() is None, "snakemake ended before its job"
        time.sleep(0.02)


def test_a_run_after_a_snakemake_killed_alone_waits_for_the_job_it_left(
    finished: Path, tmp_path: Path
) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    folder_name = "results/demo/finetune/baseline"
    shutil.rmtree(folder / folder_name)
    record = folder / "records/demo/finetune/baseline.json"
    record.unlink()
    run = subprocess.Popen(
        ["snakemake", "--profile", "local", "--cores", "2", f"{folder_name}/manifest.json"],
        cwd=folder,
        env=environment(folder),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    jobs: list[psutil.Process] = []
    log = tmp_path / "again.log"
    try:
        wait_until_the_job_began(record, run)
        jobs = psutil.Process(run.pid).children(recursive=True)
        for job in jobs:
            job.suspend()  # at work until the next run has noticed it, however busy the machine
        run.kill()
        run.wait()
        assert json.loads(record.read_text())["end"] is None
        with log.open("w") as handle:
            again = subprocess.Popen(
                ["snakemake", "--profile", "local", "--cores", "2", f"{folder_name}/manifest.json"],
                cwd=folder,
                env=environment(folder),
                stdout=handle,
                stderr=subprocess.STDOUT,
            )
        wait_until_it_waits(again, log)
        for job in jobs:
            job.resume()
        assert again.wait() == 0, log.read_text()[-3000:]
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        for job in filter(psutil.Process.is_running, jobs):
            job.kill()
    assert artifact_hashes(folder) == artifact_hashes(finished)


def wait_until_it_waits(run: subprocess.Popen[bytes], log: Path) -> None:
    while "a job of an earlier run, which was killed, is at work" not in log.read_text():
        assert run.poll() is None, log.read_text()[-3000:]
        time.sleep(0.1)


def wait_until_the_job_began(record: Path, run: subprocess.Popen[bytes]) -> None:
    while not record.exists():
        assert run.poll() is None, "snakemake ended before its job began"
        time.sleep(0.02)
