"""CycloneDX: a bill of materials of the models of a run.

It lists models with their cards, their training data down to the raw files, and the libraries of
the jobs. The CycloneDX library has no class for model cards, so cards are added to its JSON; its
strict validator checks the result.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from t5repro import __version__
from t5repro.errors import LineageError
from t5repro.export import facts
from t5repro.export.facts import Run
from t5repro.files import read_json
from t5repro.lineage.graph import DATA, Artifact, Job
from t5repro.lineage.trace import leaves_of

MODELS = {"pretrain": "self-supervised", "finetune": "supervised"}  # rule -> approach
TRAINED_ON = (DATA, "c4", "tasks")
DATASETS = (*TRAINED_ON, "vocab")
VERSION = SchemaVersion.V1_6
HASH_SHOWN = 12


def document(run: Run) -> dict[str, Any]:
    """Return the bill of materials of a run's models.

    Raises:
        LineageError: the run has no model.
    """
    models = run.of_rule(*MODELS)
    if not models:
        raise LineageError(
            f"{run.name}: no model; a bill of materials is about {' and '.join(MODELS)}"
        )
    run_component = Component(
        name=run.name, type=ComponentType.APPLICATION, bom_ref=f"run/{run.name}"
    )
    components = {job.name: _component(job) for job in run.of_rule(*MODELS, *DATASETS)}
    libraries = [_library(name, versions) for name, versions in facts.libraries_of(run).items()]
    bom = Bom(
        serial_number=UUID(facts.run_uuid(run)),
        components=[*components.values(), *libraries],
        metadata=BomMetaData(
            component=run_component,
            timestamp=_published(run),
            tools=ToolRepository(
                components=[
                    Component(name="t5repro", version=__version__, type=ComponentType.APPLICATION)
                ]
            ),
        ),
    )
    above = _nearest_sources(run, frozenset(components))
    bom.register_dependency(run_component, [components[job.name] for job in models])
    for name, subject in components.items():
        is_model = subject.type is ComponentType.MACHINE_LEARNING_MODEL
        bom.register_dependency(
            subject,
            [*(components[source] for source in above[name]), *(libraries if is_model else [])],
        )
    values: dict[str, Any] = json.loads(
        make_outputter(bom, OutputFormat.JSON, VERSION).output_as_string()
    )
    if not _recorded(run):
        values["metadata"].pop("timestamp")  # of the library's clock, without records
    cards = {f"job/{job.name}": _card(run, job, above) for job in models}
    for component in values["components"]:
        if component["bom-ref"] in cards:
            component["modelCard"] = cards[component["bom-ref"]]
    fault = JsonStrictValidator(VERSION).validate_str(json.dumps(values))
    if fault is not None:
        first = str(fault).splitlines()[0]
        raise LineageError(f"the standard's validator refuses the document: {first}")
    return values


def _recorded(run: Run) -> bool:
    return all(job.record for job in run.jobs)


def _published(run: Run) -> datetime:
    return datetime.fromisoformat(run.published()) if _recorded(run) else datetime.now(UTC)


def _component(job: Job) -> Component:
    """Return a model or a data set, with its files as parts."""
    is_model = job.rule in MODELS
    files = job.inputs if job.rule == DATA else job.outputs
    about = {
        "rule": job.rule,
        "commit": facts.start_of(job).get("commit"),
        "code": facts.code_hash(job) or None,
        **{f"settings.{name}": value for name, value in leaves_of(job.settings)},
    }
    return Component(
        name=job.name,
        type=ComponentType.MACHINE_LEARNING_MODEL if is_model else ComponentType.DATA,
        bom_ref=f"job/{job.name}",
        version=facts.manifest_hash(job)[:HASH_SHOWN],
        components=[_file(job, artifact) for artifact in files],
        properties=[
            Property(name=f"t5repro:{name}", value=value) for name, value in about.items() if value
        ],
    )


def _file(job: Job, artifact: Artifact) -> Component:
    return Component(
        name=artifact.path,
        type=ComponentType.FILE,
        bom_ref=f"file/{job.name}/{artifact.path}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=artifact.sha256)],
    )


def _library(name: str, versions: list[str]) -> Component:
    # A component has one version; several go into the description.
    version = versions[0] if len(versions) == 1 else None
    return Component(
        name=name,
        type=ComponentType.LIBRARY,
        bom_ref=f"library/{name}",
        version=version,
        purl=PackageURL("pypi", None, name.lower().replace("_", "-"), version),
        description=None if version else f"versions {', '.join(versions)}",
    )


def _nearest_sources(run: Run, components: frozenset[str]) -> dict[str, list[str]]:
    """Return job -> the nearest earlier jobs in `components`, skipping all others."""
    raw = {artifact.key: job for job in run.of_rule(DATA) for artifact in job.inputs}
    # Raw files have no producer in the run: the job that records them stands for it.
    producers = raw | run.producers()
    sources: dict[str, list[str]] = {}
    for job in run.jobs:
        names: set[str] = set()
        for artifact in job.inputs:
            earlier = producers.get(artifact.key)
            if earlier is not None:
                names |= (
                    {earlier.name} if earlier.name in components else set(sources[earlier.name])
                )
        # Jobs are in the order of their dependencies, so the sources of earlier ones are known.
        sources[job.name] = sorted(names - {job.name})
    return sources


def _card(run: Run, job: Job, above: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    by_name = {earlier.name: earlier for earlier in run.jobs}
    data = [name for name in above[job.name] if by_name[name].rule in TRAINED_ON]
    card: dict[str, Any] = {
        "modelParameters": {
            "approach": {"type": MODELS[job.rule]},
            "task": "text to text",
            "architectureFamily": "transformer",
            "modelArchitecture": "T5",
            "datasets": [{"ref": f"job/{name}"} for name in data],
            "inputs": [{"format": "text"}],
            "outputs": [{"format": "text"}],
        }
    }
    metrics = _metrics(run, job)
    if metrics:
        card["quantitativeAnalysis"] = {"performanceMetrics": metrics}
    return card


def _metrics(run: Run, model: Job) -> list[dict[str, str]]:
    """Return the scores of a model's own predictions."""
    producers = run.producers()
    metrics = []
    for job in run.of_rule("evaluate_score"):
        predicted = [producers.get(artifact.key) for artifact in job.inputs]
        used = {
            producer.name
            for prediction in predicted
            if prediction is not None and prediction.rule == "evaluate_predict"
            for artifact in prediction.inputs
            if (producer := producers.get(artifact.key)) is not None
        }
        # Scores of another model of the run are not this one's.
        if model.name in used:
            metrics += _scores(run, job)
    return metrics


def _scores(run: Run, job: Job) -> list[dict[str, str]]:
    artifacts = [artifact for artifact in job.outputs if artifact.path.endswith("/scores.json")]
    facts.check_files(run, artifacts)
    return [
        {"type": name, "value": str(value), "slice": task}
        for artifact in artifacts
        for task, score in sorted(read_json(run.root / artifact.path)["tasks"].items())
        for name, value in sorted(score["metrics"].items())
    ]
