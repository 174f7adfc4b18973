"""A trace as a picture (SVG), and a graph as a page to click through (HTML).

Both are one file without script or network, and their bytes are a function of what they show.
Jobs stand in columns by their distance from the raw files; jobs of one rule in one column are one
box when there are more than `MOST_BOXES` of them.
"""

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePosixPath

from t5repro.lineage.graph import DATA, Artifact, Graph, Job
from t5repro.lineage.trace import Trace, leaves_of, record_facts

MOST_BOXES = 4
BOX_WIDTH, BOX_HEIGHT, COLUMN, ROW, MARGIN = 190, 48, 240, 66, 20
RAW = "raw files"
FILE = "file:"  # before the name of a file, so that no job has the same place


@dataclass(frozen=True)
class Box:
    """One box of the picture: a job, or several of one rule."""

    title: str
    detail: str
    column: int
    members: tuple[str, ...]


def to_svg(found: Trace, graph: Graph) -> str:
    """Return a trace as an SVG drawing, raw files on the left."""
    before = {
        job.name: [
            source.name
            for item in found.inputs[job.name]
            if (source := graph.job_of(item)) is not None and source.name != job.name
        ]
        for job in found.jobs
    }
    boxes = _boxes(found.jobs, _columns(found.jobs, before), len(found.raw))
    place = _places(boxes)
    of_job = {name: box for box in boxes for name in box.members}
    arrows = sorted(
        {
            (boxes.index(of_job[earlier]), boxes.index(of_job[name]))
            for name, sources in before.items()
            for earlier in sources
            if of_job[earlier] is not of_job[name]
        }
    )
    width = MARGIN * 2 + (max(box.column for box in boxes) + 1) * COLUMN if boxes else COLUMN
    height = MARGIN * 2 + max((y for _, y in place), default=0) + BOX_HEIGHT + 24
    about = found.artifact.path + (f"#{found.part}" if found.part else "")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif">',
        f"<title>{escape(about)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{MARGIN}" y="{MARGIN}" font-size="13" fill="#222">{escape(about)}</text>',
    ]
    parts += [_arrow(place[start], place[end]) for start, end in arrows]
    parts += [_drawn(box, at) for box, at in zip(boxes, place, strict=True)]
    return "\n".join([*parts, "</svg>", ""])


def _columns(jobs: Sequence[Job], before: Mapping[str, Sequence[str]]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for job in jobs:  # each comes after those it depends on
        columns[job.name] = 1 + max((columns[name] for name in before[job.name]), default=-1)
    return columns


def _boxes(jobs: Sequence[Job], columns: Mapping[str, int], raw: int) -> list[Box]:
    groups: dict[tuple[int, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((columns[job.name], job.rule), []).append(job)
    boxes = []
    for (column, rule), members in sorted(groups.items()):
        if rule == DATA:
            title = f"{raw} {RAW}"
            boxes.append(Box(title, "data", column, tuple(job.name for job in members)))
        elif len(members) > MOST_BOXES:
            names = ", ".join(PurePosixPath(job.name).name for job in members)
            title = f"{rule} × {len(members)}"
            boxes.append(Box(title, names, column, tuple(job.name for job in members)))
        else:
            boxes += [Box(rule, job.name.split("/", 2)[-1], column, (job.name,)) for job in members]
    return boxes


def _places(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    rows: dict[int, int] = {}
    found = []
    for box in boxes:
        row = rows.get(box.column, 0)
        rows[box.column] = row + 1
        found.append((MARGIN + box.column * COLUMN, MARGIN + 18 + row * ROW))
    return found


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT // 2
    bend = (x2 - x1) // 2
    return (
        f'<path d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}" '
        'fill="none" stroke="#8a8f98" stroke-width="1.3"/>'
    )


def _drawn(box: Box, at: tuple[int, int]) -> str:
    x, y = at
    detail = box.detail if len(box.detail) <= 30 else box.detail[:29] + "…"
    fill = "#eef3ea" if box.title.endswith(RAW) else "#eef2f8"
    return (
        f"<g><title>{escape(', '.join(box.members))}</title>"
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5" fill="{fill}" '
        'stroke="#8a8f98"/>'
        f'<text x="{x + 10}" y="{y + 20}" font-size="13" fill="#111">{escape(box.title)}</text>'
        f'<text x="{x + 10}" y="{y + 38}" font-size="11" fill="#555">{escape(detail)}</text></g>'
    )


STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;
color:#1b1d21;background:#fff}
h1{font-size:1.4rem}
h2{font-size:1.1rem;margin-top:2.2rem;border-top:1px solid #ccd;padding-top:1rem}
section:target,tr:target{background:#fffbe6}code,td,.h{font-family:ui-monospace,monospace;font-size:.85rem}
table{border-collapse:collapse}td,th{text-align:left;padding:.1rem .8rem .1rem 0;
vertical-align:top;overflow-wrap:anywhere}.h{color:#667}summary{cursor:pointer}
a{color:#1a4f9c}
"""


def to_html(graph: Graph, title: str, *, first: str = "", records: str = "") -> str:
    """Return all jobs as a page: every input leads to the file that a job wrote, and back.

    Args:
        graph: jobs to show.
        title: heading of the page.
        first: name of the job to link to at the top, such as that of the scores.
        records: link to the folder of records, for a page that must not hold them, since equal
            runs have equal pages and unequal records; empty for none.
    """
    jobs = list(reversed(graph.ordered()))
    rows = "".join(
        f'<tr><td><a href="#{anchor(job.name)}">{escape(job.name)}</a></td>'
        f"<td>{len(job.inputs)} in, {len(job.outputs) - 1} out</td></tr>"
        for job in jobs
    )
    lead = ""
    if first in graph.jobs:
        lead = f'<p>Begin at <a href="#{anchor(first)}">{escape(first)}</a>.</p>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>Every file that a job read leads to where it was written, "
        "down to the raw files; every file that it wrote leads to the jobs that read it. "
        f"Hashes are SHA-256.</p>{lead}<table>{rows}</table>"
        + "".join(_section(job, graph, records) for job in jobs)
        + "</body></html>\n"
    )


def _section(job: Job, graph: Graph, records: str) -> str:
    settings = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>"
        for name, value in leaves_of(job.settings)
        if name
    )
    facts = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>"
        for name, value in record_facts(job.record).items()
        if job.record
    )
    kept = escape(f"{records}/{urllib.parse.quote(job.name)}.json", quote=True)
    return (
        f'<section id="{anchor(job.name)}"><h2>{escape(job.name)}</h2><p>Rule '
        f"<code>{escape(job.rule)}</code></p>"
        + (f"<table>{facts}</table>" if facts else "")
        + (f'<p><a href="{kept}">Code, environment, machine and times</a></p>' if records else "")
        + f"<details><summary>{settings.count('<tr>')} settings</summary>"
        f"<table>{settings}</table></details>"
        f"<p>Read</p><table>{''.join(_read(item, graph) for item in job.inputs)}</table>"
        f"<p>Wrote</p><table>{''.join(_wrote(item, graph) for item in job.outputs)}</table>"
        f"<details><summary>Counted</summary><code>{escape(_counted(job))}</code></details>"
        "</section>"
    )


def _counted(job: Job) -> str:
    """Return the counters, without the excerpts of dropped pages that some hold."""
    kept = {name: value for name, value in job.counters.items() if name != "samples"}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)


def _read(item: Artifact, graph: Graph) -> str:
    source = graph.source_of(item)
    name = escape(item.path)
    if source is not None:
        name = f'<a href="#{anchor(source.path, FILE)}">{name}</a>'
    return _row(name, item)


def _wrote(item: Artifact, graph: Graph) -> str:
    readers = dict.fromkeys(graph.consumers.get(item.key, ()))
    links = ", ".join(f'<a href="#{anchor(name)}">{escape(name)}</a>' for name in readers)
    return _row(escape(item.path), item, f"read by {links}" if links else "", FILE)


def _row(name: str, item: Artifact, more: str = "", kind: str = "") -> str:
    mark = f' id="{anchor(item.path, kind)}"' if kind else ""
    return (
        f'<tr{mark}><td>{name}</td><td class="h">{item.sha256}</td>'
        f"<td>{item.length:,} bytes</td><td>{more}</td></tr>"
    )


def anchor(name: str, kind: str = "") -> str:
    """Return the place of a job on the page, or of a file: a name without ``/``."""
    return escape(kind + name.replace("/", "."), quote=True)
