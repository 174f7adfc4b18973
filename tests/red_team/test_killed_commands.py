"""SIGKILL before any write of any job or command: the same command again gives the same bytes."""

import sys
from pathlib import Path

import pytest
from clones import run_in

pytestmark = pytest.mark.workflow

PROGRAM = Path(__file__).parents[1] / "support/killed_commands.py"
QUICK = ("data_fetch", "data", "tasks", "dvc generate", "seal", "dvc rehydrate")


def kill(checkout: Path, *words: str) -> str:
    """Kill commands of a checkout, in a process that has imported nothing else."""
    ran = run_in(checkout, sys.executable, str(PROGRAM), str(checkout), *words)
    assert ran.returncode == 0, ran.stdout[-4000:]
    return ran.stdout


def test_quick_jobs_and_commands_that_are_killed_end_in_the_same_bytes(chain_once: Path) -> None:
    printed = kill(chain_once, "--kills", "6", "--only", *QUICK)
    assert printed.splitlines()[-1] == "6 kills of 6 commands, 0 faults"


@pytest.mark.slow
def test_200_kills_over_all_jobs_and_commands_end_in_the_same_bytes(finished: Path) -> None:
    printed = kill(finished, "--kills", "200")
    assert printed.splitlines()[-1] == "200 kills of 33 commands, 0 faults"
