"""What the commit of a record says about the code of its job, if it has the package and if not."""

import shutil
from pathlib import Path

import pytest
from made_records import CODE, commit, sealed_run, write_records

from t5repro.files import read_json, write_json
from t5repro.lineage.commits import PACKAGE_FILE, read_commits
from t5repro.lineage.record import read_record

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
