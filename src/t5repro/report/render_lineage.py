"""Render a lineage graph: as an SVG drawing of a trace, or as an HTML page with links.

Both are one file without script or network, and their bytes are a function of the graph. The
drawing puts jobs into columns by their distance from the raw files; more than `MAX_BOXES` jobs of
one rule in one column share a box. The page opens with the picture of `stage_graph`.
"""

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePosixPath

from t5repro.lineage.graph import DATA, Artifact, Graph, Job
from t5repro.lineage.store import RECORDS
from t5repro.lineage.trace import Trace, leaves_of, record_lines
from t5repro.report.stage_graph import STATES, State, stage_graph, state_of_jobs, state_of_stage
from t5repro.report.templates import render

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
    # A set, because boxes of several jobs would repeat their arrows; sorted, so that equal graphs
    # give equal bytes.
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
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif">',
        f"<title>{title}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{MARGIN}" y="{MARGIN}" font-size="13" fill="#222">{title}</text>',
    ]
    # Arrows first, so that boxes cover their ends.
    elements += [
        _arrow_svg(corners[source_box], corners[target_box]) for source_box, target_box in arrows
    ]
    elements += [_box_svg(box, corner) for box, corner in zip(boxes, corners, strict=True)]
    return "\n".join([*elements, "</svg>", ""])


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
        # A crawl has thousands of cleaning jobs: from here on they share a box.
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
        # A column is the longest path to a job, so every arrow points right.
        x = MARGIN + box.column * COLUMN_WIDTH
        corners.append((x, MARGIN + TITLE_HEIGHT + row * ROW_HEIGHT))
    return corners


def _arrow_svg(source_corner: tuple[int, int], target_corner: tuple[int, int]) -> str:
    x1, y1 = source_corner[0] + BOX_WIDTH, source_corner[1] + BOX_HEIGHT // 2
    x2, y2 = target_corner[0], target_corner[1] + BOX_HEIGHT // 2
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


@dataclass(frozen=True)
class _File:
    """A file of a job: `href` links to its producer's row, or to the raw file itself."""

    name: str
    anchor: str
    href: str
    sha256: str
    length: int
    readers: tuple[str, ...] = ()


Values = tuple[tuple[str, str], ...]  # dotted names of settings, and their JSON text


@dataclass(frozen=True)
class _JobView:
    """A job on the page; its settings are those that other jobs of the stage do not share."""

    name: str
    state: State
    record: str
    facts: Mapping[str, str]
    settings: Values
    inputs: tuple[_File, ...]
    outputs: tuple[_File, ...]
    counters: str


@dataclass(frozen=True)
class _StageView:
    """The jobs of a stage, and the settings that all of them received."""

    state: State
    jobs: tuple[_JobView, ...]
    settings: Values


def to_html(
    graph: Graph,
    title: str,
    *,
    start: str = "",
    root: str = "",
    links: Mapping[str, str] | None = None,
    states: Mapping[str, State] | None = None,
) -> str:
    """Return all jobs as a page: inputs link to their producers, outputs to their readers.

    Args:
        graph: jobs to show.
        title: heading of the page.
        start: name of the job to link to at the top, such as the job of the scores.
        root: link to the checkout. The page then links to records and raw files. Records of equal
            runs differ, so a page that must be equal for equal runs does not include them; empty
            for no links.
        links: words -> link to another page of the report.
        states: job -> state by a comparison; by default how closely the job repeats.
    """
    job_states = state_of_jobs(graph, states or {})
    stages: dict[str, list[Job]] = {}
    for job in reversed(graph.ordered()):  # a reader starts at the scores
        stages.setdefault(job.rule, []).insert(0, job)  # and at the baseline
    return render(
        "lineage.html.j2",
        title=title,
        start=start if start in graph.jobs else "",
        links=links or {},
        picture=stage_graph(graph, job_states),
        legend={state: STATES[state] for state in STATES if state in job_states.values()},
        is_compared=bool(states),
        stages={rule: _stage_view(jobs, graph, root, job_states) for rule, jobs in stages.items()},
        states=STATES,
        anchor=anchor,
    )


def _stage_view(
    jobs: Sequence[Job], graph: Graph, root: str, states: Mapping[str, State]
) -> _StageView:
    values = {job.name: _settings_of(job) for job in jobs}
    # Most settings of a stage are those of all its jobs: the page says them once.
    shared = set.intersection(*map(set, values.values())) if len(jobs) > 1 else set()
    return _StageView(
        state=state_of_stage([states[job.name] for job in jobs]),
        jobs=tuple(
            _job_view(
                job,
                graph,
                root,
                states[job.name],
                tuple(value for value in values[job.name] if value not in shared),
            )
            for job in jobs
        ),
        settings=tuple(value for value in values[jobs[0].name] if value in shared),
    )


def _settings_of(job: Job) -> Values:
    return tuple((name, value) for name, value in leaves_of(job.settings) if name)


def _job_view(job: Job, graph: Graph, root: str, state: State, settings: Values) -> _JobView:
    return _JobView(
        name=job.name,
        state=state,
        # Without a checkout to link to, the page names no record (`root`).
        record=f"{root}/{RECORDS}/{urllib.parse.quote(job.name)}.json" if root else "",
        facts=record_lines(job.record) if job.record else {},
        settings=settings,
        inputs=tuple(_input(file, graph) for file in job.inputs),
        outputs=tuple(
            _output(file, graph, root if job.rule == DATA else "") for file in job.outputs
        ),
        counters=_counters(job),
    )


def _counters(job: Job) -> str:
    # Samples are excerpts of dropped pages: long, and not needed to follow the lineage.
    counters = {name: value for name, value in job.counters.items() if name != "samples"}
    return json.dumps(counters, sort_keys=True, ensure_ascii=False)


def _input(artifact: Artifact, graph: Graph) -> _File:
    source = graph.source_of(artifact)
    href = "" if source is None else f"#{anchor(source.path, FILE_PREFIX)}"
    return _File(artifact.path, "", href, artifact.sha256, artifact.length)


def _output(artifact: Artifact, graph: Graph, root: str) -> _File:
    is_raw = root and not artifact.path.endswith(".json")
    return _File(
        name=artifact.path,
        anchor=anchor(artifact.path, FILE_PREFIX),
        href=f"{root}/{urllib.parse.quote(artifact.path)}" if is_raw else "",
        sha256=artifact.sha256,
        length=artifact.length,
        readers=tuple(dict.fromkeys(graph.consumers.get(artifact.key, ()))),
    )


def anchor(name: str, prefix: str = "") -> str:
    """Return the id of a job or a file: its name with dots for slashes. It is not escaped."""
    return prefix + name.replace("/", ".")
