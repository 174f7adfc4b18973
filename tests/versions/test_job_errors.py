"""A failed job ends in one line: what happened, and the path of its log."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

FATES = {
    "refused": ("exit 2", "failed with exit status 2"),
    "killed": ("(kill -9 $BASHPID)", "was killed, probably out of memory (exit status 137)"),
    "killed_alone": ("kill -9 $$", "was killed, probably out of memory (exit status 137)"),
    "terminated": ("kill -15 $$", "was stopped (SIGTERM)"),
    "interrupted": ("exit 130", "was stopped by Ctrl-C"),
    "crashed": ("kill -11 $$", "crashed (SIGSEGV)"),
}
HEAD = """
from t5repro.versions.job_errors import print_job_errors

ERRORS = print_job_errors(workflow.output_settings)
SETTINGS = '{"pretrain": {"batch_size": 128}}'


onerror:
    ERRORS.print_again()
"""
RULE = """
rule NAME:
    output: "NAME.txt"
    log: "NAME.log"
    params: settings=SETTINGS
    shell: "echo line of the log > {log}; : {params.settings:q}; COMMAND"
"""


@pytest.mark.parametrize("quiet", [["rules", "host"], ["all"]])
def test_each_failed_job_is_one_line_and_not_its_command(tmp_path: Path, quiet: list[str]) -> None:
    printed = run(tmp_path, *FATES, options=["--keep-going", "--quiet", *quiet])
    at_once, _, together = printed.partition("6 jobs failed:\n")
    for name, (_, fate) in FATES.items():
        line = f"{name} {fate}; log: {name}.log\n"
        assert at_once.count(line) == together.count(line) == 1
    assert "batch_size" not in printed
    # Only a crash could not tell the terminal what happened.
    assert printed.count("crashed.log\n    line of the log\n") == 1
    assert printed.count("line of the log") == 1


def test_the_end_of_the_log_is_shown_if_asked_for(tmp_path: Path) -> None:
    printed = run(tmp_path, "refused", options=["--show-failed-logs"])
    assert "refused failed with exit status 2; log: refused.log\n    line of the log\n" in printed
    assert "jobs failed:" not in printed
    (log,) = (tmp_path / ".snakemake/log").glob("*.log")
    assert "batch_size" in log.read_text()  # Snakemake's own log still has the command


def test_verbose_prints_the_command(tmp_path: Path) -> None:
    assert "batch_size" in run(tmp_path, "refused", options=["--verbose"])


def test_a_missing_output_is_reported_as_snakemake_does(tmp_path: Path) -> None:
    printed = run(tmp_path, "refused", options=["--latency-wait", "0"], command="true")
    assert "Job 0 completed successfully, but some output files are missing" in printed


def run(folder: Path, *names: str, options: list[str], command: str = "") -> str:
    """Run snakemake on rules that fail; return what it prints."""
    rules = [
        RULE.replace("NAME", name).replace("COMMAND", command or FATES[name][0]) for name in names
    ]
    (folder / "Snakefile").write_text("\n".join([HEAD, *rules]))
    targets = [f"{name}.txt" for name in names]
    process = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *targets, *options],
        cwd=folder,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.returncode != 0
    return process.stdout
