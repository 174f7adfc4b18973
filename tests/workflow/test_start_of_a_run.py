"""What a run says before its first job about a checkout that git or DVC will not serve."""

import os
import shlex
import shutil
from pathlib import Path

import pytest
from clones import copy_clone, snakemake
from task_chain import STAGE, record

from t5repro.versions.seal import linked_results

pytestmark = pytest.mark.workflow
ANOTHER_USER = 12345
NO_COMMIT = "records of this run will name no commit: git answers no question about this folder"


def lines_before_the_first_job(folder: Path) -> list[str]:
    """Run the job again; return the lines printed before it."""
    shutil.rmtree(folder / f"results/demo/tasks/{STAGE.removeprefix('tasks_')}")
    printed = snakemake(folder, f"stage_{STAGE}").stdout
    before, is_run, _ = printed.partition(f"rule {STAGE}:")
    assert is_run, printed
    return before.splitlines()


def test_results_behind_a_link_are_named_before_the_first_job(
    chain_once: Path, tmp_path: Path
) -> None:
    folder = copy_clone(chain_once, tmp_path / "clone")
    (folder / "results").rename(tmp_path / "disk")
    (folder / "results").symlink_to(tmp_path / "disk")
    (line,) = (line for line in lines_before_the_first_job(folder) if "is a link" in line)
    assert line.endswith(linked_results("demo", folder).removeprefix(f"{folder}/"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_named_before_the_first_job_with_git_s_cure(
    chain_once: Path, tmp_path: Path
) -> None:
    folder = copy_clone(chain_once, tmp_path / "clone")
    os.chown(folder, ANOTHER_USER, ANOTHER_USER)
    (line,) = (line for line in lines_before_the_first_job(folder) if NO_COMMIT in line)
    cure = f"git config --global --add safe.directory {shlex.quote(folder.as_posix())}"
    assert cure in line
    assert record(folder)["start"]["commit"] is None


def test_a_checkout_that_git_and_dvc_serve_is_said_nothing_about(
    chain_once: Path, tmp_path: Path
) -> None:
    printed = lines_before_the_first_job(copy_clone(chain_once, tmp_path / "clone"))
    assert [line for line in printed if "no commit" in line or "is a link" in line] == []
