"""The committed reference, the demo: sealed from a clean tree, by code that git has."""

import pytest
from checkout import ROOT

from t5repro.lineage.commits import read_commits
from t5repro.lineage.record import Record, read_records, record_of_job
from t5repro.lineage.store import Folder

RUN = "demo"


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    records = read_records(Folder(ROOT)).items()
    return {record_of_job(job): record for job, record in records if record.run == RUN}


def test_each_job_of_the_reference_ran_from_a_clean_tree(records: dict[str, Record]) -> None:
    assert len(records) > 40
    dirty = [path for path, record in records.items() if record.start.uncommitted is not None]
    assert dirty == []


def test_a_commit_has_every_source_file_of_each_job_of_the_reference(
    records: dict[str, Record],
) -> None:
    commits = read_commits(ROOT, records.values())
    if commits is None or commits.shallow:
        pytest.skip("no history of git")
    assert [path for path, record in records.items() if not commits.attests_code(record)] == []
