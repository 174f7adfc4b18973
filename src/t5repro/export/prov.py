"""W3C PROV: artifacts are entities, jobs are activities, their code is the plan they followed.

Written as PROV-JSON, or as PROV-N for people to read.
"""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from prov.identifier import QualifiedName
from prov.model import PROV, ProvDocument, ProvEntity

from t5repro import __version__
from t5repro.export.facts import NAMESPACE, Run, code_hash, compact, machine_of, start_of
from t5repro.lineage.graph import Artifact, Job


def document(run: Run) -> ProvDocument:
    """Return the PROV document of a run."""
    made = ProvDocument()
    space = made.add_namespace("t5repro", NAMESPACE)
    agent = made.agent(
        space[f"software/t5repro/{__version__}"],
        {PROV["type"]: PROV["SoftwareAgent"], PROV["label"]: f"t5repro {__version__}"},
    )
    entities = {item.key: _entity(made, space, item) for item in run.artifacts()}
    plans: dict[str, ProvEntity] = {}
    for job in run.jobs:
        activity = made.activity(space[f"job/{quote(job.name)}"], *_times(job), _about(space, job))
        for item in _once(job.inputs):
            made.used(activity, entities[item.key])
        for item in _once(job.outputs):
            made.wasGeneratedBy(entities[item.key], activity)
        made.wasAssociatedWith(activity, agent, _plan(made, space, job, plans))
    return made


def _once(items: tuple[Artifact, ...]) -> list[Artifact]:
    return list({item.key: item for item in items}.values())


def _entity(made: ProvDocument, space: Any, item: Artifact) -> ProvEntity:
    name: QualifiedName = space[f"artifact/{quote(item.path)}@{item.sha256}"]
    return made.entity(
        name,
        {
            PROV["label"]: item.path,
            PROV["location"]: item.path,
            space["sha256"]: item.sha256,
            space["bytes"]: item.length,
        },
    )


def _plan(made: ProvDocument, space: Any, job: Job, plans: dict[str, ProvEntity]) -> Any:
    """Return the code of a job as an entity, made once for equal code; None without a record."""
    digest = code_hash(job)
    if not digest:
        return None
    if digest not in plans:
        plans[digest] = made.entity(
            space[f"code/{digest}"],
            {
                PROV["type"]: PROV["Plan"],
                PROV["label"]: f"source files of {job.rule}",
                space["files"]: compact(start_of(job)["code"]),
            },
        )
    return plans[digest]


def _times(job: Job) -> tuple[datetime | None, datetime | None]:
    start, end = start_of(job).get("at"), (job.record.get("end") or {}).get("at")
    return (
        datetime.fromisoformat(start) if start else None,
        datetime.fromisoformat(end) if end else None,
    )


def _about(space: Any, job: Job) -> dict[Any, Any]:
    start = start_of(job)
    known = {
        "commit": start.get("commit"),
        "uncommitted": start.get("uncommitted"),
        "machine": compact(machine_of(job)) if machine_of(job) else None,
        "seeds": compact(start["seeds"]) if start.get("seeds") else None,
    }
    return {
        PROV["label"]: job.name,
        PROV["type"]: space[f"rule/{job.rule}"],
        space["settings"]: compact(job.settings),
        **{space[name]: value for name, value in known.items() if value is not None},
    }
