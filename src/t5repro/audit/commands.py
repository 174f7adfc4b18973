"""The auditor's questions: each prints an answer, for a person or as JSON, and returns a code.

0: it is as it should be. 1: something was found. 2: the question cannot be answered as asked.
"""

import json
import sys
from pathlib import Path
from typing import Any

from t5repro.errors import LineageError
from t5repro.files import write_text
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Revision, open_store

HOLDS, FOUND = 0, 1


def show(value: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print an answer."""
    if as_json:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    sys.stdout.write(text)


def trace(
    artifact: str,
    *,
    root: Path = Path(),
    revision: str | None = None,
    svg: Path | None = None,
    html: Path | None = None,
    as_json: bool = False,
) -> int:
    """Print the way from an artifact to the raw files; draw it where asked."""
    from t5repro.lineage import trace as tracing

    store = open_store(root, revision)
    graph = load_graph(store)
    found = tracing.trace(graph, store, artifact)
    if svg or html:
        from t5repro.lineage.picture import to_html, to_svg

        if svg:
            write_text(svg, to_svg(found, graph))
        if html:
            part = Graph(found.jobs)
            first = found.jobs[-1].name if found.jobs else ""
            write_text(html, to_html(part, f"Lineage of {artifact}", first=first))
    show(tracing.to_json(found), tracing.to_text(found, graph), as_json=as_json)
    return FOUND if found.broken else HOLDS


def verify(
    revision: str | None = None, *, root: Path = Path(), deep: bool = False, as_json: bool = False
) -> int:
    """Print what is not as manifests, records and the lock say; the first broken link last."""
    from t5repro.lineage.verify import verify_revision, verify_tree

    if revision is None:
        verdict = verify_tree(root, deep=deep)
    else:
        store = open_store(root, revision)
        if isinstance(store, Revision):
            verdict = verify_revision(store, deep=deep)
        else:
            verdict = verify_tree(store.root, deep=deep)
    show(verdict.to_json(), verdict.to_text(), as_json=as_json)
    return FOUND if verdict.findings else HOLDS


def impact(
    raw: str, *, root: Path = Path(), all_revisions: bool = False, as_json: bool = False
) -> int:
    """Print what a raw file, a URL or a domain touches."""
    from t5repro.audit.raw import find_raw
    from t5repro.lineage import impact as forward
    from t5repro.lineage.store import Folder

    store = Folder(root)
    graph = load_graph(store)
    if not graph.jobs:
        raise LineageError("results/ holds no manifest; run snakemake, or dvc pull, first")
    found = find_raw(graph, root, raw)
    here = forward.impact(graph, found.starts, state="the working tree")
    answer = {"raw": found.to_json(), "here": here.to_json()}
    text = found.to_text() + here.to_text()
    if all_revisions:
        earlier, unread = [], []
        for path in found.paths:
            more, lines = forward.of_revisions(root, path)
            earlier += more
            unread += lines
        answer["revisions"] = [item.to_json() for item in earlier]
        answer["unread"] = unread
        text += "".join(item.to_text() for item in earlier)
        text += "".join(f"not read: {line}\n" for line in unread)
    show(answer, text, as_json=as_json)
    return HOLDS
