"""The auditor's questions: each prints an answer, for a person or as JSON, and returns a code.

0: it is as it should be. 1: something was found. 2: the question cannot be answered as asked.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t5repro.errors import LineageError
from t5repro.files import write_text
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Folder, Revision, open_store

HOLDS, FOUND = 0, 1


def show(value: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print an answer."""
    if as_json:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False) + "\n"
    sys.stdout.write(text)


def trace(
    artifact: str,
    *,
    root: Path = Path(),
    revision: str | None = None,
    pages: bool = False,
    steps: bool = False,
    svg: Path | None = None,
    html: Path | None = None,
    as_json: bool = False,
) -> int:
    """Print the way from an artifact to the raw files; draw it where asked.

    A URL is followed the other way: its crawl record, its row of the corpus, its document of the
    ids and, with `steps`, the steps of pre-training that saw it.
    """
    from t5repro.lineage import trace as tracing

    store = open_store(root, revision)
    graph = load_graph(store)
    if "://" in artifact or pages:
        return _trace_pages(artifact, graph, store, pages=pages, steps=steps, as_json=as_json)
    found = tracing.trace(graph, store, artifact)
    if svg or html:
        from t5repro.report.render import to_html, to_svg

        if svg:
            write_text(svg, to_svg(found, graph))
        if html:
            part = Graph(found.jobs)
            first = found.jobs[-1].name if found.jobs else ""
            write_text(html, to_html(part, f"Lineage of {artifact}", first=first))
    text = "" if as_json else tracing.to_text(found, graph)  # long, and then not wanted
    show(tracing.to_json(found), text, as_json=as_json)
    return FOUND if found.broken else HOLDS


def _trace_pages(
    wanted: str, graph: Graph, store: Folder | Revision, *, pages: bool, steps: bool, as_json: bool
) -> int:
    from t5repro.audit.pages import documents_of_url, records_of_shard
    from t5repro.audit.raw import find_raw

    if isinstance(store, Revision):
        raise LineageError("pages are read from files in place; git checkout and dvc checkout it")
    if pages:
        rows = records_of_shard(graph, store.root, graph.find(wanted))
        text = "".join(f"{row['row']}  {row['url']}  {_record(row['record'])}\n" for row in rows)
        show({"shard": wanted, "rows": rows}, text, as_json=as_json)
        return HOLDS if all(row["record"] for row in rows) else FOUND
    raw = find_raw(graph, store.root, wanted)
    places = documents_of_url(graph, store.root, wanted)
    answer: dict[str, Any] = {"raw": raw.to_json(), "corpus": places}
    lines = [raw.to_text().rstrip("\n")]
    for place in places:
        lines.append(f"row {place['row']} of {place['corpus']}, from {_record(place['record'])}")
        lines += [f"  document {d['document']} of {d['ids']}" for d in place["documents"]]
    if not places:
        lines.append("no corpus has it")
    if steps:
        from t5repro.audit.steps import steps_that_saw

        documents = [item for place in places for item in place["documents"]]
        answer["steps"] = seen = steps_that_saw(graph, store.root, documents)
        lines += [
            f"{item['job']} saw it in {len(item['steps'])} steps: "
            f"{', '.join(map(str, item['steps'][:20]))}"
            for item in seen
        ]
    show(answer, "\n".join(lines) + "\n", as_json=as_json)
    return HOLDS


def _record(record: dict[str, Any] | None) -> str:
    if record is None:
        return "no record of the cleaned shards"
    return f"record {record['number']} of {record['file']}"


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

    store = Folder(root)
    graph = load_graph(store)
    if not graph.jobs:
        raise LineageError("results/ holds no manifest; run snakemake, or dvc pull, first")
    found = find_raw(graph, root, raw)
    here = forward.impact(graph, found.starts, state="the working tree")
    answer: dict[str, Any] = {"raw": found.to_json(), "here": here.to_json()}
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


def withdraw(
    raw: str,
    *,
    reason: str,
    root: Path = Path(),
    dry_run: bool = False,
    delete_cache: bool = False,
    as_json: bool = False,
) -> int:
    """Take a raw source out of everything; print what went and what is left to do."""
    from t5repro.audit import withdraw as withdrawing

    done = withdrawing.withdraw(
        root, raw, reason=reason, dry_run=dry_run, delete_cache=delete_cache
    )
    show(done.to_json(), done.to_text(), as_json=as_json)
    return HOLDS


def diff(a: str, b: str, *, root: Path = Path(), as_json: bool = False) -> int:
    """Print where two states part, and why."""
    from t5repro.lineage.diff import compare, load_side

    found = compare(load_side(root, a), load_side(root, b))
    show(found.to_json(), found.to_text(), as_json=as_json)
    return FOUND if found.partings else HOLDS


def rebuild(
    stage: str | None,
    *,
    root: Path = Path(),
    sample: int | None = None,
    seed: int | None = None,
    profile: str = "local",
    configfile: Path | None = None,
    config: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Build jobs again in a clean clone, compare, and print what differs."""
    from t5repro.lineage.rebuild import Invocation
    from t5repro.lineage.rebuild import rebuild as building

    found = building(
        root, stage, sample=sample, seed=seed, run=Invocation(profile, configfile, tuple(config))
    )
    show(found.to_json(), found.to_text(), as_json=as_json)
    return HOLDS if found.holds else FOUND
