"""A project in a folder of another git repository, whose root has files of the same names."""

import json
import re
import shutil
from pathlib import Path

import pytest
from clones import commit, copy_clone, run_in, snakemake
from made_records import git
from task_chain import EXAMPLES, RECORD, STAGE, append, findings, record, t5repro

pytestmark = pytest.mark.workflow
# What a question to the outer repository's root would read in place of the project's file.
DECOYS = ("dvc.lock", "dvc.yaml", "data.dvc", RECORD, "requirements/cpu-gpu.txt", "Snakefile")


@pytest.fixture(scope="module")
def nested_once(chain_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest chain, run and sealed in a folder of an outer repository."""
    outer = tmp_path_factory.mktemp("outer")
    project = copy_clone(chain_once, outer / "projects/t5")
    for name in (".git", ".snakemake", "data", "records", "results"):
        shutil.rmtree(project / name)
    (project / "dvc.lock").unlink()
    for name in DECOYS:
        (outer / name).parent.mkdir(parents=True, exist_ok=True)
        (outer / name).write_text("of another project\n", encoding="utf-8")
    git(outer, "init", "--quiet", "--initial-branch=main")
    commit(outer, "unpacked")
    ran = snakemake(project, f"stage_{STAGE}")
    assert ran.returncode == 0, ran.stdout
    commit(outer, "results")
    return outer


@pytest.fixture
def project(nested_once: Path, tmp_path: Path) -> Path:
    """The project below the outer repository; the current test may change it."""
    return copy_clone(nested_once, tmp_path / "outer", ("projects/t5/.dvc/cache",)) / "projects/t5"


def test_a_record_names_the_outer_commit_and_the_paths_of_the_project(project: Path) -> None:
    start = record(project)["start"]
    assert start["commit"] == git(project, "rev-parse", "HEAD~1")
    assert start["uncommitted"] is None
    assert "src/t5repro/tasks/build.py" in start["code"]


def test_verify_finds_no_record_contradicted_or_forged(project: Path) -> None:
    code, text = t5repro(project, "verify")
    assert findings(project) == {}, text
    assert "contradicted" not in text
    assert "forged" not in text
    append(project / EXAMPLES, "\n")
    code, text = t5repro(project, "verify")
    assert code == 1
    assert re.search(rf"^altered +{re.escape(EXAMPLES)}:", text, re.MULTILINE), text


def test_a_record_that_disagrees_with_the_outer_commit_is_named(project: Path) -> None:
    append(project / "src/t5repro/tasks/build.py", "EDITED = True\n")
    commit(project, "edited")
    (finding,) = findings(project).values()
    assert finding["kind"] == "code changed"


def test_trace_and_seal_read_the_lock_of_the_project(project: Path) -> None:
    code, text = t5repro(project, "trace", EXAMPLES, "--rev", "HEAD", "--json")
    assert code == 0, text
    answer = json.loads(text[text.index("{") :])
    assert [step["job"] for step in answer["steps"]] == ["demo/tasks/glue_sst2", "demo/data"]
    sealed = run_in(project, "t5repro", "seal")
    assert sealed.returncode == 0, sealed.stdout
    assert git(project, "status", "--porcelain") == ""
    (project / "dvc.lock").unlink()
    sealed = run_in(project, "t5repro", "seal")
    assert sealed.returncode == 0, sealed.stdout
    assert git(project, "status", "--porcelain") == ""  # the same lock, at the project's root
