"""The records of a state, compared with the index of their run.

A record that is not the sealed one, or cannot be read, attests nothing. If the commit or the digits
of a hash tell that the index was altered, the index is blamed.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from t5repro.errors import ArtifactError
from t5repro.lineage.commits import Commits
from t5repro.lineage.findings import (
    ALTERED,
    EXTRA,
    MISSING,
    UNSEALED,
    Finding,
    are_lookalikes,
    differing,
)
from t5repro.lineage.record import (
    RESTORE,
    Record,
    job_of_record,
    parse_record,
    run_of_record,
    shared_in,
)
from t5repro.lineage.record_index import Index, index_path, records_in
from t5repro.lineage.shared_facts import ReadShared, SharedFactsError, is_shared, shared_path
from t5repro.lineage.store import RECORDS, Store
from t5repro.lineage.verify_committed import Committed

NO_COMMIT = Committed()
RESEAL = f"{RESTORE}, or run t5repro seal"


@dataclass
class RecordCheck:
    """The records of a state, compared with their indexes.

    Attributes:
        findings: faults of them.
        altered: jobs with a record that attests nothing: not the sealed one, or unreadable.
        records: job -> its record, if it is one.
        commits: what git knows about the commits and files that records name.
    """

    findings: list[Finding] = field(default_factory=list)
    altered: set[str] = field(default_factory=set)
    records: dict[str, Record] = field(default_factory=dict)
    commits: Commits | None = None

    @property
    def intact(self) -> dict[str, Record]:
        """The records that are the sealed ones, by job; the others attest nothing."""
        return {job: record for job, record in self.records.items() if job not in self.altered}


def read_checked(
    store: Store, indexes: Mapping[str, Index], committed: Committed = NO_COMMIT
) -> RecordCheck:
    """Compare the records of a state with the indexes, and parse them."""
    check = RecordCheck()
    sealed = {
        path: sha256 for index in indexes.values() for path, sha256 in records_in(index).items()
    }
    present = set()
    for path in store.names(RECORDS, ".json"):
        run = run_of_record(path)
        if not run:
            continue
        present.add(path)
        data = store.read(path)
        if run in indexes:
            finding = _unlike_index(path, data, sealed.get(path), committed)
            if finding is not None:
                check.findings.append(finding)
                if finding.path == path and finding.kind == ALTERED:
                    check.altered.add(job_of_record(path))
        if not is_shared(path):
            _parse(path, data, check, shared_in(store, path))
    for path in sorted(sealed.keys() - present):
        index = index_path(run_of_record(path))
        finding = Finding(MISSING, path, job_of_record(path), f"{index} has it; {RESTORE}")
        if committed.attests(path, index):
            finding = Finding(ALTERED, index, "", f"has {path}, which does not exist; {RESTORE}")
        check.findings.append(finding)
    runs = {name.split("/", 1)[0] for name in check.records}
    for run in sorted(runs - indexes.keys()):
        message = "absent: a changed record cannot be noticed; run t5repro seal"
        check.findings.append(Finding(UNSEALED, index_path(run), "", message))
    return check


def _unlike_index(
    path: str, data: bytes, sealed: str | None, committed: Committed
) -> Finding | None:
    """Return a finding about the record or, if git or the digits tell, about the index."""
    index, job = index_path(run_of_record(path)), job_of_record(path)
    actual = hashlib.sha256(data).hexdigest()
    if actual == sealed:
        return None
    if sealed is None:
        if committed.attests(path, index):
            return Finding(ALTERED, index, "", f"lacks {path}, which is as committed; {RESEAL}")
        message = f"{index} does not have it: its job was not sealed; run t5repro seal"
        return Finding(EXTRA, path, job, message)
    digits, sealed_digits = differing(actual, sealed)
    if committed.attests(path, index) or are_lookalikes(actual, sealed):
        return Finding(
            ALTERED, index, "", f"says {sealed_digits} of {path}, which is {digits}; {RESEAL}"
        )
    return Finding(ALTERED, path, job, f"sha256 {digits}, {index} says {sealed_digits}; {RESTORE}")


def _parse(path: str, data: bytes, check: RecordCheck, read_shared: ReadShared) -> None:
    job = job_of_record(path)
    try:
        check.records[job] = parse_record(data, path, read_shared)
    except SharedFactsError as error:  # one finding, however many records name the file
        check.altered.add(job)
        shared = shared_path(run_of_record(path), error.sha256)
        check.findings.append(Finding(ALTERED, shared, job, str(error)))
    except ArtifactError as error:
        check.altered.add(job)
        message = str(error).removeprefix(f"{path} is ")
        check.findings.append(Finding(ALTERED, path, job, message))
