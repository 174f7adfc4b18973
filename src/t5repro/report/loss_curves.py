"""Losses of a phase: all experiments in one chart, with its legend and its numbers."""

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
from t5repro.report.titles import UNDEFINED

NORMALISER_TITLES = {"padded_size": "sum / padded size", "target_tokens": "per target token"}
DIFFERENT_OBJECTIVES = (
    "The experiments have different objectives or masks, so their losses are not comparable: a "
    "lower line can mean an easier objective as well as a better model. Compare the scores instead."
)


PETA = 1e15
OPERATIONS = "operations of training (10^15 FLOP)"
HELD_OUT = (
    "Measured without dropout and z-loss on documents of the validation split, which no step is "
    "trained on; the same rows, corrupted in the same way, at every measurement."
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
    x_label: str = "step"
    common_step: str = ""
    note: str = ""


@dataclass
class _Line:
    """The arms, or their groups of tasks, that have the same history, and their experiments."""

    points: list[tuple[float, float]]
    arms: list[str]
    experiments: list[Experiment]

    @property
    def experiment(self) -> Experiment:
        """The first one."""
        return self.experiments[0]


def training_curve(
    phase: str,
    title: str,
    experiments: Sequence[Experiment],
    histories: Mapping[str, Mapping[str, Path]],
    *,
    normalisers: Sequence[str],
    objectives: Sequence[str] = (),
) -> LossCurve:
    """Draw the training losses of one phase of all experiments; equal histories share a line.

    Args:
        phase: ``pretrain`` or ``finetune``.
        title: title of the phase.
        experiments: the experiments; the arms of one share colour and legend.
        histories: arm -> name of its line -> ``history.csv``.
        normalisers: `loss_normaliser` of each experiment.
        objectives: objective and mask of each experiment.
    """
    units = dict.fromkeys(NORMALISER_TITLES[name] for name in normalisers)
    return _curve(
        f"loss-{phase}",
        title,
        _lines(experiments, histories, "loss"),
        y_label=f"training loss ({' or '.join(units)})",
        note=_note(objectives),
    )


def validation_curve(
    experiments: Sequence[Experiment],
    histories: Mapping[str, Mapping[str, Path]],
    *,
    objectives: Sequence[str],
) -> LossCurve | None:
    """Draw the losses on the validation split of the corpus; None if none was measured.

    Args:
        experiments: as of `training_curve`.
        histories: arm -> name of its line -> ``history.csv`` of its pre-training.
        objectives: objective and mask of each experiment.
    """
    lines = _lines(experiments, histories, "validation_loss")
    if not lines:
        return None
    perplexities = ", ".join(
        f"{' = '.join(line.arms)} {math.exp(line.points[-1][1]):,.1f}" for line in lines
    )
    return _curve(
        "loss-validation",
        "Pre-training, held-out text",
        lines,
        y_label="cross-entropy of a target token (nats)",
        note=f"{HELD_OUT} Perplexity at the last step: {perplexities}. {_note(objectives)}".strip(),
    )


def operations_curve(
    experiments: Sequence[Experiment],
    histories: Mapping[str, Mapping[str, Path]],
    *,
    objectives: Sequence[str],
    operations: Sequence[int],
    earlier_operations: Sequence[int],
) -> LossCurve | None:
    """Draw `validation_curve` over the operations of training instead of its steps.

    Args:
        experiments: as of `training_curve`.
        histories: as of `validation_curve`.
        objectives: objective and mask of each experiment.
        operations: floating-point operations of a step of each experiment.
        earlier_operations: of the earlier phases of its pre-training.
    """
    names = (entry.name for entry in experiments)
    counted = zip(earlier_operations, operations, strict=True)
    operations_of = dict(zip(names, counted, strict=True))
    lines = _lines(experiments, histories, "validation_loss")
    for line in lines:
        # Steps become operations: models of different size meet on one axis.
        start, scale = (number / PETA for number in operations_of[line.experiment.name])
        line.points = [(start + step * scale, loss) for step, loss in line.points]
    if not lines:
        return None
    return _curve(
        "loss-operations",
        "Pre-training, held-out text over operations",
        lines,
        x_label=OPERATIONS,
        y_label="cross-entropy of a target token (nats)",
        note=f"Models of different size compare at equal operations. {_note(objectives)}".strip(),
    )


def _note(objectives: Sequence[str]) -> str:
    return DIFFERENT_OBJECTIVES if len(set(objectives)) > 1 else ""


def _curve(
    name: str, title: str, lines: Sequence[_Line], *, y_label: str, note: str, x_label: str = "step"
) -> LossCurve:
    if not lines:
        return LossCurve(title)
    series = [
        Series(" = ".join(line.arms), tuple(line.points), line.experiment.style) for line in lines
    ]
    # Runs of different length are compared at the last step that all of them reached.
    common_step = min(line.points[-1][0] for line in series)
    rows = tuple(_row(line, common_step) for line in series)
    chart = line_chart(
        name,
        series,
        title=f"Loss, {title.lower()}",
        description="; ".join(
            f"{row.name}: from {row.first} to {row.last} at {x_label} {row.steps}" for row in rows
        ),
        x_label=x_label,
        y_label=y_label,
    )
    return LossCurve(
        title=title,
        chart=chart,
        legend=legend(_legend_series(series, lines)),
        rows=rows,
        x_label=x_label,
        common_step=_number(common_step),
        note=note,
    )


def _lines(
    experiments: Sequence[Experiment], histories: Mapping[str, Mapping[str, Path]], column: str
) -> list[_Line]:
    lines: dict[str, _Line] = {}
    for experiment in experiments:
        line_paths = [entry for arm in experiment.arms for entry in histories[arm].items()]
        for name, path in line_paths:
            if points := read_history(path, column):
                # Experiments that share a phase's node have the same file content.
                line = lines.setdefault(sha256_of(path), _Line(points, [], []))
                line.arms.append(name)
                line.experiments.append(experiment)
    return list(lines.values())


def _row(line: Series, common_step: float) -> CurveRow:
    losses = [loss for _, loss in line.points]
    # Losses at equal steps compare; the last ones may not.
    until_common = [loss for step, loss in line.points if step <= common_step]
    return CurveRow(
        name=line.name,
        steps=_number(line.points[-1][0]),
        first=f"{losses[0]:.3f}",
        last=f"{losses[-1]:.3f}",
        lowest=f"{min(losses):.3f}",
        common=f"{until_common[-1]:.3f}" if until_common else UNDEFINED,
    )


def _number(value: float) -> str:
    """Return a step, or operations with three digits."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.3g}"


def _legend_series(series: Sequence[Series], lines: Iterable[_Line]) -> list[Series]:
    """Return the entries of the legend: a single one for experiments of several seeds."""
    entries: dict[str, Series] = {}
    for entry, line in zip(series, lines, strict=True):
        name = entry.name
        names = dict.fromkeys(experiment.name for experiment in line.experiments)
        have_equal_seeds = len({experiment.seeds for experiment in line.experiments}) == 1
        if len(line.arms) == len(names) and have_equal_seeds and line.experiment.has_seeds:
            # The lines share a colour, so one entry names them all.
            name = f"{' = '.join(names)}, seeds {', '.join(map(str, line.experiment.seeds))}"
        entries.setdefault(name, replace(entry, name=name))
    return list(entries.values())


def read_history(path: Path, column: str = "loss") -> list[tuple[float, float]]:
    """Return (step, loss) of a training history, without non-finite losses.

    Args:
        path: a ``history.csv``.
        column: ``loss``, or ``validation_loss``, which some rows or whole histories do not have.

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
            if column != "loss" and not row.get(column):
                continue
            step, loss = float(row["step"]), float(row[column])
        except (TypeError, ValueError) as error:
            raise ArtifactError(
                f"{path} line {number} is not a step and a loss ({error}); rerun the stage that "
                "trains"
            ) from error
        if math.isfinite(loss):
            points.append((step, loss))
    return points
