"""The raw files that runs may have read: a file, the files with a URL, or those with a domain."""

from pathlib import Path

from t5repro.audit.find import find_raw_source, source_kind
from t5repro.lineage.graph import Graph, read_jobs
from t5repro.lineage.store import Folder
from t5repro.runs.used_by import Wanted, wanted_file


def wanted_source(root: Path, name: str) -> Wanted:
    """Return the raw files that contain a source; pages are searched in the working tree.

    A page is as its files: a run that read one of them may have dropped the page.

    Args:
        root: the checkout.
        name: a raw file, a URL or a domain.

    Raises:
        LineageError: no page of the URL or domain was read, or there are no results to search.
    """
    if (root / name).is_file() or source_kind(name) == "file":
        return wanted_file(root, name)
    graph = Graph(read_jobs(Folder(root), {}, faults=[]))
    source = find_raw_source(graph, root, name)
    return Wanted(name, tuple(sorted({artifact.sha256 for artifact in source.starts})))
