"""Checks that DVC's cache and git contain every tracked file of a git revision, unaltered."""

import hashlib
from collections.abc import Iterator

from t5repro.artifacts import MANIFEST
from t5repro.errors import ArtifactError
from t5repro.lineage.commits import read_commits
from t5repro.lineage.dvc_cache import cure_of_absence, folder_files, object_path
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock, folder_md5, is_in_git
from t5repro.lineage.findings import (
    ALTERED,
    MISSING,
    SINCE,
    WARNINGS,
    Finding,
    Verdict,
    make_verdict,
)
from t5repro.lineage.git import files_at
from t5repro.lineage.graph import Graph, read_jobs
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.record_index import read_indexes
from t5repro.lineage.sealed_records import read_checked
from t5repro.lineage.signatures import check_signatures, sealed_runs
from t5repro.lineage.store import RECORDS, Revision
from t5repro.lineage.verify import check_links, recorded_outputs
from t5repro.lineage.verify_records import check_fields
from t5repro.lineage.withdrawal_history import check_withdrawals


def verify_revision(revision: Revision, *, deep: bool = False) -> Verdict:
    """Check the objects of a revision in DVC's cache, and its manifests against each other.

    Args:
        revision: the git revision.
        deep: read every byte; otherwise existence and size are checked, and manifests read.
    """
    lock = revision.lock()
    files, findings = _tracked_files(revision, lock)
    findings += _check_generated(revision, lock)
    # Warnings leave all objects in place.
    absent = any(finding.kind not in WARNINGS for finding in findings)
    hashed = 0
    for name, md5 in files.items():
        path = object_path(revision.root, md5)
        if not path.is_file():
            message = f"md5 {md5[:12]} is not in DVC's cache; {cure_of_absence(revision.root)}"
            findings.append(Finding(MISSING, name, "", message))
            absent = True
        # Manifests are read in any case: the checks of the graph below rest on them.
        elif deep or name.endswith(MANIFEST):
            hashed += 1
            if hash_file(path).md5 != md5:
                message = f"its object in the cache is not {md5[:12]}; delete it and run dvc fetch"
                findings.append(Finding(ALTERED, name, "", message))
    graph = Graph(())
    if not absent:  # else a manifest may be missing, and every link to it would be reported
        graph, manifest_findings = _check_manifests(revision, lock)
        findings += manifest_findings
    findings += check_withdrawals(revision.root, revision.name)
    # Signatures are checked even if objects are absent: records are in git.
    runs = sealed_runs(revision.names(RECORDS, ""))
    bad_signatures, attestations = check_signatures(
        revision.root, runs, revision.committed, revision.name
    )
    findings += bad_signatures
    attested = [attestation.text for attestation in attestations]
    return make_verdict(findings, graph, len(files), hashed, lock, attested)


def _check_generated(revision: Revision, lock: Lock) -> Iterator[Finding]:
    """Check the generated files that git keeps and DVC only hashes (`cache: false`)."""
    for tracked in lock.outputs:
        if not is_in_git(tracked.path):
            continue
        files = files_at(revision.root, revision.name, [tracked.path])
        # DVC's MD5 of the content, which git's own object name is not.
        hashes = {name: _md5(data) for name, data in files.items()}
        if not files:
            message = f"{LOCK_FILE} has it, the commit does not; run t5repro config generate"
            yield Finding(MISSING, tracked.path, tracked.stage, message)
            continue
        folder = f"{tracked.path}/"
        md5 = (
            folder_md5({name.removeprefix(folder): md5 for name, md5 in hashes.items()})
            if tracked.is_folder
            else hashes[tracked.path]
        )
        if md5 != tracked.md5:
            message = f"not as in {LOCK_FILE}: settings or code changed after the results"
            yield Finding(SINCE, tracked.path, tracked.stage, message)


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _tracked_files(revision: Revision, lock: Lock) -> tuple[dict[str, str], list[Finding]]:
    """Return path -> MD5 of all tracked files, and a finding for each unknown folder."""
    files: dict[str, str] = {}
    findings: list[Finding] = []
    for tracked in lock.cached_outputs:
        if not tracked.is_folder:
            files[tracked.path] = tracked.md5
            continue
        try:
            contents = folder_files(revision.root, tracked)
        except ArtifactError as error:
            # A list that is there and cannot be read was altered.
            exists = object_path(revision.root, tracked.md5).is_file()
            kind = ALTERED if exists else MISSING
            findings.append(Finding(kind, tracked.path, tracked.stage, str(error)))
            continue
        files.update((f"{tracked.path}/{name}", md5) for name, md5 in contents.items())
    return files, findings


def _check_manifests(revision: Revision, lock: Lock) -> tuple[Graph, list[Finding]]:
    """Return the graph of the revision, and contradictions among manifests and records."""
    faults: list[tuple[str, str]] = []
    # Indexes first: they say which records are sealed, and only these are believed.
    indexes = read_indexes(revision, faults)
    check = read_checked(revision, indexes)
    graph = Graph(read_jobs(revision, check.intact, faults))
    check.commits = read_commits(revision.root, check.records.values(), revision.name)
    findings = [Finding(ALTERED, path, "", message) for path, message in faults]
    findings += [*check.findings, *check_links(graph), *_check_sizes(revision, graph)]
    findings += check_fields(revision, graph, lock, check, (), ())
    return graph, findings


def _check_sizes(revision: Revision, graph: Graph) -> Iterator[Finding]:
    for path, (artifact, job) in recorded_outputs(graph).items():
        md5 = revision.hashes.get(path)
        if md5 is None:
            message = f"{job} wrote it, but {LOCK_FILE} does not track it"
            yield Finding(MISSING, path, job, message)
        # The size is compared without `deep`: it costs no reading.
        elif object_path(revision.root, md5).stat().st_size != artifact.length:
            message = f"{job} wrote {artifact.length} bytes, its object in the cache has others"
            yield Finding(ALTERED, path, job, message)
