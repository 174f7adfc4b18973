"""The lineage page of a report: every job between the scores and the raw files.

It is made from manifests only, so that equal runs have equal pages. Records of equal runs differ
(times, machines); each job therefore links to its record, which git keeps.
"""

import os.path
from collections.abc import Iterable, Mapping
from pathlib import Path

from t5repro.files import read_manifest, write_text
from t5repro.lineage.graph import Graph, Job, read_jobs
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import trace
from t5repro.report.render_lineage import to_html
from t5repro.report.stage_graph import State


def write_lineage_page(
    page: Path,
    run: str,
    artifacts: Iterable[Path],
    root: Path = Path(),
    links: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the page; return the manifests of its jobs, which are all the files it was made from.

    Args:
        page: page to write.
        run: name of the run, for the heading.
        artifacts: scores and histories to trace, as manifests name them.
        root: the checkout; paths of artifacts are relative to it.
        links: words -> link to another page of the report.

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
    checkout = Path(os.path.relpath(root, page.parent)).as_posix()
    title = f"Lineage of {run}"
    write_text(page, to_html(Graph(jobs.values()), title, root=checkout, links=links))
    return manifests


def write_compared_lineage(
    page: Path, title: str, found: Mapping[str, State], root: Path = Path()
) -> None:
    """Write a lineage page that shows the result of a comparison; it depends on the machine.

    Args:
        page: page to write.
        title: heading of the page.
        found: folder of a stage -> its state. Jobs that write to no such folder are omitted.
        root: the checkout; folders are relative to it.
    """
    jobs: dict[str, Job] = {}
    states: dict[str, State] = {}
    for job in read_jobs(Folder(root), {}, faults=[]):
        folder = next((name for name in found if job.manifest.startswith(f"{name}/")), None)
        if folder is not None:
            jobs[job.name], states[job.name] = job, found[folder]
    checkout = Path(os.path.relpath(root, page.parent)).as_posix()
    write_text(page, to_html(Graph(jobs.values()), title, root=checkout, states=states))
