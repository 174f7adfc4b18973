"""`dvc repro` alone rebuilds a fresh clone: raw files, results, lock and records as committed."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from clones import artifact_hashes, change, commit, copy_clone, environment, run_in, snakemake
from task_chain import RAW

from t5repro.files import sha256_of

pytestmark = pytest.mark.workflow
KILLED_IN = "vocab-baseline"


def fresh_clone_of(folder: Path, target: Path) -> Path:
    """Return a clone without results, raw files and cache."""
    subprocess.run(["git", "clone", "--quiet", "--shared", folder, target], check=True)
    return target


def git_status(folder: Path) -> str:
    command = ["git", "status", "--porcelain"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def stages_run(printed: str) -> set[str]:
    return set(re.findall(r"Running stage '(\S+)'", printed))


def kill_in(folder: Path, stage: str) -> None:
    """Run `dvc repro` and kill it with its jobs when it begins a stage."""
    log = folder.parent / "killed.txt"
    with log.open("w") as output:
        job = subprocess.Popen(
            ["dvc", "repro"],
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    while stage not in stages_run(printed := log.read_text()):
        assert job.poll() is None, printed[-3000:]
        time.sleep(0.05)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()


@pytest.fixture(scope="module")
def committed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run with its lock and records in git."""
    folder = copy_clone(finished, tmp_path_factory.mktemp("committed") / "clone")
    commit(folder, "results")
    return folder


@pytest.fixture(scope="module")
def rebuilt(committed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A fresh clone in which `dvc repro` was killed and repeated, and what the second printed."""
    folder = fresh_clone_of(committed, tmp_path_factory.mktemp("rebuilt") / "clone")
    kill_in(folder, KILLED_IN)
    ran = run_in(folder, "dvc", "repro")
    assert ran.returncode == 0, ran.stdout[-3000:]
    return folder, ran.stdout


def test_a_fresh_clone_gets_the_bytes_of_snakemake_even_if_dvc_was_killed_meanwhile(
    committed: Path, rebuilt: tuple[Path, str]
) -> None:
    folder, printed = rebuilt
    assert {KILLED_IN, "report"} <= stages_run(printed)
    assert "c4-baseline" not in stages_run(printed)  # finished before
    assert artifact_hashes(folder) == artifact_hashes(committed)


def test_after_dvc_alone_every_tool_agrees_and_git_has_nothing_to_commit(
    rebuilt: tuple[Path, str],
) -> None:
    folder, _ = rebuilt
    assert git_status(folder) == ""
    assert "up to date" in run_in(folder, "dvc", "status").stdout
    assert "Nothing to be done" in snakemake(folder, "-n").stdout
    for words in (("verify",), ("dvc", "raw"), ("dvc", "check"), ("certificate", "--strict")):
        ran = run_in(folder, "t5repro", *words)
        assert ran.returncode == 0, ran.stdout[-3000:]


def test_one_edited_setting_reruns_the_stages_that_read_it_and_what_follows(
    rebuilt: tuple[Path, str], tmp_path: Path
) -> None:
    folder = copy_clone(rebuilt[0], tmp_path / "clone")
    change(folder, "evaluate.max_examples", 5)
    ran = run_in(folder, "dvc", "repro")
    assert ran.returncode == 0, ran.stdout[-3000:]
    arms = ("baseline", "no_pretraining")
    rules = ("evaluate_predict", "evaluate_score")
    expected = {f"{rule}-{arm}" for rule in rules for arm in arms}
    assert stages_run(ran.stdout) == {"settings", "report", *expected}
    assert "up to date" in run_in(folder, "dvc", "status").stdout


def test_dvc_copies_the_raw_files_that_are_missing_and_data_dvc_stays_as_it_is(fresh: Path) -> None:
    commit(fresh, "the tree")
    for _ in ("from the bundled folder", "from the cache"):
        assert run_in(fresh, "dvc", "repro", "data.dvc").returncode == 0
        raw = {path: sha256_of(path) for path in (fresh / "data").rglob("*") if path.is_file()}
        bundled = fresh / "examples/mini/raw"
        assert raw == {
            fresh / "data" / path.relative_to(bundled): sha256_of(path)
            for path in bundled.rglob("*")
            if path.is_file()
        }
        assert git_status(fresh) == ""
        assert "up to date" in run_in(fresh, "dvc", "status", "data.dvc").stdout
        shutil.rmtree(fresh / "data")


@pytest.mark.parametrize("is_cached", [True, False])
def test_dvc_deletes_no_raw_file_that_the_user_put_there(fresh: Path, is_cached: bool) -> None:
    commit(fresh, "the tree")
    if is_cached:
        assert run_in(fresh, "dvc", "repro", "data.dvc").returncode == 0
    mine = fresh / "data/lists/mine.txt"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine\n")
    ran = run_in(fresh, "dvc", "repro", "data.dvc")
    assert mine.read_text() == "mine\n"
    if is_cached:
        assert "unable to remove" in ran.stdout
    else:
        assert " M data.dvc" in git_status(fresh)
    (fresh / "data.dvc").unlink()
    assert run_in(fresh, "dvc", "add", "data").returncode == 0
    assert "examples" not in (fresh / "data.dvc").read_text()
    assert run_in(fresh, "dvc", "repro", "data.dvc").returncode == 0
    assert mine.read_text() == "mine\n"


def test_a_withdrawn_file_does_not_come_back_with_the_raw_files(
    chain_once: Path, tmp_path: Path
) -> None:
    folder = copy_clone(chain_once, tmp_path / "clone")
    raw = folder / RAW / "train.tsv"
    words = (raw.relative_to(folder).as_posix(), "--reason", "ticket 7")
    ran = run_in(folder, "t5repro", "withdraw", *words)
    assert ran.returncode == 0, ran.stdout[-3000:]
    commit(folder, "withdrawn")
    shutil.rmtree(folder / "data")
    assert run_in(folder, "dvc", "repro", "data.dvc").returncode == 0
    assert raw.with_name("dev.tsv").is_file()
    assert not raw.exists()
    assert git_status(folder) == ""
