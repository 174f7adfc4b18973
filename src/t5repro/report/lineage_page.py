"""The lineage page of a report: every job between the scores and the raw files.

It is made from manifests alone, so that equal runs have equal pages. Records of equal runs differ
(times, machines); each job therefore links to its record, which git keeps.
"""

import os.path
from collections.abc import Iterable
from pathlib import Path

from t5repro.files import read_manifest, write_text
from t5repro.lineage.graph import Graph, Job, read_jobs
from t5repro.lineage.store import RECORDS, Folder
from t5repro.lineage.trace import trace
from t5repro.report.render_lineage import to_html


def write_lineage_page(
    page: Path, run: str, artifacts: Iterable[Path], root: Path = Path()
) -> list[Path]:
    """Write the page; return the manifests of its jobs, which are all the files it was made from.

    Args:
        page: page to write.
        run: name of the run, for the heading.
        artifacts: scores and histories to trace, as manifests name them.
        root: the checkout; paths of artifacts are relative to it.

    Raises:
        LineageError: no manifest names one of the artifacts.
        ArtifactError: a manifest of one of the jobs was altered.
    """
    store = Folder(root)
    # A damaged manifest of an earlier run must not stop the report of this one.
    graph = Graph(read_jobs(store, {}, faults=[]))
    jobs: dict[str, Job] = {}
    for path in artifacts:
        jobs |= {job.name: job for job in trace(graph, store, path.as_posix()).jobs}
    manifests = [Path(job.manifest) for job in jobs.values()]
    for manifest in manifests:
        read_manifest(root / manifest)
    records = Path(os.path.relpath(root / RECORDS, page.parent)).as_posix()
    write_text(page, to_html(Graph(jobs.values()), f"Lineage of {run}", records=records))
    return manifests
