#!/usr/bin/env python3
"""SLURM on one machine, as far as its Snakemake plugin calls it, with the faults of a cluster.

Under the names of SLURM's commands (`COMMANDS`), it answers as SLURM 22.05 does. Its folder has a
file for each job, and `faults.json`: rule -> states in which its next jobs end. Such a job is
killed with all its processes when the command of its rule has begun.
"""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = ("sbatch", "srun", "sacct", "squeue", "scancel", "scontrol", "sinfo")
FOLDER = Path(__file__).resolve().parent
JOBS, FAULTS, SUBMITTED = FOLDER / "jobs", FOLDER / "faults.json", FOLDER / "submitted.txt"
DOWN = FOLDER / "sacct_is_down"  # contains the number of questions that get no answer


def install(folder: Path, faults: dict[str, list[str]], *, unanswered: int = 0) -> Path:
    """Write the commands into a new folder for `PATH`; return the folder.

    Args:
        folder: the folder.
        faults: rule -> states in which its first jobs end.
        unanswered: how many of the first questions for states get no answer.
    """
    (folder / "jobs").mkdir(parents=True)
    (folder / FAULTS.name).write_text(json.dumps(faults))
    (folder / DOWN.name).write_text(str(unanswered))
    program = folder / "slurm"
    program.write_bytes(Path(__file__).read_bytes())
    program.chmod(0o755)
    for name in COMMANDS:
        (folder / name).symlink_to(program.name)
    return folder


def sbatch(words: list[str]) -> None:
    """Start a job and print its number."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in ("--job-name", "--output", "--comment", "--wrap"):
        parser.add_argument(option)
    parser.add_argument("-D", dest="folder")
    options, others = parser.parse_known_args(words)
    number = next_number()
    rule = options.comment.removeprefix("rule_").partition("_wildcards_")[0]
    with SUBMITTED.open("a") as file:
        file.write(f"{rule} {' '.join(others)}\n")
    job = {
        "id": number,
        "name": options.job_name,
        "state": "PENDING",
        "command": options.wrap,
        "log": options.output.replace("%j", number),
        "folder": options.folder,
        "fault": take_fault(rule),
    }
    write(job)
    null = subprocess.DEVNULL
    command = [sys.executable, __file__, "run", number]
    subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True)
    print(number)


def run(job_id: str) -> None:
    """Run a job to its end, or to its fault."""
    job = read(job_id)
    with Path(job["log"]).open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", job["command"]],
            cwd=job["folder"],
            env={**os.environ, "SLURM_JOB_ID": job_id},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        write({**job, "state": "RUNNING", "pid": process.pid})
        if job["fault"] and has_begun(process):
            kill(process.pid)
        code = process.wait()
    state = read(job_id)["state"]  # `scancel` has written the end of the job
    if state == "RUNNING":
        ended = "COMPLETED" if code == 0 else "FAILED"
        write({**job, "state": job["fault"] if code < 0 and job["fault"] else ended})


def has_begun(process: subprocess.Popen[bytes]) -> bool:
    """Wait until a process of this project runs below another; return whether one does."""
    while process.poll() is None:
        if any("t5repro\0stage" in command for command in descendants(process.pid).values()):
            return True
        time.sleep(0.02)
    return False


def descendants(root: int) -> dict[int, str]:
    """Return the processes below one, each with its command line."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            commands[int(folder.name)] = (folder / "cmdline").read_text(errors="replace")
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(status[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: commands.get(pid, "") for pid in found - {root}}


def kill(pid: int) -> None:
    """Kill a process and all below it at once, as the end of a control group does."""
    for process in [pid, *descendants(pid)]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def states(words: list[str]) -> None:
    """Print the jobs of a name with their states, unless the database is down."""
    if left := int(DOWN.read_text()):
        DOWN.write_text(str(left - 1))
        sys.exit("sacct: error: Problem talking to the database: Connection refused")
    for job in map(read, os.listdir(JOBS)):
        if job["name"] == words[words.index("--name") + 1]:
            print(f"{job['id']}|{job['state']}")


def scancel(words: list[str]) -> None:
    """Cancel jobs."""
    for job in map(read, os.listdir(JOBS)):
        if job["id"] in words and job["state"] in ("RUNNING", "PENDING"):
            write({**job, "state": "CANCELLED by 1000"})
            kill(job["pid"])


def take_fault(rule: str) -> str:
    """Return the state in which the next job of a rule ends, once."""
    faults = json.loads(FAULTS.read_text())
    fault = faults[rule].pop(0) if faults.get(rule) else ""
    FAULTS.write_text(json.dumps(faults))
    return fault


def next_number() -> str:
    """Return a number that no other job has."""
    number = 1
    while True:
        try:
            (FOLDER / f"number-{number}").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return str(number)


def read(job_id: str) -> dict:
    """Return a job."""
    return json.loads((JOBS / job_id).read_text())


def write(job: dict) -> None:
    """Write a job; readers see it whole."""
    new = FOLDER / f"new-{job['id']}-{os.getpid()}"
    new.write_text(json.dumps(job))
    new.replace(JOBS / job["id"])


def main(command: str, words: list[str]) -> None:
    """Answer as the command of SLURM that this file is called by."""
    if words[:1] == ["run"]:
        run(words[1])
    elif command == "sbatch":
        with FAULTS.open() as lock:  # the plugin submits two jobs at a time
            fcntl.flock(lock, fcntl.LOCK_EX)
            sbatch(words)
    elif command == "srun":
        program = next(i for i, word in enumerate(words) if not word.startswith("-"))
        os.execvp(words[program], words[program:])  # noqa: S606
    elif command in ("sacct", "squeue") and "--name" in words:
        states(words)
    elif command == "scancel":
        scancel(words)
    elif words == ["show", "config"]:
        print("MinJobAge               = 300 sec")


if __name__ == "__main__":
    main(Path(sys.argv[0]).name, sys.argv[1:])
