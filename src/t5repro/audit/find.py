"""Find the raw source that an auditor names: a file, a URL or a domain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from t5repro.audit.pages import CrawlPage, find_pages
from t5repro.config.hosts import in_domain
from t5repro.config.withdrawn import PAGES, read_pages
from t5repro.errors import LineageError
from t5repro.lineage.graph import DATA, Artifact, Graph
from t5repro.lineage.trace import artifact_json

SourceKind = Literal["file", "url", "domain", "list"]
MAX_PAGES_IN_TEXT = 20


@dataclass(frozen=True)
class RawSource:
    """A raw source and the files that contain it.

    Attributes:
        kind: kind of source; a list is all that a list of requests names.
        name: path of the file or list, the URL, or the domain.
        starts: first artifacts to contain it: the raw files themselves.
        paths: paths of these raw files.
        pages: for a URL or a domain, its pages in the crawl.
    """

    kind: SourceKind
    name: str
    starts: tuple[Artifact, ...]
    paths: tuple[str, ...]
    pages: tuple[CrawlPage, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the source as plain JSON values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "starts": [artifact_json(artifact) for artifact in self.starts],
            "paths": list(self.paths),
            "pages": [page.to_json() for page in self.pages],
        }

    def to_text(self) -> str:
        """Return the source as human-readable text."""
        lines = [f"{self.kind} {self.name}: in {', '.join(self.paths)}"]
        pages = list(dict.fromkeys(self.pages))  # every run has cleaned them
        lines += [
            f"  {page.file} record {page.record}: {page.url} ({page.outcome})"
            for page in pages[:MAX_PAGES_IN_TEXT]
        ]
        hidden = len(pages) - MAX_PAGES_IN_TEXT
        if hidden > 0:
            lines.append(f"  and {hidden} more pages (--json lists all)")
        return "\n".join(lines) + "\n"


def find_raw_source(graph: Graph, root: Path, name: str) -> RawSource:
    """Return the raw source of a name.

    Args:
        graph: lineage of the working tree.
        root: the checkout.
        name: path of a raw file (or the end of one), a URL, or a domain.

    Raises:
        LineageError: no raw file has this name, no page of this URL or domain was read, or nothing
            has run here.
    """
    graph.check_not_empty()
    # Files first: a file name without a folder, such as ``part.tsv``, looks like a domain.
    if artifacts := matching_files(graph, name):
        return RawSource("file", artifacts[0].path, artifacts, tuple(a.path for a in artifacts))
    kind = source_kind(name)
    if kind == "file":
        raise LineageError(
            f"{name}: no raw file of this name; {_available(graph)}, and a URL begins with "
            "http:// or https://"
        )
    pages, starts = find_pages(
        graph,
        root,
        (lambda url: url == name) if kind == "url" else (lambda url: in_domain(url, name)),
    )
    if not pages:
        raise LineageError(
            f"{name}: no page of this {kind} was read (cleaned shards were searched); "
            + _why_absent(root, name, kind)
        )
    return RawSource(kind, name, starts, tuple(artifact.path for artifact in starts), pages)


def _why_absent(root: Path, name: str, kind: SourceKind) -> str:
    withdrawn = read_pages(root / PAGES)
    reasons = [reason for url, reason in withdrawn.urls.items() if url == name]
    reasons += [reason for domain, reason in withdrawn.domains.items() if in_domain(name, domain)]
    if reasons:
        return f"{PAGES} withdraws it: {reasons[0]}"
    if kind == "domain":
        return "write a domain without http:// and without a path"
    return "write the whole address, as the crawl has it; a row of own text is row://FILE#NUMBER"


def source_kind(name: str) -> SourceKind:
    """Return the kind of a source by its name: a URL has a scheme, a domain a dot and no slash."""
    if "://" in name:
        return "url"
    return "file" if "/" in name or "." not in name else "domain"


def raw_files(graph: Graph) -> Sequence[Artifact]:
    """Return the raw files that the rule `data` checked, over all runs."""
    artifacts: dict[tuple[str, str], Artifact] = {}
    for job in graph.jobs.values():
        if job.rule == DATA:
            artifacts.update((out.key, out) for out in job.outputs if out.path != job.manifest)
    return list(artifacts.values())


def matching_files(graph: Graph, name: str) -> tuple[Artifact, ...]:
    """Return the raw files with this path, otherwise the first path that ends with it."""
    artifacts = raw_files(graph)
    exact = tuple(artifact for artifact in artifacts if artifact.path == name)
    return exact or tuple(a for a in artifacts if a.path.endswith("/" + name))[:1]


def _available(graph: Graph) -> str:
    paths = [artifact.path for artifact in raw_files(graph)]
    return f"there are {len(paths)}, such as {paths[0]}" if paths else "results/ names none"
