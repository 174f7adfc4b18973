"""Artifacts that depend on a raw source, in the working tree and at earlier revisions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t5repro.audit.find import RawSource, find_raw_source
from t5repro.lineage import impact as forward
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder


@dataclass(frozen=True)
class SourceImpact:
    """A raw source and the artifacts that depend on it.

    Attributes:
        source: the source.
        working_tree: its dependents in the working tree.
        revisions: its dependents at every revision that tracked it; None if not requested.
        unread: a line for each revision without its manifests in DVC's cache.
    """

    source: RawSource
    working_tree: forward.Impact
    revisions: list[forward.Impact] | None = None
    unread: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the impact as plain JSON values."""
        answer = {"raw": self.source.to_json(), "here": self.working_tree.to_json()}
        if self.revisions is None:
            return answer
        revisions = [impact.to_json() for impact in self.revisions]
        return {**answer, "revisions": revisions, "unread": self.unread}

    def to_text(self) -> str:
        """Return the impact as human-readable text."""
        impacts = [self.working_tree, *(self.revisions or ())]
        return (
            self.source.to_text()
            + "".join(impact.to_text() for impact in impacts)
            + "".join(f"not read: {line}\n" for line in self.unread)
        )


def source_impact(root: Path, name: str, *, all_revisions: bool = False) -> SourceImpact:
    """Return the artifacts that depend on a raw source.

    Args:
        root: the checkout.
        name: a raw file, a URL or a domain.
        all_revisions: whether to read every revision of the git history too.

    Raises:
        LineageError: the source does not exist, or the checkout has no results.
    """
    graph = load_graph(Folder(root))
    source = find_raw_source(graph, root, name)
    # By file: a URL affects every job that read its shard, because hashes do not tell pages apart.
    working_tree = forward.impact(graph, source.starts, state="the working tree")
    if not all_revisions:
        return SourceImpact(source, working_tree)
    revisions: list[forward.Impact] = []
    unread: list[str] = []
    for path in source.paths:
        impacts, lines = forward.of_revisions(root, path)
        revisions += impacts
        unread += lines
    return SourceImpact(source, working_tree, revisions, unread)
