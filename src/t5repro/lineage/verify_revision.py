"""Checks that DVC's cache contains every tracked file of a git revision, unaltered."""

from collections.abc import Iterator

from t5repro.errors import ArtifactError
from t5repro.lineage.dvc_cache import folder_files, object_path
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.findings import ALTERED, MISSING, Finding, Verdict, make_verdict
from t5repro.lineage.graph import MANIFEST, Graph, read_jobs, read_records
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.store import Revision
from t5repro.lineage.verify import check_links, recorded_outputs


def verify_revision(revision: Revision, *, deep: bool = False) -> Verdict:
    """Check the objects of a revision in DVC's cache, and its manifests against each other.

    Args:
        revision: the git revision.
        deep: read every byte; otherwise existence and size are checked, and manifests read.
    """
    lock = revision.lock()
    files, findings = _tracked_files(revision, lock)
    hashed = 0
    for name, md5 in files.items():
        path = object_path(revision.root, md5)
        if not path.is_file():
            message = f"md5 {md5[:12]} is not in DVC's cache; run dvc fetch --all-commits"
            findings.append(Finding(MISSING, name, "", message))
        elif deep or name.endswith(MANIFEST):
            hashed += 1
            if hash_file(path).md5 != md5:
                message = f"its object in the cache is not {md5[:12]}; delete it and run dvc fetch"
                findings.append(Finding(ALTERED, name, "", message))
    graph = Graph(())
    if not findings:  # else a manifest may be missing, and every link to it would be reported
        graph, manifest_findings = _check_manifests(revision)
        findings += manifest_findings
    return make_verdict(findings, graph, len(files), hashed, lock)


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
            exists = object_path(revision.root, tracked.md5).is_file()
            kind = ALTERED if exists else MISSING
            findings.append(Finding(kind, tracked.path, tracked.stage, str(error)))
            continue
        files.update((f"{tracked.path}/{name}", md5) for name, md5 in contents.items())
    return files, findings


def _check_manifests(revision: Revision) -> tuple[Graph, list[Finding]]:
    """Return the graph of the revision, and contradictions among its manifests."""
    faults: list[tuple[str, str]] = []
    graph = Graph(read_jobs(revision, read_records(revision), faults))
    findings = [Finding(ALTERED, path, "", message) for path, message in faults]
    return graph, [*findings, *check_links(graph), *_check_sizes(revision, graph)]


def _check_sizes(revision: Revision, graph: Graph) -> Iterator[Finding]:
    for path, (artifact, job) in recorded_outputs(graph).items():
        md5 = revision.hashes.get(path)
        if md5 is None:
            message = f"{job} wrote it, but {LOCK_FILE} does not track it"
            yield Finding(MISSING, path, job, message)
        elif object_path(revision.root, md5).stat().st_size != artifact.length:
            message = f"{job} wrote {artifact.length} bytes, its object in the cache has others"
            yield Finding(ALTERED, path, job, message)
