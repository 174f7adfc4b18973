"""What the commit of a record says about the code of its job, if it has the package and if not."""

import shutil
from pathlib import Path

import pytest
from made_graphs import SCORES
from made_records import CODE, commit, git, sealed_run, write_index, write_records

from t5repro.cli.main import main
from t5repro.files import read_json, write_json
from t5repro.lineage.commits import PACKAGE_FILE, read_commits
from t5repro.lineage.findings import CONTRADICTED, Finding
from t5repro.lineage.record import read_record
from t5repro.lineage.verify import verify_tree

RECORD = "records/r/finetune/a.json"
FAULT = f"source file {CODE[0]} is 000000000000 here, without changes, "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run whose commits have the package; one record names other code."""
    (tmp_path / PACKAGE_FILE).parent.mkdir(parents=True)
    (tmp_path / PACKAGE_FILE).touch()
    return with_other_code(sealed_run(tmp_path))


def with_other_code(root: Path) -> Path:
    values = read_json(root / RECORD)
    values["start"]["code"][CODE[0]] = "0" * 64
    write_json(root / RECORD, values)
    return root


def faults(root: Path) -> list[str]:
    record = read_record(root / RECORD)
    commits = read_commits(root, [record])
    assert commits is not None
    return list(commits.faults(record))


def test_other_code_than_that_of_the_commit_is_named(root: Path) -> None:
    (fault,) = faults(root)
    assert fault.startswith(FAULT)


def test_neither_a_deleted_package_nor_a_commit_that_deletes_it_excuses_other_code(
    root: Path,
) -> None:
    shutil.rmtree(root / "src")
    assert [fault[: len(FAULT)] for fault in faults(root)] == [FAULT]
    commit(root, "no package")
    assert [fault[: len(FAULT)] for fault in faults(root)] == [FAULT]


def test_the_code_of_a_project_without_the_package_is_in_no_commit(tmp_path: Path) -> None:
    root = sealed_run(tmp_path)
    shutil.rmtree(root / "src")
    write_records(root, commit(root, "no package"))
    with_other_code(root)
    assert faults(root) == []


def test_commits_outside_the_history_are_named_by_verify_and_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = sealed_run(tmp_path)
    monkeypatch.chdir(root)
    former = git(root, "rev-parse", "HEAD~1")  # of which every record is
    note = f"9 name commits outside the history of HEAD, {former}: it was rewritten"
    assert main(["verify"]) == 0
    assert note not in capsys.readouterr().out
    git(root, "branch", "former")
    git(root, "checkout", "--quiet", "--orphan", "rewritten")
    commit(root, "rewritten")
    assert main(["verify"]) == 0  # the results are as they were
    assert note in capsys.readouterr().out
    assert main(["trace", SCORES]) == 0
    note = f"code by commit {former[:12]}, outside the history of HEAD"
    assert note in capsys.readouterr().out


def test_a_copy_in_another_repository_is_one_finding_and_a_lone_commit_names_its_record(
    tmp_path: Path,
) -> None:
    root = sealed_run(tmp_path)
    former = git(root, "rev-parse", "HEAD~1")
    shutil.rmtree(root / ".git")
    git(root, "init", "--quiet")
    commit(root, "unpacked")
    (finding,) = contradictions(root)
    assert finding.message.startswith(f"9 records name commit {former[:12]}, which is not in this")
    assert "the repository that this copy of the project was taken from" in finding.message
    values = read_json(root / RECORD)
    values["start"]["commit"] = "0" * 40
    write_json(root / RECORD, values)
    write_index(root)
    of_all, own = contradictions(root)
    assert of_all.message.startswith("8 records name commit")
    assert (own.path, own.message[:43]) == (RECORD, "commit 000000000000 is not in this reposito")


def contradictions(root: Path) -> list[Finding]:
    findings = verify_tree(root).findings
    return sorted(
        (finding for finding in findings if finding.kind == CONTRADICTED),
        key=lambda finding: finding.path == RECORD,
    )


def test_a_shallow_clone_cannot_tell_which_history_is_rewritten(tmp_path: Path) -> None:
    root = sealed_run(tmp_path / "run")
    commit(root, "later")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{root}", "clone")
    record = read_record(root / RECORD)
    commits = read_commits(tmp_path / "clone", [record])
    assert commits is not None
    assert (commits.shallow, commits.outside) == (True, frozenset())
