"""Render a lineage graph: as an SVG drawing of a trace, or as an HTML page with links.

Both are one file without script or network, and their bytes are a function of the graph. The
drawing puts jobs into columns by their distance from the raw files; more than `MAX_BOXES` jobs of
one rule in one column share a box.
"""

import json
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePosixPath

from t5repro.lineage.graph import DATA, Artifact, Graph, Job
from t5repro.lineage.trace import Trace, leaves_of, record_facts
from t5repro.report.content_security import content_security_policy

MAX_BOXES = 4
BOX_WIDTH, BOX_HEIGHT, COLUMN_WIDTH, ROW_HEIGHT, MARGIN = 190, 48, 240, 66, 20
TITLE_HEIGHT = 18
DETAIL_CHARS = 30
RAW_FILES = "raw files"
FILE_PREFIX = "file:"  # of an anchor, so that a file and a job never share one


@dataclass(frozen=True)
class Box:
    """One box of the drawing: a job, or several jobs of one rule."""

    title: str
    detail: str
    column: int
    jobs: tuple[str, ...]


def to_svg(trace: Trace, graph: Graph) -> str:
    """Return a trace as an SVG drawing, raw files on the left."""
    upstream = {
        job.name: [
            source.name
            for artifact in trace.inputs[job.name]
            if (source := graph.job_of(artifact)) is not None and source.name != job.name
        ]
        for job in trace.jobs
    }
    boxes = _boxes(trace.jobs, _columns(trace.jobs, upstream), len(trace.raw))
    corners = _corners(boxes)
    box_of_job = {name: box for box in boxes for name in box.jobs}
    arrows = sorted(
        {
            (boxes.index(box_of_job[source]), boxes.index(box_of_job[name]))
            for name, sources in upstream.items()
            for source in sources
            if box_of_job[source] is not box_of_job[name]
        }
    )
    columns = max((box.column for box in boxes), default=0) + 1
    width = MARGIN * 2 + columns * COLUMN_WIDTH if boxes else COLUMN_WIDTH
    height = MARGIN * 2 + max((y for _, y in corners), default=0) + BOX_HEIGHT + 24
    title = escape(trace.artifact.path + (f"#{trace.part}" if trace.part else ""))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif">',
        f"<title>{title}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{MARGIN}" y="{MARGIN}" font-size="13" fill="#222">{title}</text>',
    ]
    parts += [_arrow_svg(corners[start], corners[end]) for start, end in arrows]
    parts += [_box_svg(box, corner) for box, corner in zip(boxes, corners, strict=True)]
    return "\n".join([*parts, "</svg>", ""])


def _columns(jobs: Sequence[Job], upstream: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return job -> column: one more than the rightmost job that it depends on."""
    columns: dict[str, int] = {}
    for job in jobs:  # in topological order
        columns[job.name] = 1 + max((columns[name] for name in upstream[job.name]), default=-1)
    return columns


def _boxes(jobs: Sequence[Job], columns: Mapping[str, int], raw_files: int) -> list[Box]:
    groups: dict[tuple[int, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((columns[job.name], job.rule), []).append(job)
    boxes = []
    for (column, rule), members in sorted(groups.items()):
        names = tuple(job.name for job in members)
        if rule == DATA:
            boxes.append(Box(f"{raw_files} {RAW_FILES}", "data", column, names))
        elif len(members) > MAX_BOXES:
            detail = ", ".join(PurePosixPath(name).name for name in names)
            boxes.append(Box(f"{rule} × {len(members)}", detail, column, names))
        else:
            boxes += [Box(rule, name.split("/", 2)[-1], column, (name,)) for name in names]
    return boxes


def _corners(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    """Return the upper left corner (x, y) of each box; a column is filled from the top."""
    heights: dict[int, int] = {}
    corners = []
    for box in boxes:
        row = heights.get(box.column, 0)
        heights[box.column] = row + 1
        x = MARGIN + box.column * COLUMN_WIDTH
        corners.append((x, MARGIN + TITLE_HEIGHT + row * ROW_HEIGHT))
    return corners


def _arrow_svg(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT // 2
    bend = (x2 - x1) // 2  # control points halfway, so that the curve leaves boxes horizontally
    return (
        f'<path d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}" '
        'fill="none" stroke="#8a8f98" stroke-width="1.3"/>'
    )


def _box_svg(box: Box, corner: tuple[int, int]) -> str:
    x, y = corner
    is_long = len(box.detail) > DETAIL_CHARS
    detail = box.detail[: DETAIL_CHARS - 1] + "…" if is_long else box.detail
    fill = "#eef3ea" if box.title.endswith(RAW_FILES) else "#eef2f8"
    return (
        f"<g><title>{escape(', '.join(box.jobs))}</title>"
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


def to_html(graph: Graph, title: str, *, start: str = "", records: str = "") -> str:
    """Return all jobs as a page: inputs link to their producers, outputs to their readers.

    Args:
        graph: jobs to show.
        title: heading of the page.
        start: name of the job to link to at the top, such as the job of the scores.
        records: link to the folder of records. Records of equal runs differ, so a page that must
            be equal for equal runs links to them instead of including them; empty for no links.
    """
    jobs = list(reversed(graph.ordered()))  # a reader starts at the scores
    rows = "".join(
        f'<tr><td><a href="#{anchor(job.name)}">{escape(job.name)}</a></td>'
        f"<td>{len(job.inputs)} in, {len(job.outputs) - 1} out</td></tr>"
        for job in jobs
    )
    lead = ""
    if start in graph.jobs:
        lead = f'<p>Start at <a href="#{anchor(start)}">{escape(start)}</a>.</p>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{escape(content_security_policy(STYLE), quote=True)}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>Each input of a job links to the job that wrote it, down to "
        "the raw files; each output links to the jobs that read it. "
        f"Hashes are SHA-256.</p>{lead}<table>{rows}</table>"
        + "".join(_job_section(job, graph, records) for job in jobs)
        + "</body></html>\n"
    )


def _job_section(job: Job, graph: Graph, records: str) -> str:
    settings = _rows((name, value) for name, value in leaves_of(job.settings) if name)
    facts = _rows(record_facts(job.record).items()) if job.record else ""
    record_link = escape(f"{records}/{urllib.parse.quote(job.name)}.json", quote=True)
    return (
        f'<section id="{anchor(job.name)}"><h2>{escape(job.name)}</h2><p>Rule '
        f"<code>{escape(job.rule)}</code></p>"
        + (f"<table>{facts}</table>" if facts else "")
        + (
            f'<p><a href="{record_link}">Code, environment, machine and times</a></p>'
            if records
            else ""
        )
        + f"<details><summary>{settings.count('<tr>')} settings</summary>"
        f"<table>{settings}</table></details>"
        f"<p>Inputs</p><table>{''.join(_input_row(file, graph) for file in job.inputs)}</table>"
        f"<p>Outputs</p><table>{''.join(_output_row(file, graph) for file in job.outputs)}</table>"
        f"<details><summary>Counters</summary><code>{escape(_counters(job))}</code></details>"
        "</section>"
    )


def _rows(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in pairs
    )


def _counters(job: Job) -> str:
    # Samples are excerpts of dropped pages: long, and not needed to follow the lineage.
    counters = {name: value for name, value in job.counters.items() if name != "samples"}
    return json.dumps(counters, sort_keys=True, ensure_ascii=False)


def _input_row(artifact: Artifact, graph: Graph) -> str:
    source = graph.source_of(artifact)
    name = escape(artifact.path)
    if source is not None:
        name = f'<a href="#{anchor(source.path, FILE_PREFIX)}">{name}</a>'
    return _file_row(name, artifact)


def _output_row(artifact: Artifact, graph: Graph) -> str:
    readers = dict.fromkeys(graph.consumers.get(artifact.key, ()))
    links = ", ".join(f'<a href="#{anchor(name)}">{escape(name)}</a>' for name in readers)
    anchor_id = anchor(artifact.path, FILE_PREFIX)
    note = f"read by {links}" if links else ""
    return _file_row(escape(artifact.path), artifact, note, anchor_id)


def _file_row(name: str, artifact: Artifact, note: str = "", anchor_id: str = "") -> str:
    attribute = f' id="{anchor_id}"' if anchor_id else ""
    return (
        f'<tr{attribute}><td>{name}</td><td class="h">{escape(artifact.sha256)}</td>'
        f"<td>{artifact.length:,} bytes</td><td>{note}</td></tr>"
    )


def anchor(name: str, prefix: str = "") -> str:
    """Return the HTML id of a job or a file: its name with dots for slashes."""
    return escape(prefix + name.replace("/", "."), quote=True)
