"""Training losses of a phase: all experiments in one chart, with its legend and its numbers."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from t5repro.errors import ArtifactError
from t5repro.files import sha256_of
from t5repro.report.charts import Series, legend, line_chart
from t5repro.report.experiments import Experiment

NORMALISER_TITLES = {"padded_size": "sum / padded size", "target_tokens": "per target token"}
DIFFERENT_OBJECTIVES = (
    "The experiments have different objectives or masks, so their losses are not comparable: a "
    "lower line can mean an easier objective as well as a better model. Compare the scores instead."
)


@dataclass(frozen=True)
class CurveRow:
    """The numbers of one line; `common` is the loss at the last step that all lines have."""

    name: str
    steps: str
    first: str
    last: str
    lowest: str
    common: str


@dataclass(frozen=True)
class LossCurve:
    """The losses of one phase: chart, legend and numbers; no chart without a step."""

    title: str
    chart: Markup | None = None
    legend: Markup | None = None
    rows: tuple[CurveRow, ...] = ()
    common_step: str = ""
    note: str = ""


@dataclass
class _Line:
    """The arms of one experiment that have the same history."""

    experiment: Experiment
    points: list[tuple[float, float]]
    arms: list[str]


def loss_curve(
    phase: str,
    title: str,
    experiments: Sequence[Experiment],
    histories: Mapping[str, Path],
    *,
    normalisers: Sequence[str],
    objectives: Sequence[str] = (),
) -> LossCurve:
    """Draw the losses of one phase of all experiments; equal histories share a line.

    Args:
        phase: ``pretrain`` or ``finetune``.
        title: title of the phase.
        experiments: the experiments; the arms of one share colour and legend.
        histories: arm -> ``history.csv``.
        normalisers: `loss_normaliser` of each experiment.
        objectives: objective and mask of each experiment.
    """
    lines = _lines(experiments, histories)
    if not lines:
        return LossCurve(title)
    series = [
        Series(" = ".join(line.arms), tuple(line.points), line.experiment.style) for line in lines
    ]
    # Runs of different length are compared at the last step that all of them reached.
    common_step = min(line.points[-1][0] for line in series)
    rows = tuple(_row(line, common_step) for line in series)
    units = dict.fromkeys(NORMALISER_TITLES[name] for name in normalisers)
    chart = line_chart(
        f"loss-{phase}",
        series,
        title=f"Training loss, {title.lower()}",
        description="; ".join(
            f"{row.name}: from {row.first} to {row.last} in {row.steps} steps" for row in rows
        ),
        x_label="step",
        y_label=f"training loss ({' or '.join(units)})",
    )
    return LossCurve(
        title=title,
        chart=chart,
        legend=legend(_legend_series(series, lines)),
        rows=rows,
        common_step=f"{common_step:,.0f}",
        note=DIFFERENT_OBJECTIVES if len(set(objectives)) > 1 else "",
    )


def _lines(experiments: Sequence[Experiment], histories: Mapping[str, Path]) -> list[_Line]:
    lines: dict[str, _Line] = {}
    for experiment in experiments:
        for arm in experiment.arms:
            if points := read_history(histories[arm]):
                # Experiments that share a phase's node have the same file content.
                digest = sha256_of(histories[arm])
                lines.setdefault(digest, _Line(experiment, points, [])).arms.append(arm)
    return list(lines.values())


def _row(line: Series, common_step: float) -> CurveRow:
    losses = [loss for _, loss in line.points]
    return CurveRow(
        name=line.name,
        steps=f"{line.points[-1][0]:,.0f}",
        first=f"{losses[0]:.3f}",
        last=f"{losses[-1]:.3f}",
        lowest=f"{min(losses):.3f}",
        common=f"{[loss for step, loss in line.points if step <= common_step][-1]:.3f}",
    )


def _legend_series(series: Sequence[Series], lines: Iterable[_Line]) -> list[Series]:
    """Return the entries of the legend: a single one for an experiment of several seeds."""
    entries: dict[str, Series] = {}
    for entry, line in zip(series, lines, strict=True):
        name = entry.name
        if len(line.arms) == 1 and line.experiment.has_seeds:
            name = f"{line.experiment.name}, seeds {', '.join(map(str, line.experiment.seeds))}"
        entries.setdefault(name, replace(entry, name=name))
    return list(entries.values())


def read_history(path: Path) -> list[tuple[float, float]]:
    """Return (step, loss) of a training history, without non-finite losses.

    Raises:
        ArtifactError: the file is missing, has other columns, or has a line without numbers.
    """
    try:
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; run the stage that trains") from error
    if not {"step", "loss"} <= set(reader.fieldnames or ()):
        raise ArtifactError(f"{path} has columns {reader.fieldnames}; it needs step and loss")
    points = []
    for number, row in enumerate(reader, start=2):
        try:
            step, loss = float(row["step"]), float(row["loss"])
        except (TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} line {number} is not a step and a loss ({error}); rerun the stage that "
                "trains"
            ) from error
        if math.isfinite(loss):
            points.append((step, loss))
    return points
