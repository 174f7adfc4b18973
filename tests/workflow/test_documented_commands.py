"""The commands and the Python of the pages, run on a finished small run as a reader would run them.

What they must print or write is in tests/cases/documented_commands.yaml.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml
from clones import artifact_hashes, commit, copy_clone, environment, run_in
from documented_commands import Documented, documented, entry_of, pages

pytestmark = pytest.mark.workflow
FILE = "tests/workflow/test_documented_commands.py"
ON_PAGES = entry_of(f"{FILE}::test_the_commands_of_a_page_do_what_it_says")
ON_SPARK = entry_of(f"{FILE}::test_c4_is_built_on_the_cluster_of_the_page")
PLAN = entry_of(f"{FILE}::test_the_papers_rows_are_planned_as_the_page_says")
RECIPES = entry_of(f"{FILE}::test_the_recent_recipes_are_planned_as_the_page_says")
SYSTEMS = entry_of(f"{FILE}::test_the_systems_rows_are_planned_as_the_page_says")
OF_THE_SHELL = re.compile(r"[|&;<>$`~*?()\[{\\]")  # what a shell gives a meaning, quoted or not
SLOW = {"README.md", "docs/audit_a_score.md", "docs/exchange.md", "docs/versions.md"}


def walks() -> dict[str, list[Documented]]:
    """Return page -> its steps, in order; what several pages show is a step of the first."""
    steps: dict[str, list[Documented]] = {}
    seen = set()
    for page, text in pages().items():
        for step in documented(text):
            if step.kind == "command":
                is_run_here = step.name in ON_PAGES.commands and step.name not in seen
                seen.add(step.name)
            else:
                is_run_here = step.name in ON_PAGES.blocks.get(page, {})
            if is_run_here:
                steps.setdefault(page, []).append(step)
    return steps


@pytest.fixture
def checkout(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run with its results committed, and this environment as `.venv`."""
    folder = copy_clone(finished, tmp_path / "clone")
    commit(folder, "results")
    (folder / ".venv").mkdir()
    (folder / ".venv/bin").symlink_to(Path(sys.executable).parent)
    for mark in ("installed", "runtime"):  # newer than the locks, so make installs nothing
        (folder / ".venv" / mark).touch()
    return folder


def ran(folder: Path, *words: str) -> str:
    process = run_in(folder, *words)
    assert process.returncode == 0, (words, process.stdout[-3000:])
    return process.stdout


def run_command(
    folder: Path,
    command: str,
    *,
    prints: str = "",
    writes: str = "",
    where: Mapping[str, str] = MappingProxyType({}),
    before: str = "",
) -> None:
    if before:
        ran(folder, "bash", "-c", before)
    for placeholder, value in where.items():
        assert placeholder in command
        command = command.replace(placeholder, value)
    # Without a shell the libraries of the command are imported already.
    needs_a_shell = OF_THE_SHELL.search(command)
    printed = ran(folder, *(("bash", "-c", command) if needs_a_shell else shlex.split(command)))
    assert prints in printed, (command, printed[-3000:])
    assert (folder / writes).exists(), (command, printed[-3000:])


def run_block(folder: Path, block: Documented, *, prints: str) -> None:
    (folder / "block.txt").write_text(block.text, encoding="utf-8")
    option = ("-m", "doctest") if block.kind == "pycon" else ()
    printed = ran(folder, sys.executable, *option, "block.txt")
    assert prints in printed, (block.name, printed[-3000:])


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page for page in walks()],
)
def test_the_commands_of_a_page_do_what_it_says(checkout: Path, page: str) -> None:
    for step in walks()[page]:
        if step.kind == "command":
            run_command(checkout, step.name, **ON_PAGES.commands[step.name])
        else:
            run_block(checkout, step, prints=ON_PAGES.blocks[page][step.name])


@pytest.mark.slow
def test_the_papers_rows_are_planned_as_the_page_says(fresh: Path) -> None:
    (command,) = PLAN.commands
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", ran(fresh, "bash", "-c", command), re.MULTILINE))
    assert int(jobs["evaluate_score"]) == 77  # two of the 78 experiments have the same settings


@pytest.mark.slow
def test_the_systems_rows_are_planned_as_the_page_says(fresh: Path) -> None:
    (command,) = SYSTEMS.commands
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", ran(fresh, "bash", "-c", command), re.MULTILINE))
    assert int(jobs["pretrain"]) == int(jobs["evaluate_score"]) == 41


@pytest.mark.slow
def test_the_recent_recipes_are_planned_as_the_page_says(fresh: Path) -> None:
    (command,) = RECIPES.commands
    recipes = yaml.safe_load((fresh / "configs/recent_recipes.yaml").read_text(encoding="utf-8"))
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", ran(fresh, "bash", "-c", command), re.MULTILINE))
    assert int(jobs["pretrain"]) == int(jobs["evaluate_score"]) == len(recipes["experiments"])


@pytest.fixture
def port() -> int:
    """A free port, in place of the page's."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def cluster(checkout: Path, tmp_path: Path, port: int) -> Iterator[str]:
    """The page's command for a run, up to the corpus, while its master and its worker are up."""
    export, *roles, run = (command.replace("7077", str(port)) for command in ON_SPARK.commands)
    ready = ("I have been elected leader", "Successfully registered with master")
    processes = []
    try:
        for name, role, line in zip(("master", "worker"), roles, ready, strict=True):
            log = tmp_path / f"{name}.log"
            with log.open("w") as stream:
                process = subprocess.Popen(
                    ["bash", "-c", f"{export}; exec {role}"],
                    cwd=checkout,
                    env=environment(checkout),
                    stdout=stream,
                    stderr=stream,
                    start_new_session=True,
                )
            processes.append(process)
            while line not in log.read_text():
                assert process.poll() is None, log.read_text()
                time.sleep(0.2)
        yield f"{export}; {run} -- stage_c4"
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
def test_c4_is_built_on_the_cluster_of_the_page(checkout: Path, cluster: str) -> None:
    before = artifact_hashes(checkout)
    for rule in ("c4_clean", "c4_dedup", "c4"):
        shutil.rmtree(checkout / "results/demo" / rule)
    printed = ran(checkout, "bash", "-c", cluster)
    assert re.search(r"^c4 +1$", printed, re.MULTILINE), printed
    assert artifact_hashes(checkout) == before
