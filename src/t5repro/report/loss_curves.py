"""The losses of a phase: all experiments in one drawing, its key, and the numbers behind it."""

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
from t5repro.report.experiments import Group

DIVISORS = {"padded_size": "sum / padded size", "target_tokens": "per target token"}
DIFFERENT_KINDS = (
    "The experiments predict different things (their objectives or masks differ), so a lower line "
    "is an easier question or a better model; which of the two, the scores say."
)


@dataclass(frozen=True)
class Curve:
    """The losses of one phase: the drawing, its key, and the numbers behind it."""

    title: str
    chart: Markup | None
    key: Markup | None
    rows: tuple[tuple[str, str, str, str, str, str], ...]
    common_step: str
    note: str


def curve(
    phase: str,
    title: str,
    listed: Sequence[Group],
    histories: Mapping[str, Path],
    *,
    divisors: Sequence[str],
    kinds: Sequence[str] = (),
) -> Curve:
    """Draw the losses of one phase of all experiments; equal histories share a line.

    Args:
        phase: ``pretrain`` or ``finetune``.
        title: what the phase is called.
        listed: the experiments; the arms of one share colour and name in the key.
        histories: arm -> ``history.csv``.
        divisors: what the summed loss is divided by, of each experiment.
        kinds: what is predicted, of each experiment.
    """
    lines: dict[str, tuple[list[str], Group, list[tuple[float, float]]]] = {}
    for group in listed:
        for name in group.arms:
            points = read_history(histories[name])
            if points:
                lines.setdefault(sha256_of(histories[name]), ([], group, points))[0].append(name)
    series = [
        Series(name=" = ".join(names), points=tuple(points), style=group.style)
        for names, group, points in lines.values()
    ]
    if not series:
        return Curve(title=title, chart=None, key=None, rows=(), common_step="", note="")
    common = min(line.points[-1][0] for line in series)
    rows = tuple(
        (
            line.name,
            f"{line.points[-1][0]:,.0f}",
            f"{line.points[0][1]:.3f}",
            f"{line.points[-1][1]:.3f}",
            f"{min(loss for _, loss in line.points):.3f}",
            f"{[loss for step, loss in line.points if step <= common][-1]:.3f}",
        )
        for line in series
    )
    said = "; ".join(
        f"{name}: from {first} to {last} in {steps} steps" for name, steps, first, last, *_ in rows
    )
    chart = line_chart(
        f"loss-{phase}",
        series,
        title=f"Training loss, {title.lower()}",
        description=said,
        x_label="step",
        y_label=f"training loss ({' or '.join(DIVISORS[key] for key in unique(divisors))})",
    )
    return Curve(
        title=title,
        chart=chart,
        key=legend(_named_once(series, lines.values())),
        rows=rows,
        common_step=f"{common:,.0f}",
        note=DIFFERENT_KINDS if len(unique(kinds)) > 1 else "",
    )


def unique(values: Sequence[str]) -> list[str]:
    """Return the values, each once, in their order."""
    return list(dict.fromkeys(values))


def _named_once(
    series: Sequence[Series], lines: Iterable[tuple[list[str], Group, object]]
) -> list[Series]:
    """Return the lines of the key: of an experiment of several seeds a single one."""
    named: dict[str, Series] = {}
    for line, (names, group, _) in zip(series, lines, strict=True):
        alone = len(names) == 1 and group.several
        name = f"{group.name}, seeds {', '.join(map(str, group.seeds))}" if alone else line.name
        named.setdefault(name, replace(line, name=name))
    return list(named.values())


def read_history(path: Path) -> list[tuple[float, float]]:
    """Return (step, loss) from a training history; finite losses only.

    Raises:
        ArtifactError: it is missing or is no history; the line is named.
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
                f"{path} line {number} is no step and loss ({error}); rerun the stage that trains"
            ) from error
        if math.isfinite(loss):
            points.append((step, loss))
    return points
