"""The resolved graph: every job of a run, as Snakemake plans it, grouped into stages.

A stage is what DVC versions as one: the jobs of one rule in one node (`c4_clean-baseline` is four
jobs). It owns one folder. Snakemake alone knows the graph; nothing here repeats it.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.config import load
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.lineage.record import record_path
from t5repro.stages import STAGES, stage_of_rule

RUN_FILE = Path("configs/demo.yaml")
PROFILE = "local"
SNAKEFILE = Path("Snakefile")
# What brings raw files in is no stage: data.dvc stands for them. A preflight only checks.
NOT_STAGES = {"all", *(stage.name for stage in STAGES if not stage.versioned)}
LARGEST_CHECKSUM_BYTES = 10_000_000_000  # as in local/profile.yaml


PLANNING = "t5reproPLANNING"  # set while a graph is planned on behalf of a command


@dataclass(frozen=True)
class Job:
    """One job: what it reads, runs and writes; paths relative to the checkout."""

    inputs: tuple[str, ...]
    code: tuple[str, ...]
    outputs: tuple[str, ...]
    record: Path


@dataclass(frozen=True)
class Stage:
    """The jobs of one rule in one node, and the folder they own."""

    name: str
    rule: str
    node: str
    folder: str
    jobs: tuple[Job, ...]

    @property
    def base(self) -> str:
        """Return the subcommand that the rule calls: `tasks` for `tasks_glue_cola`."""
        stage = stage_of_rule(self.rule)
        return stage.name if stage else self.rule

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return every file that a job reads, code left out, each once and in order."""
        return tuple(dict.fromkeys(path for job in self.jobs for path in job.inputs))

    @property
    def code(self) -> tuple[str, ...]:
        """Return every source file that a job runs."""
        return tuple(sorted({path for job in self.jobs for path in job.code}))


@contextmanager
def planned(run_file: Path) -> Iterator[Any]:
    """Yield Snakemake's workflow with its graph built, as ``snakemake -n`` builds it.

    Raises:
        SettingsError: Snakemake refuses the run file.
    """
    from snakemake.api import SnakemakeApi
    from snakemake.exceptions import WorkflowError
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        Quietness,
        ResourceSettings,
    )

    os.environ[PLANNING] = "1"
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        try:
            workflow_api = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=ConfigSettings(configfiles=[run_file]),
                snakefile=SNAKEFILE,
            )
            workflow_api.dag(DAGSettings(max_checksum_file_size=LARGEST_CHECKSUM_BYTES))
            workflow = workflow_api._workflow
            workflow._prepare_dag(
                forceall=False, ignore_incomplete=True, lock_warn_only=False, nolock=True
            )
            workflow._build_dag()
        except WorkflowError as error:
            raise SettingsError(f"Snakemake cannot plan {run_file}: {error}") from error
        yield workflow


def resolve(run_file: Path = RUN_FILE) -> tuple[Settings, list[Stage]]:
    """Return a run's settings and its stages, in the order of their dependence."""
    settings = load.load_run_file(run_file)
    with planned(run_file) as workflow:
        return settings, stages_of(workflow)


def stages_of(workflow: Any) -> list[Stage]:
    """Return the stages of a planned workflow.

    Raises:
        ArtifactError: two stages share a folder, or a job has no place for its record.
    """
    found: dict[str, list[Any]] = {}
    for job in workflow.dag.jobs:
        if job.rule.name not in NOT_STAGES:
            found.setdefault(stage_name(job), []).append(job)
    stages = [_stage(name, jobs) for name, jobs in found.items()]
    owners: dict[str, str] = {}
    for stage in stages:
        other = owners.setdefault(stage.folder, stage.name)
        if other != stage.name:
            raise ArtifactError(
                f"rules {other} and {stage.name} both write {stage.folder}/; give each rule a "
                "folder of its own"
            )
    return _in_order(stages)


def stage_name(job: Any) -> str:
    """Return the stage of a Snakemake job."""
    node = getattr(job.wildcards, "node", "")
    return f"{job.rule.name}-{node}" if node else str(job.rule.name)


def _stage(name: str, jobs: Sequence[Any]) -> Stage:
    described = sorted((_job(job) for job in jobs), key=lambda job: job.outputs)
    rule, _, node = name.partition("-")
    folders = {Path(path).parent.as_posix() for job in described for path in job.outputs}
    if len(folders) != 1:
        raise ArtifactError(f"rule {rule} writes {sorted(folders)}; one folder is allowed")
    return Stage(name, rule, node, folders.pop(), tuple(described))


def _job(job: Any) -> Job:
    code = (str(job.input.get("code")),)  # one file stands for the rule's code
    checks = [str(path) for path in job.input.get("preflight", [])]
    (log,) = job.log
    record = record_path(Path(log))
    if record is None:
        raise ArtifactError(f"rule {job.rule.name} logs to {log}; logs are below logs/")
    return Job(
        inputs=tuple(str(path) for path in job.input if str(path) not in (*code, *checks)),
        code=code,
        outputs=tuple(str(path) for path in job.output),
        record=record,
    )


def _in_order(stages: Sequence[Stage]) -> list[Stage]:
    """Return stages so that each stands behind those it reads from; by name otherwise."""
    owner = {stage.folder: stage.name for stage in stages}
    left = {stage.name: stage for stage in sorted(stages, key=lambda stage: stage.name)}
    needs = {
        stage.name: {owner.get(Path(path).parent.as_posix(), "") for path in stage.inputs} - {""}
        for stage in stages
    }
    ordered: list[Stage] = []
    while left:
        ready = next(name for name in left if not needs[name] & left.keys())
        ordered.append(left.pop(ready))
    return ordered
