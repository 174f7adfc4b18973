"""What an auditor means by a raw source: a file, a URL, or a domain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from t5repro.errors import LineageError
from t5repro.lineage.graph import DATA, Artifact, Graph
from t5repro.lineage.trace import artifact_json

Kind = Literal["file", "url", "domain"]


@dataclass(frozen=True)
class Raw:
    """A raw source and where it is.

    Attributes:
        kind: of the source.
        name: path of the file, the URL, or the domain.
        starts: artifacts that hold it first: the file, or the cleaned shards with its pages.
        paths: raw files that hold it.
        pages: pages of the URL or domain that the crawl has, and what became of them.
    """

    kind: Kind
    name: str
    starts: tuple[Artifact, ...]
    paths: tuple[str, ...]
    pages: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the source as plain JSON values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "starts": [artifact_json(item) for item in self.starts],
            "paths": list(self.paths),
            "pages": list(self.pages),
        }

    def to_text(self) -> str:
        """Return the source for a person."""
        lines = [f"{self.kind} {self.name}: in {', '.join(self.paths)}"]
        lines += [
            f"  {page['file']} record {page['record']}: {page['url']} ({page['fate']})"
            for page in self.pages[:20]
        ]
        if len(self.pages) > 20:
            lines.append(f"  and {len(self.pages) - 20} more pages (--json lists all)")
        return "\n".join(lines) + "\n"


def kind_of(wanted: str) -> Kind:
    """Tell what a person named: a URL has a scheme, a domain has a dot and no slash."""
    if "://" in wanted:
        return "url"
    return "file" if "/" in wanted or "." not in wanted else "domain"


def find_raw(graph: Graph, root: Path, wanted: str) -> Raw:
    """Return the raw source that a person named.

    Args:
        graph: of the working tree.
        root: the checkout.
        wanted: path of a raw file (or its end), a URL, or a domain.

    Raises:
        LineageError: there is none.
    """
    files = _files(graph, wanted)
    if files:
        return Raw("file", files[0].path, tuple(files), tuple(item.path for item in files))
    if kind_of(wanted) == "file":
        raise LineageError(
            f"{wanted}: no raw file of this name; {_raw_words(graph)}, and a URL begins with "
            "http:// or https://"
        )
    from t5repro.audit.pages import find_pages

    return find_pages(graph, root, wanted, kind_of(wanted))


def _files(graph: Graph, wanted: str) -> list[Artifact]:
    raw = raw_files(graph)
    return [item for item in raw if item.path == wanted] or [
        item for item in raw if item.path.endswith("/" + wanted)
    ][:1]


def raw_files(graph: Graph) -> Sequence[Artifact]:
    """Return the raw files that the rule `data` checked, of all runs."""
    found: dict[tuple[str, str], Artifact] = {}
    for job in graph.jobs.values():
        if job.rule == DATA:
            found.update((item.key, item) for item in job.outputs if item.path != job.manifest)
    return list(found.values())


def _raw_words(graph: Graph) -> str:
    raw = [item.path for item in raw_files(graph)]
    return f"there are {len(raw)}, such as {raw[0]}" if raw else "results/ names none"
