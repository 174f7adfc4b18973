"""The picture of a run: a box for each stage as inline SVG, raw files at the top.

A box links to its stage on the page. Its colour and its words say how closely the stage repeats,
or how it compares with another run. Colours are classes of `report.css`, so that they follow dark
mode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from markupsafe import Markup

from t5repro.config.reproducibility import EXACT as REPEATS_EXACTLY
from t5repro.lineage.graph import Graph
from t5repro.lineage.tolerance import reproducibility_of
from t5repro.stages import STAGES

State = Literal["exact", "tolerance", "altered", "unknown"]
STATES: Final[dict[State, str]] = {  # from the best to the worst
    "exact": "exact",
    "tolerance": "within tolerance",
    "unknown": "not compared",
    "altered": "altered",
}
STAGE_PREFIX = "stage:"  # of an anchor, so that a stage and a job never share one
BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, COLUMN_WIDTH, MARGIN = 210, 46, 68, 250, 12
BULGE, MAX_BULGE = 11, 120  # of a connection that passes stages, per row
LEFT = MARGIN + MAX_BULGE * 3 // 4  # a curve reaches three quarters of its control points


def state_of_jobs(graph: Graph, compared: Mapping[str, State]) -> dict[str, State]:
    """Return job -> its state.

    A job is altered if one of its inputs differs from the output of the job before. Otherwise its
    state comes from a comparison; without one it says how closely the job repeats.
    """
    broken = {name for name, _ in graph.broken}
    states: dict[str, State] = {}
    for name, job in graph.jobs.items():
        if name in broken:
            states[name] = "altered"
        elif compared:
            states[name] = compared.get(name, "unknown")
        else:
            is_exact = reproducibility_of(job) == REPEATS_EXACTLY
            states[name] = "exact" if is_exact else "tolerance"
    return states


def state_of_stage(states: Sequence[State]) -> State:
    """Return the worst state of some jobs."""
    return max(states, key=list(STATES).index)


@dataclass(frozen=True)
class _Box:
    """A stage in the picture, by its upper left corner."""

    rule: str
    jobs: int
    state: State
    row: int
    column: int

    @property
    def x(self) -> int:
        return LEFT + self.column * COLUMN_WIDTH

    @property
    def y(self) -> int:
        return MARGIN + self.row * ROW_HEIGHT


def stage_graph(graph: Graph, states: Mapping[str, State]) -> Markup:
    """Return the picture of all stages of a graph.

    Args:
        graph: jobs; all jobs of a rule share a box.
        states: job -> its state.
    """
    upstream = _upstream(graph)
    boxes = _boxes(graph, states, upstream)
    connections = [(boxes[source], boxes[rule]) for rule in boxes for source in upstream[rule]]
    width = max((box.x for box in boxes.values()), default=0) + BOX_WIDTH + MARGIN
    height = max((box.y for box in boxes.values()), default=0) + BOX_HEIGHT + MARGIN
    return Markup("").join(
        [
            Markup(
                '<svg class="stages" viewBox="0 0 {} {}" width="{}" height="{}" '
                'role="group" aria-label="Stages of the run">'
            ).format(width, height, width, height),
            *(_connection(source, target) for source, target in connections),
            *map(_box, boxes.values()),
            Markup("</svg>"),
        ]
    )


def _upstream(graph: Graph) -> dict[str, list[str]]:
    """Return rule -> the rules before it that wrote its inputs, in the order of the stages.

    Rules without a stage come last. Two runs, or two jobs of a rule, can be a cycle of rules: a
    pre-training that starts from fine-tuned weights. A rule that comes later is left out, so that
    every connection leads down.
    """
    sources: dict[str, set[str]] = {}
    for job in graph.ordered():
        written_by = {source.rule for source in map(graph.job_of, job.inputs) if source}
        sources.setdefault(job.rule, set()).update(written_by)
    order = [stage.name for stage in STAGES if stage.name in sources]
    order += [rule for rule in sources if rule not in order]
    return {
        rule: sorted(sources[rule].intersection(order[:position]))
        for position, rule in enumerate(order)
    }


def _boxes(
    graph: Graph, states: Mapping[str, State], upstream: Mapping[str, Sequence[str]]
) -> dict[str, _Box]:
    """Return rule -> its box: one row below its lowest input, stages of a row side by side."""
    rows: dict[str, int] = {}
    for rule, sources in upstream.items():
        rows[rule] = 1 + max((rows[source] for source in sources), default=-1)
    columns: dict[int, int] = {}
    boxes: dict[str, _Box] = {}
    for rule in upstream:
        column = columns.get(rows[rule], 0)
        # Stages of equal depth are side by side.
        columns[rows[rule]] = column + 1
        members = [name for name, job in graph.jobs.items() if job.rule == rule]
        state = state_of_stage([states[name] for name in members])
        boxes[rule] = _Box(rule, len(members), state, rows[rule], column)
    return boxes


def _connection(source: _Box, target: _Box) -> Markup:
    middle = BOX_WIDTH // 2
    x1, y1 = source.x + middle, source.y + BOX_HEIGHT
    if source.column == target.column and target.row - source.row > 1:
        # Past the boxes between the two, on their left.
        left_side, bulge = source.x, min(BULGE * (target.row - source.row), MAX_BULGE)
        y1, y2 = source.y + BOX_HEIGHT // 2, target.y + BOX_HEIGHT // 2
        path = (
            f"M{left_side} {y1} C{left_side - bulge} {y1} {left_side - bulge} {y2} {left_side} {y2}"
        )
    elif source.column > target.column:
        # Down its own column, then into the right side of the other box.
        right, y2 = target.x + BOX_WIDTH, target.y + BOX_HEIGHT // 2
        path = f"M{x1} {y1} V{y2 - 16} Q{x1} {y2} {x1 - 16} {y2} H{right}"
    else:
        x2, y2 = target.x + middle, target.y
        bend = (y2 - y1) // 2
        path = f"M{x1} {y1} C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"
    return Markup('<path class="edge" d="{}"/>').format(path)


def _box(box: _Box) -> Markup:
    jobs = f"{box.jobs} job{'' if box.jobs == 1 else 's'}"
    return Markup(
        '<a href="#{}" class="{}"><rect x="{}" y="{}" width="{}" height="{}" rx="5"/>'
        '<text x="{}" y="{}" class="name">{}</text><text x="{}" y="{}">{} · {}</text></a>'
    ).format(
        STAGE_PREFIX + box.rule,
        box.state,
        box.x,
        box.y,
        BOX_WIDTH,
        BOX_HEIGHT,
        box.x + 12,
        box.y + 20,
        box.rule,
        box.x + 12,
        box.y + 37,
        jobs,
        STATES[box.state],
    )
