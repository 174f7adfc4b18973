"""A plan prints the same commands, and formats each of them once."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from t5repro.versions.asked_once import OneCommand


class Job:
    """A job as Snakemake has it: the command is formatted whenever it is asked for."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words
        self.times = 0

    @property
    def shellcmd(self) -> str:
        """Return the command."""
        self.times += 1
        return " ".join(self.words.values())

    def log_info(self, *, fail: bool = False) -> None:
        """Ask for the command three times, as Snakemake does."""
        self.printed = [self.shellcmd, self.shellcmd, self.shellcmd]
        if fail:
            raise RuntimeError


def kept_jobs() -> type[Job]:
    """Return a class of jobs as `ask_once` leaves Snakemake's."""
    names = {"__init__": Job.__init__, "log_info": Job.log_info, "shellcmd": Job.shellcmd}
    jobs = type("KeptJob", (), names)
    jobs.shellcmd = OneCommand(Job.shellcmd)  # type: ignore[attr-defined]
    jobs.log_info = jobs.shellcmd.kept_while(Job.log_info)  # type: ignore[attr-defined]
    return jobs


def test_a_printed_job_formats_its_command_once() -> None:
    job = kept_jobs()({"program": "t5repro", "command": "stage"})
    job.log_info()
    assert job.printed == ["t5repro stage"] * 3
    assert job.times == 1


def test_a_command_is_formatted_again_when_the_job_has_changed() -> None:
    job = kept_jobs()({"program": "t5repro"})
    job.log_info()
    job.words = {"program": "dvc"}
    assert job.shellcmd == "dvc"
    job.log_info()
    assert job.printed == ["dvc"] * 3


def test_a_command_is_not_kept_after_an_error() -> None:
    job = kept_jobs()({"program": "t5repro"})
    try:
        job.log_info(fail=True)
    except RuntimeError:
        job.words = {"program": "dvc"}
    assert job.shellcmd == "dvc"


def test_another_job_has_its_own_command_while_one_is_printed() -> None:
    jobs = kept_jobs()
    other = jobs({"program": "dvc"})

    class Printing(jobs):  # type: ignore[misc, valid-type]
        """A job that asks for the command of another."""

        def log_info(self) -> None:
            """Ask for both commands."""
            self.printed = [self.shellcmd, other.shellcmd]

    Printing.log_info = jobs.shellcmd.kept_while(Printing.log_info)  # type: ignore[attr-defined]
    job = Printing({"program": "t5repro"})
    job.log_info()
    assert job.printed == ["t5repro", "dvc"]


SNAKEFILE = """
class Shown:
    def __str__(self):
        open("shown", "a").write("x")
        return "text"

rule all:
    input: "b"

rule one:
    output: "a"
    params: shown=Shown()
    shell: "echo {params.shown} > {output}"

rule two:  # after the other: Snakemake prints jobs that may run together in any order
    input: "a"
    output: "b"
    params: shown=Shown()
    shell: "echo {params.shown} {input} > {output}"
"""
ONCE = """
from t5repro.versions.asked_once import ask_once
ask_once()
"""


def dry_run(folder: Path, snakefile: str, *options: str) -> tuple[str, int]:
    """Return what a dry run prints, and how often it formatted a command."""
    (folder / "Snakefile").write_text(snakefile, encoding="utf-8")
    (folder / "shown").unlink(missing_ok=True)
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1", "--nocolor", *options]
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    shown = folder / "shown"
    timeless = re.sub(r"^.*(\d\d:\d\d:\d\d|Workflow ID: ).*$", "", ran.stdout, flags=re.MULTILINE)
    return timeless, len(shown.read_text()) if shown.is_file() else 0


@pytest.mark.workflow
def test_a_dry_run_that_hides_jobs_prints_the_same_and_formats_none(tmp_path: Path) -> None:
    text, times = dry_run(tmp_path, SNAKEFILE, "--quiet", "rules")
    assert "one" in text
    assert times > 0
    assert dry_run(tmp_path, ONCE + SNAKEFILE, "--quiet", "rules") == (text, 0)


@pytest.mark.workflow
def test_a_dry_run_that_shows_jobs_prints_the_same(tmp_path: Path) -> None:
    text, times = dry_run(tmp_path, SNAKEFILE, "--printshellcmds")
    assert "echo text" in text
    again, fewer = dry_run(tmp_path, ONCE + SNAKEFILE, "--printshellcmds")
    assert again == text
    assert 0 < fewer < times
