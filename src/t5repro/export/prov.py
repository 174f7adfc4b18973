"""W3C PROV: artifacts are entities, jobs are activities, their code is a plan.

Written as PROV-JSON, or as the human-readable PROV-N.
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
    prov_document = ProvDocument()
    space = prov_document.add_namespace("t5repro", NAMESPACE)
    agent = prov_document.agent(
        space[f"software/t5repro/{__version__}"],
        {PROV["type"]: PROV["SoftwareAgent"], PROV["label"]: f"t5repro {__version__}"},
    )
    entities = {
        artifact.key: _entity(prov_document, space, artifact) for artifact in run.artifacts()
    }
    code_entities: dict[str, ProvEntity] = {}
    for job in run.jobs:
        activity = prov_document.activity(
            space[f"job/{quote(job.name)}"], *_times(job), _about(space, job)
        )
        for artifact in _once(job.inputs):
            prov_document.used(activity, entities[artifact.key])
        for artifact in _once(job.outputs):
            prov_document.wasGeneratedBy(entities[artifact.key], activity)
        prov_document.wasAssociatedWith(
            activity, agent, _code(prov_document, space, job, code_entities)
        )
    return prov_document


def _once(artifacts: tuple[Artifact, ...]) -> list[Artifact]:
    return list({artifact.key: artifact for artifact in artifacts}.values())


def _entity(prov_document: ProvDocument, space: Any, artifact: Artifact) -> ProvEntity:
    name: QualifiedName = space[f"artifact/{quote(artifact.path)}@{artifact.sha256}"]
    return prov_document.entity(
        name,
        {
            PROV["label"]: artifact.path,
            PROV["location"]: artifact.path,
            space["sha256"]: artifact.sha256,
            space["bytes"]: artifact.length,
        },
    )


def _code(
    prov_document: ProvDocument, space: Any, job: Job, code_entities: dict[str, ProvEntity]
) -> Any:
    """Return the code of a job as an entity, one for equal code; None without a record."""
    digest = code_hash(job)
    if not digest:
        return None
    if digest not in code_entities:
        code_entities[digest] = prov_document.entity(
            space[f"code/{digest}"],
            {
                PROV["type"]: PROV["Plan"],
                PROV["label"]: f"source files of {job.rule}",
                space["files"]: compact(start_of(job)["code"]),
            },
        )
    return code_entities[digest]


def _times(job: Job) -> tuple[datetime | None, datetime | None]:
    start = job.record.start.at if job.record else None
    end = job.record.end.at if job.record and job.record.end else None
    return (
        datetime.fromisoformat(start) if start else None,
        datetime.fromisoformat(end) if end else None,
    )


def _about(space: Any, job: Job) -> dict[Any, Any]:
    start_record = start_of(job)
    facts = {
        "commit": start_record.get("commit"),
        "uncommitted": start_record.get("uncommitted"),
        "machine": compact(machine_of(job)) if machine_of(job) else None,
        "seeds": compact(start_record["seeds"]) if start_record.get("seeds") else None,
    }
    return {
        PROV["label"]: job.name,
        PROV["type"]: space[f"rule/{job.rule}"],
        space["settings"]: compact(job.settings),
        **{space[name]: value for name, value in facts.items() if value is not None},
    }
