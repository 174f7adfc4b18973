"""OpenLineage: a START and a COMPLETE event for each job and for the run, one event a line.

The format is OpenLineage's file transport, so a collector can replay the file.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, RunEvent, RunState
from openlineage.client.event_v2 import Run as EventRun
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.execution_parameters_run import (
    ExecutionParameter,
    ExecutionParametersRunFacet,
)
from openlineage.client.generated.input_statistics_input_dataset import (
    InputStatisticsInputDatasetFacet,
)
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.output_statistics_output_dataset import (
    OutputStatisticsOutputDatasetFacet,
)
from openlineage.client.generated.parent_run import Job as ParentJob
from openlineage.client.generated.parent_run import ParentRunFacet
from openlineage.client.generated.parent_run import Run as ParentRun
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.storage_dataset import StorageDatasetFacet
from openlineage.client.generated.tags_run import TagsRunFacet, TagsRunFacetFields
from openlineage.client.serde import Serde

from t5repro import __version__
from t5repro.export import facts
from t5repro.lineage.graph import Artifact
from t5repro.lineage.graph import Job as GraphJob
from t5repro.lineage.trace import leaves_of

PRODUCER = f"{facts.NAMESPACE}{__version__}"
NAMESPACE = "t5repro"  # of jobs
FILES = "file"  # of datasets, as the standard names local files
UNKNOWN_FORMAT = "other"


def events(run: facts.Run) -> str:
    """Return the events of a run in order of time, one a line.

    Raises:
        LineageError: a job has no record, so its times are not known.
    """
    # The events of the run stay first and last, even in the same second as those of a job.
    first, *steps, last = _events(run)
    steps.sort(key=lambda event: datetime.fromisoformat(event.eventTime))
    return "".join(Serde.to_json(event) + "\n" for event in (first, *steps, last))


def _events(run: facts.Run) -> Iterator[RunEvent]:
    start = min((run.started(job) for job in run.jobs), key=datetime.fromisoformat)
    whole_run = EventRun(facts.run_uuid(run))
    pipeline = Job(NAMESPACE, run.name, {"jobType": _kind("DAG")})
    yield _event(RunState.START, start, whole_run, pipeline, [], [])
    for job in run.jobs:
        unique_inputs = {artifact.key: artifact for artifact in job.inputs}
        inputs = [_input(artifact) for artifact in unique_inputs.values()]
        outputs = [_output(artifact) for artifact in job.outputs]
        step = Job(NAMESPACE, job.name, {"jobType": _kind("RULE")})
        job_run = EventRun(_run_id(job), _run_facets(run.name, whole_run.runId, job))
        yield _event(RunState.START, run.started(job), job_run, step, inputs, [])
        yield _event(RunState.COMPLETE, run.ended(job), job_run, step, inputs, outputs)
    yield _event(RunState.COMPLETE, run.published(), whole_run, pipeline, [], [])


def _event(
    state: RunState,
    time: str,
    run: EventRun,
    job: Job,
    inputs: list[InputDataset],
    outputs: list[OutputDataset],
) -> RunEvent:
    return RunEvent(
        eventType=state,
        eventTime=time,
        run=run,
        job=job,
        inputs=inputs,
        outputs=outputs,
        producer=PRODUCER,
    )


def _run_id(job: GraphJob) -> str:
    return facts.stable_uuid(job.name, facts.manifest_hash(job), facts.start_of(job)["at"])


def _kind(name: str) -> JobTypeJobFacet:
    return JobTypeJobFacet("BATCH", "SNAKEMAKE", name, producer=PRODUCER)


def _run_facets(run_name: str, run_id: str, job: GraphJob) -> dict[str, Any]:
    start_record = facts.start_of(job)
    libraries = facts.machine_of(job).get("libraries") or {}
    facets: dict[str, Any] = {
        "parent": ParentRunFacet(
            ParentRun(run_id), ParentJob(NAMESPACE, run_name), producer=PRODUCER
        ),
        "executionParameters": ExecutionParametersRunFacet(
            [ExecutionParameter(key=name, value=value) for name, value in leaves_of(job.settings)],
            producer=PRODUCER,
        ),
    }
    if "snakemake" in libraries:
        facets["processing_engine"] = ProcessingEngineRunFacet(
            libraries["snakemake"], "snakemake", __version__, producer=PRODUCER
        )
    tags = {
        "commit": start_record.get("commit"),
        "uncommitted": start_record.get("uncommitted"),
        "code": facts.code_hash(job),
    }
    fields = [TagsRunFacetFields(name, value, "t5repro") for name, value in tags.items() if value]
    if fields:
        facets["tags"] = TagsRunFacet(fields, producer=PRODUCER)
    return facets


def _input(artifact: Artifact) -> InputDataset:
    size = InputStatisticsInputDatasetFacet(size=artifact.length, fileCount=1, producer=PRODUCER)
    return InputDataset(FILES, artifact.path, {"inputStatistics": size}, facets=_facets(artifact))


def _output(artifact: Artifact) -> OutputDataset:
    size = OutputStatisticsOutputDatasetFacet(size=artifact.length, fileCount=1, producer=PRODUCER)
    return OutputDataset(FILES, artifact.path, {"outputStatistics": size}, facets=_facets(artifact))


def _facets(artifact: Artifact) -> dict[str, Any]:
    ending = artifact.path.rsplit("/", 1)[-1].rpartition(".")[2] or UNKNOWN_FORMAT
    return {
        "version": DatasetVersionDatasetFacet(f"sha256:{artifact.sha256}", producer=PRODUCER),
        "storage": StorageDatasetFacet("file", ending, producer=PRODUCER),
    }
