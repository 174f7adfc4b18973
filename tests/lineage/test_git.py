"""Answers of git are about the repository of the folder, whatever the environment and refs say."""

from pathlib import Path

import pytest
from made_records import commit, git

from t5repro.lineage.dvc_lock import LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE
from t5repro.lineage.git import contents, file_at, files_at, project_prefix, replaced_objects
from t5repro.lineage.verify_committed import check_committed, read_committed


def repository(folder: Path, text: str) -> Path:
    (folder / "project").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    write(folder / "project", text)
    commit(folder, "all")
    return folder / "project"


def write(project: Path, text: str) -> None:
    for name in (LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE):
        (project / name).write_text(text, encoding="utf-8")


def test_a_replaced_commit_is_read_as_it_was_and_named(tmp_path: Path) -> None:
    project = repository(tmp_path, "honest")
    honest = git(project, "rev-parse", "HEAD")
    write(project, "forged")
    forged = commit(project, "all")
    git(project, "reset", "--quiet", "--hard", honest)
    assert replaced_objects(project) == []
    git(project, "replace", honest, forged)
    assert git(project, "show", f"HEAD:./{LOCK_FILE}") == "forged"
    assert file_at(project, "HEAD", LOCK_FILE) == b"honest"
    assert contents(project, [f"HEAD:./{LOCK_FILE}"]) == {f"HEAD:./{LOCK_FILE}": b"honest"}
    (finding,) = check_committed(project, read_committed(project))
    assert (finding.kind, finding.path) == ("contradicted", f"refs/replace/{honest}")
    assert "git replace -d removes them" in finding.message


def test_grafts_are_named(tmp_path: Path) -> None:
    project = repository(tmp_path, "honest")
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/grafts").write_text("")
    (name,) = replaced_objects(project)
    assert name.endswith("info/grafts")


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"])
def test_variables_that_name_another_repository_have_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    project = repository(tmp_path / "ours", "honest")
    other = repository(tmp_path / "theirs", "forged").parent / ".git"
    places = {"GIT_DIR": "", "GIT_INDEX_FILE": "index", "GIT_OBJECT_DIRECTORY": "objects"}
    monkeypatch.setenv(name, str(other / places[name]))
    assert file_at(project, "HEAD", LOCK_FILE) == b"honest"


def test_a_project_in_a_folder_of_a_repository_has_its_own_paths(tmp_path: Path) -> None:
    project = repository(tmp_path, "honest")
    assert files_at(project, "HEAD", [LOCK_FILE]) == {LOCK_FILE: b"honest"}
    assert read_committed(project).names == {LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE}


@pytest.mark.parametrize("name", [LOCK_FILE, PIPELINE_FILE, RAW_DATA_FILE])
@pytest.mark.parametrize("empty", [True, False])
def test_a_lost_file_behind_results_is_missing(tmp_path: Path, name: str, empty: bool) -> None:
    project = repository(tmp_path, "honest")
    if empty:
        (project / name).write_text("")
    else:
        (project / name).unlink()
    findings = {
        finding.kind: finding for finding in check_committed(project, read_committed(project))
    }
    assert findings["missing"].path == name
    assert "the commit has it; restore it with git checkout" in findings["missing"].message


def test_the_paths_of_a_project_and_of_a_study_below_it_begin_at_the_project(
    tmp_path: Path,
) -> None:
    project = repository(tmp_path, "honest")
    study = project / "work" / "study"
    study.mkdir(parents=True)
    assert project_prefix(project) == ""  # no project that a repository contains
    (project / "Snakefile").write_text("")
    assert project_prefix(project) == project_prefix(study) == "project/"
