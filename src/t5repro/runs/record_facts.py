"""Time and machine of a row, from the records of its jobs.

Records are ten times larger than manifests and are read only if somebody asks for their facts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from t5repro.errors import ArtifactError
from t5repro.lineage.record import Machine, Record, record_in, record_of_job
from t5repro.lineage.store import Store
from t5repro.runs.row import RECORDED, Row
from t5repro.runs.terms import Value

Facts = Mapping[str, Value]


@dataclass(frozen=True)
class JobTime:
    """Time and place of a job, from its record; None for an unknown value."""

    end: str | None
    seconds: float | None
    commit: str | None
    machine: str


def facts_of_rows(store: Store, rows: Iterable[Row]) -> dict[str, dict[str, Value]]:
    """Return last job -> facts by the names in `RECORDED`, without those that nothing knows."""
    times: dict[str, JobTime | None] = {}
    answer: dict[str, dict[str, Value]] = {}
    for row in rows:
        for job in row.jobs:
            if job not in times:
                times[job] = _time_of(store, job)
        facts = _facts([times[job] for job in row.jobs], times.get(row.job))
        answer[row.job] = {name: value for name, value in facts.items() if value is not None}
    return answer


def _facts(jobs: list[JobTime | None], last: JobTime | None) -> dict[str, Value]:
    seconds = [job.seconds for job in jobs if job is not None and job.seconds is not None]
    # A sum without one of its terms would be a smaller number and not an unknown one.
    total = sum(seconds) if seconds and len(seconds) == len(jobs) else None
    facts = (last.end, total, last.commit, last.machine) if last else (None, total, None, None)
    return dict(zip(RECORDED, facts, strict=True))


def _time_of(store: Store, job: str) -> JobTime | None:
    try:
        record: Record = record_in(store, record_of_job(job))
    except (ArtifactError, OSError):  # t5repro verify names it
        return None
    return JobTime(
        end=record.end.at if record.end else None,
        seconds=record.end.seconds if record.end else None,
        commit=record.start.commit,
        machine=machine_text(record.start.machine),
    )


def machine_text(machine: Machine) -> str:
    """Return processor, number of processors and system in one line."""
    return f"{machine.processors} × {machine.processor}, {machine.system}"
