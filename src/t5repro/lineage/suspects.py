"""Which of several contradicting files is to blame: a manifest, a record or an artifact.

A manifest contains the hashes of all files of its job. If it was altered, every comparison with it
would name an intact file, so it is found out first, by what attests it: `dvc.lock`, the record of
its job, and the manifests of the jobs that read it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from t5repro.artifacts import MANIFEST
from t5repro.lineage.findings import ALTERED, Finding, are_lookalikes, differing
from t5repro.lineage.graph import Artifact, Graph, Job, job_name
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.sealed_records import RecordCheck


@dataclass(frozen=True)
class Suspects:
    """The manifests that cannot be trusted.

    Attributes:
        manifests: paths of altered manifests.
        jobs: their jobs.
        folders: their folders.
        recorded: paths of files that records or manifests of readers know.
        named_by_lock: folders in which `dvc.lock` names every file that is not as locked.
    """

    manifests: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    recorded: frozenset[str] = frozenset()
    named_by_lock: frozenset[str] = frozenset()

    def explain(self, path: str) -> bool:
        """Return whether a file is in the folder of an altered manifest, and known otherwise."""
        folder = path.rpartition("/")[0]
        return folder in self.named_by_lock or (folder in self.folders and path in self.recorded)


def find_suspects(
    graph: Graph,
    check: RecordCheck,
    from_lock: Iterable[Finding],
    intact_folders: Iterable[str],
    unreadable: Iterable[str],
    hashes: Mapping[str, str | None],
    hasher: Hasher,
) -> tuple[Suspects, list[Finding]]:
    """Return the altered manifests, and findings about those that `dvc.lock` does not name.

    Args:
        graph: the jobs.
        check: their records.
        from_lock: the findings of `check_lock`.
        intact_folders: folders that are as locked.
        unreadable: paths of manifests that are none.
        hashes: path -> SHA-256 of the files in the manifests, as they are now.
        hasher: of the checkout.
    """
    disagreeing = _disagreements(graph, hashes, hasher)
    intact = tuple(f"{folder}/" for folder in intact_folders)
    altered_paths = {finding.path for finding in from_lock if finding.kind == ALTERED}
    findings: list[Finding] = []
    altered = {job.manifest for job in graph.jobs.values() if job.manifest in altered_paths}
    for job in graph.jobs.values():
        if job.manifest in altered or job.manifest.startswith(intact):
            continue
        if message := _fault_of_manifest(job, graph, check, disagreeing.get(job.name, ())):
            altered.add(job.manifest)
            findings.append(Finding(ALTERED, job.manifest, job.name, message))
    paths = {path for path in (*altered, *unreadable) if path.endswith(MANIFEST)}
    if not paths:
        return Suspects(), findings
    recorded = {path for path, artifacts in graph.by_path.items() if artifacts}
    recorded |= {
        file.path for record in check.records.values() if record.end for file in record.end.outputs
    }
    suspects = Suspects(
        frozenset(paths),
        frozenset(map(job_name, paths)),
        frozenset(path.rpartition("/")[0] for path in paths),
        frozenset(recorded),
        frozenset(path.rpartition("/")[0] for path in altered_paths & paths),
    )
    return suspects, findings


def _disagreements(
    graph: Graph, hashes: Mapping[str, str | None], hasher: Hasher
) -> dict[str, list[tuple[Artifact, str]]]:
    """Return job -> the files of which its manifest has another hash than they have now."""
    disagreements: dict[str, list[tuple[Artifact, str]]] = {}
    outputs = ((job.name, artifact) for job in graph.jobs.values() for artifact in job.outputs)
    for name, artifact in (*graph.broken, *outputs):
        actual = hashes.get(artifact.path) or hasher.sha256(artifact.path)
        if actual is not None and actual != artifact.sha256:
            disagreements.setdefault(name, []).append((artifact, actual))
    return disagreements


def _fault_of_manifest(
    job: Job, graph: Graph, check: RecordCheck, disagreeing: Iterable[tuple[Artifact, str]]
) -> str:
    """Return why a manifest cannot be the one that its job wrote; empty if it may be."""
    manifest = job.outputs[-1]
    if graph.consumers.get(manifest.key):
        return ""  # a later job read it as it is
    record = check.records.get(job.name)
    if record is not None and record.end is not None and job.name not in check.altered:
        for output in record.end.outputs:
            if output.path == job.manifest and output.sha256 != manifest.sha256:
                digits, recorded_digits = differing(manifest.sha256, output.sha256)
                return (
                    f"sha256 {digits}, the record of {job.name} says {recorded_digits}; "
                    "dvc checkout or a rerun restores it"
                )
    for artifact, actual in disagreeing:
        if are_lookalikes(actual, artifact.sha256):
            digits, recorded_digits = differing(actual, artifact.sha256)
            return (
                f"says {recorded_digits} of {artifact.path}, which is {digits}: so few digits "
                "differ that the manifest was altered; dvc checkout or a rerun restores it"
            )
    return ""
