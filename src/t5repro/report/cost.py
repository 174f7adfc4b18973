"""The cost of a run: time, processor time, memory and machines of every stage.

Times and machines differ between equal runs, so the report does not contain them. They are read
from the records of the jobs and from Snakemake's measurements in ``logs/<run>``, which git does not
keep: where they are missing, memory is unknown, and processor time if an older record lacks it.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.lineage.record import read_records
from t5repro.lineage.store import Folder
from t5repro.progress import aligned
from t5repro.report.templates import render
from t5repro.runs.record_facts import machine_text
from t5repro.stages import STAGES

UNKNOWN = "–"


@dataclass(frozen=True)
class JobCost:
    """The cost of one job; None for what was not measured.

    Attributes:
        rule: rule of the job.
        seconds: from its start to its end.
        cpu_seconds: processor time, the larger one of record and measurement. The record lacks
            children that outlive the job, as of Spark; the measurement, which Snakemake takes
            every half minute, what came after the last one.
        megabytes: largest resident set.
        machine: processor, number of processors and system.
    """

    rule: str
    seconds: float | None
    cpu_seconds: float | None
    megabytes: float | None
    machine: str


@dataclass(frozen=True)
class StageCost:
    """The cost of a stage: sums over its jobs, and the largest memory of one; as text."""

    rule: str
    jobs: int
    seconds: str
    cpu_seconds: str
    megabytes: str
    machines: str


def job_costs(run: Path) -> list[JobCost]:
    """Return the cost of every recorded job of a run.

    Args:
        run: folder of the run, ``results/<run>`` below the checkout.

    Raises:
        ArtifactError: the folder is not in ``results/``, or has no record.
    """
    folder = run.resolve()
    if folder.parent.name != "results":
        raise ArtifactError(
            f"{run} is no folder of a run; allowed: results/<run> of a checkout, such as "
            "results/demo"
        )
    root, name = folder.parents[1], folder.name
    costs = []
    for job, record in sorted(read_records(Folder(root)).items()):
        names = job.split("/")  # run, rule, node
        if names[0] == name and len(names) > 1:
            measured = _measured(root / "logs" / f"{job}.tsv")
            recorded = record.end.cpu_seconds if record.end else None
            costs.append(
                JobCost(
                    rule=names[1],
                    seconds=record.end.seconds if record.end else None,
                    cpu_seconds=_largest(recorded, _number(measured.get("cpu_time"))),
                    megabytes=_number(measured.get("max_rss")),
                    machine=machine_text(record.start.machine),
                )
            )
    if not costs:
        raise ArtifactError(f"{run} has no records in {root / 'records' / name}; run it first")
    return costs


def stage_costs(costs: Sequence[JobCost]) -> list[StageCost]:
    """Return the cost of each stage in the order of the chain, then the total."""
    rules = [stage.name for stage in STAGES]
    order = sorted({cost.rule for cost in costs}, key=lambda rule: (_position(rule, rules), rule))
    stages = [_stage_cost(rule, [cost for cost in costs if cost.rule == rule]) for rule in order]
    return [*stages, _stage_cost("total", costs)]


def _position(rule: str, rules: Sequence[str]) -> int:
    return rules.index(rule) if rule in rules else len(rules)


def _stage_cost(rule: str, costs: Sequence[JobCost]) -> StageCost:
    megabytes = [cost.megabytes for cost in costs if cost.megabytes is not None]
    return StageCost(
        rule=rule,
        jobs=len(costs),
        seconds=_sum([cost.seconds for cost in costs]),
        cpu_seconds=_sum([cost.cpu_seconds for cost in costs]),
        megabytes=f"{max(megabytes):,.0f}" if megabytes else UNKNOWN,
        machines="; ".join(sorted({cost.machine for cost in costs})),
    )


def _largest(*numbers: float | None) -> float | None:
    """Return the largest of the known numbers."""
    return max((number for number in numbers if number is not None), default=None)


def _sum(numbers: Sequence[float | None]) -> str:
    """Return a sum; unknown if one of its terms is."""
    known_numbers = [number for number in numbers if number is not None]
    complete = len(known_numbers) == len(numbers)
    return f"{sum(known_numbers):,.1f}" if complete else UNKNOWN


def _measured(path: Path) -> dict[str, str]:
    """Return Snakemake's measurements of a job; empty if there are none."""
    if not path.is_file():
        return {}
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    return rows[0] if rows else {}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):  # Snakemake writes NA and - for short jobs
        return None
    return number if math.isfinite(number) else None


def cost_text(stages: Sequence[StageCost]) -> str:
    """Return the costs as a table of plain text."""
    head = ("stage", "jobs", "seconds", "CPU seconds", "peak MB", "machine")
    rows = [head, *(tuple(map(str, vars(stage).values())) for stage in stages)]
    return aligned(rows, left=(0, 5))


def cost_page(run: str, stages: Sequence[StageCost]) -> str:
    """Return the costs as a page."""
    return render("cost.html.j2", run=run, stages=stages)
