"""The evidence for the record of each job, and the facts that only the record states.

A record is text that anyone could write. It is attested by a signature, by the index that `seal`
wrote, by git, and by `dvc.lock`, which has the same results as the index. Its code is attested by
the commit, if that has the hash of every source file. Machine and times have no other witness than
the signer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from t5repro.errors import ArtifactError
from t5repro.lineage.commits import Commits, read_commits
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.findings import WARNINGS
from t5repro.lineage.git import commit_of
from t5repro.lineage.graph import Job
from t5repro.lineage.record import Record, read_record, record_of_job
from t5repro.lineage.record_index import (
    Index,
    index_path,
    read_indexes,
    stage_of_path,
    stages_by_folder,
)
from t5repro.lineage.sealed_records import read_checked
from t5repro.lineage.signatures import check_signatures
from t5repro.lineage.store import WORK, Folder, Revision
from t5repro.lineage.verify_committed import Committed, read_committed

UNATTESTED = "processor, devices, environment and times"


@dataclass(frozen=True)
class Evidence:
    """The evidence for the record of a job.

    Attributes:
        attested: what attests the record, its results or its code.
        stated: what nothing but an unsigned record says; empty if it is signed.
        refuted: what contradicts the record.
        repeated: when this copy was made, if the record is of another run with its bytes.
    """

    attested: tuple[str, ...] = ()
    stated: str = ""
    refuted: tuple[str, ...] = ()
    repeated: str = ""

    def lines(self) -> list[str]:
        """Return the evidence as lines of text, with a label each."""
        return [
            *(f"refuted   {text}" for text in self.refuted),
            f"attested  {'; '.join(self.attested) or 'by its manifest alone'}",
            *([f"stated    {self.stated}"] if self.stated else []),
            *([f"repeated  {self.repeated}"] if self.repeated else []),
        ]

    def to_json(self) -> dict[str, object]:
        """Return the evidence as JSON values."""
        return {
            "attested": list(self.attested),
            "stated": self.stated or None,
            "refuted": list(self.refuted),
            "repeated": self.repeated or None,
        }


def evidence_of(state: Folder | Revision, jobs: Iterable[Job]) -> dict[str, Evidence]:
    """Return job -> evidence, for some jobs of a state."""
    selection = {job.name: job for job in jobs}
    revision = state.name if isinstance(state, Revision) else "HEAD"
    committed = Committed() if isinstance(state, Revision) else read_committed(state.root)
    indexes, lock = read_indexes(state, []), state.lock()
    check = read_checked(state, indexes, committed)
    records = {name: check.records[name] for name in selection.keys() & check.records.keys()}
    commits = read_commits(state.root, records.values(), revision)
    read = state.committed if isinstance(state, Revision) else None
    _, attestations = check_signatures(state.root, sorted(indexes), read, revision)
    signers = {run: [a.signer for a in attestations if a.run == run] for run in indexes}
    head = commit_of(state.root, revision)[:12] if commits else ""
    evidence = {}
    for name, job in selection.items():
        run = name.split("/", 1)[0]
        path = record_of_job(name)
        faults = tuple(
            finding.message
            for finding in check.findings
            if finding.kind not in WARNINGS and finding.path in (path, index_path(run))
        )
        record = records.get(name)
        if record is None:
            evidence[name] = Evidence(refuted=faults)
            continue
        if commits is not None:
            faults += tuple(commits.faults(record))
        attested = [f"signature of {signer}" for signer in signers.get(run, ())]
        attested += _seals(job, path, indexes.get(run, {}), lock)
        is_committed = isinstance(state, Revision) or path in committed.names
        if is_committed and path not in committed.changed:
            attested.append(f"commit {head}")
        attested = [f"record by {', '.join(attested)}"] if attested and not faults else []
        found = _with_code(record, commits, attested, faults, bool(signers.get(run)))
        repetition = _repetition(state.root, path, job) if isinstance(state, Folder) else ""
        evidence[name] = replace(found, repeated=repetition)
    return evidence


def repetition_path(record: str) -> Path:
    """Return where `seal` moves the record of a job that repeated the result of a committed one."""
    return Path(WORK, record)


def _repetition(root: Path, path: str, job: Job) -> str:
    """Say when this copy of a job's results was made, if its record is that of another run."""
    try:
        record = read_record(root / repetition_path(path))
    except ArtifactError:  # there is none, usually
        return ""
    outputs = {file.path: file.sha256 for file in record.end.outputs} if record.end else {}
    if any(outputs.get(file.path) != file.sha256 for file in job.outputs):
        return ""  # of results that are no longer there
    commit = (record.start.commit or "no commit")[:12]
    return (
        f"this copy was made at {record.start.at} by {commit} with Python "
        f"{record.start.machine.python} ({repetition_path(path)}); the record is of another run "
        "with the same bytes"
    )


def _seals(job: Job, path: str, index: Index, lock: Lock) -> list[str]:
    """Return index and lock, if they have the record and the results of a job."""
    stage = stage_of_path(job.manifest, stages_by_folder(lock))
    sealed = next((name for name, entry in index.items() if path in entry.records), "")
    if not sealed:
        return []
    run = job.name.split("/", 1)[0]
    if stage == sealed and index[sealed].md5 in lock.stages[stage].outs.values():
        return [index_path(run), LOCK_FILE]
    return [index_path(run)]


def _with_code(
    record: Record,
    commits: Commits | None,
    attested: list[str],
    faults: tuple[str, ...],
    is_signed: bool,
) -> Evidence:
    """Add whether the commit attests the code of a record."""
    has_code = False
    if commits is not None and (has_code := commits.attests_code(record)):
        attested.append(f"code by commit {commits.shown(str(record.start.commit))}")
    claims = UNATTESTED if has_code else f"code, {UNATTESTED}"
    return Evidence(tuple(attested), "" if is_signed else f"{claims}: an unsigned record", faults)
