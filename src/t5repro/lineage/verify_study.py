"""Checks a committed study: its archive is unpacked and verified like a working tree.

Two findings of a working tree are expected here: artifacts that the archive leaves out, and code
that has changed since. The first are counted; for the second the commit of each record must have
the source files that the record names.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from t5repro.lineage.commits import Commits, read_commits
from t5repro.lineage.findings import (
    ALTERED,
    CODE,
    MISSING,
    NOT_ARCHIVED,
    SINCE,
    UNCOMMITTED,
    Finding,
    Verdict,
)
from t5repro.lineage.git import blob_hash, blobs_below, commit_of, try_git
from t5repro.lineage.record import Record
from t5repro.lineage.record_index import read_indexes
from t5repro.lineage.sealed_records import read_checked
from t5repro.lineage.sources import CLOSURES
from t5repro.lineage.store import RESULTS, Folder
from t5repro.lineage.study_archive import ARCHIVE, COPIES, REPORT_RULE, is_evidence, unpack_study
from t5repro.lineage.verify import verify_tree


def verify_study(study: Path, folder: Path) -> Verdict:
    """Unpack a study and check it.

    Args:
        study: its folder.
        folder: new folder for the unpacked files; git knows the commits of records if the folder is
            inside the checkout.

    Raises:
        LineageError: the archive cannot be unpacked.
    """
    unpack_study(study, folder)
    verdict = verify_tree(folder, deep=True)
    store = Folder(folder)
    records = read_checked(store, read_indexes(store, [])).records
    commits = read_commits(folder, records.values())
    absent = [finding for finding in verdict.findings if _is_left_out(finding)]
    findings = [
        finding
        for finding in verdict.findings
        if finding not in absent and not _is_explained(finding, records, commits)
    ]
    findings += _check_copies(study, folder)
    warnings = [finding for finding in verdict.warnings if finding.kind not in (SINCE, UNCOMMITTED)]
    if absent:
        message = f"{len(absent)} artifacts and raw files are not in it: only their hashes are"
        warnings.append(Finding(NOT_ARCHIVED, str(study / ARCHIVE), "", message))
    attested = list(verdict.attested)
    if commits is not None:
        attested += _code_by_commit(records, commits)
    committed = _is_committed(study)
    if committed:
        attested.append(f"{study / ARCHIVE} by commit {commit_of(study, 'HEAD')[:12]}")
    else:
        message = "not as in the checked-out commit; git attests it once committed"
        warnings.append(Finding(UNCOMMITTED, str(study / ARCHIVE), "", message))
    return replace(
        verdict,
        findings=tuple(findings),
        warnings=tuple(warnings),
        files=verdict.files - len(absent),
        attested=tuple(attested),
    )


def _is_left_out(finding: Finding) -> bool:
    # A whole folder has its manifest, which is evidence; its finding names the stage, not a job.
    is_folder = bool(finding.job) and "/" not in finding.job
    return finding.kind == MISSING and not is_folder and not is_evidence(finding.path)


def _is_explained(finding: Finding, records: dict[str, Record], commits: Commits | None) -> bool:
    """Return whether code differs only because it has changed since the job ran."""
    if finding.kind != CODE:
        return False
    if finding.path.startswith(f"{CLOSURES.as_posix()}/"):
        return True  # the hashes of a closure, which each record has file by file
    record = records.get(finding.job)
    if record is None or commits is None or not commits.is_known(record):
        return record is not None  # an unknown commit is a finding of its own, or no git is here
    return commits.attests_code(record)


def _code_by_commit(records: dict[str, Record], commits: Commits) -> Iterator[str]:
    """Yield how many jobs ran the code of a commit, a line for each commit."""
    attested = [record.start.commit for record in records.values() if commits.attests_code(record)]
    for commit in sorted({str(commit) for commit in attested}):
        yield f"code of {attested.count(commit)} jobs by commit {commits.shown(commit)}"


def _check_copies(study: Path, folder: Path) -> Iterator[Finding]:
    """Compare the files next to the archive with those in it."""
    for name in COPIES:
        copied = study / name
        for path in sorted((folder / RESULTS).glob(f"*/{REPORT_RULE}/{name}")):
            if not copied.is_file():
                yield Finding(
                    MISSING, str(copied), "", f"{ARCHIVE} has it; git checkout restores it"
                )
            elif copied.read_bytes() != path.read_bytes():
                message = f"not the file in {ARCHIVE}; git checkout restores it"
                yield Finding(ALTERED, str(copied), "", message)


def _is_committed(study: Path) -> bool:
    if try_git(study, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return False
    blob = blobs_below(study, "HEAD", ARCHIVE).get(ARCHIVE)
    return blob is not None and blob_hash((study / ARCHIVE).read_bytes(), blob) == blob
