"""The page on which a score is followed back to the raw files, beside the report.

It is made from manifests alone: equal runs have equal pages, and records of equal runs differ. A
link leads from every job to its record, which git keeps.
"""

import os.path
from collections.abc import Iterable
from pathlib import Path

from t5repro.files import write_text
from t5repro.lineage.graph import Graph, Job, read_jobs
from t5repro.lineage.store import RECORDS, Folder
from t5repro.lineage.trace import trace
from t5repro.report.render import to_html


def write_way_back(
    page: Path, run: str, artifacts: Iterable[Path], root: Path = Path()
) -> list[Path]:
    """Write the page of every job on the way from some artifacts to the raw files.

    Returns the manifests of those jobs, which are all that it read.

    Args:
        page: where to write.
        run: name of the run, for the heading.
        artifacts: scores and histories, as manifests name them.
        root: folder that the names of artifacts start from.

    Raises:
        LineageError: no manifest names one of them.
    """
    store = Folder(root)
    # A manifest that an earlier run left is in nobody's way, even if it cannot be read.
    graph = Graph(read_jobs(store, {}, faults=[]))
    jobs: dict[str, Job] = {}
    for path in artifacts:
        jobs |= {job.name: job for job in trace(graph, store, path.as_posix()).jobs}
    records = Path(os.path.relpath(root / RECORDS, page.parent)).as_posix()
    write_text(page, to_html(Graph(jobs.values()), f"Where {run} comes from", records=records))
    return [Path(job.manifest) for job in jobs.values()]
