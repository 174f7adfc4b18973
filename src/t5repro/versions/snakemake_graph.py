"""The jobs of a run, grouped into the stages of DVC: from the plan, or from Snakemake's graph.

A planned stage is the unit that DVC versions: the jobs of one rule in one node (`c4_clean-baseline`
has four). It owns one folder. The rule files read the plan as well, and a test compares its stages
with those of the graph that Snakemake builds, which takes seconds.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST
from t5repro.config.origins import Origins
from t5repro.config.project_files import SNAKEFILE
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.lineage.record import record_path
from t5repro.lineage.sources import closure_path, write_closures_for_plan
from t5repro.plan.run_plan import Job, RunPlan
from t5repro.plan.run_plan import stage_name as name_of
from t5repro.stages import BY_NAME, STAGES, stage_of_rule

RUN_FILE = Path("configs/demo.yaml")
PROFILE = "local"
# Raw files are versioned by data.dvc and not by the stage that fetches them; a preflight has no
# artifacts.
UNVERSIONED_RULES = {"all", *(stage.name for stage in STAGES if not stage.versioned)}
PREFLIGHT = "preflight"  # an input of pre-training that is no artifact
LARGEST_CHECKSUM_BYTES = 10_000_000_000  # as in local/profile.yaml
PLANNING = "T5REPRO_PLANNING"  # environment variable, set while a command plans the graph
DVC_ROOT = "DVC_ROOT"  # environment variable that DVC sets for the commands of its stages


@dataclass(frozen=True)
class PlannedJob:
    """One job of the graph; paths are relative to the checkout.

    Attributes:
        inputs: the files it reads, without code.
        code: the files that stand for the code it runs (`lineage.sources.closure_path`).
        outputs: the files it writes.
        record: the path of its record.
    """

    inputs: tuple[str, ...]
    code: tuple[str, ...]
    outputs: tuple[str, ...]
    record: Path


@dataclass(frozen=True)
class PlannedStage:
    """The jobs of one rule in one node.

    Attributes:
        name: ``rule-node``, or ``rule`` for a rule without nodes.
        rule: the rule in the Snakefile, such as ``tasks_glue_cola`` or ``c4-other``.
        node: the experiment that gives the node its name; empty for a rule without nodes.
        folder: the folder that the jobs write to, and no other stage does.
        jobs: the jobs, sorted by output.
    """

    name: str
    rule: str
    node: str
    folder: str
    jobs: tuple[PlannedJob, ...]

    @property
    def table_name(self) -> str:
        """The name of its row in `t5repro.stages`: `tasks` for the rule `tasks_glue_cola`."""
        row = stage_of_rule(self.rule)
        return row.name if row else self.rule

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that its jobs read, without code, each once and in order."""
        return tuple(dict.fromkeys(path for job in self.jobs for path in job.inputs))

    @property
    def code(self) -> tuple[str, ...]:
        """The files that stand for the code of its jobs."""
        return tuple(sorted({path for job in self.jobs for path in job.code}))


def inside_dvc_repro() -> bool:
    """Return whether DVC runs this process as the command of a stage.

    Its first stage has then written the files that stand for the code of the rules, which takes
    longer than all else that the later stages need to do.
    """
    return DVC_ROOT in os.environ


@contextmanager
def planned(*run_files: Path) -> Iterator[Any]:
    """Yield Snakemake's workflow with its graph built, as ``snakemake -n`` builds it.

    Raises:
        SettingsError: Snakemake rejects the run files.
    """
    from snakemake.api import SnakemakeApi
    from snakemake.exceptions import RuleException, WorkflowError
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        Quietness,
        ResourceSettings,
    )

    # The Snakefile rehydrates when it is read, which plans the graph: without this mark it would
    # recurse.
    os.environ[PLANNING] = "1"
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        try:
            workflow_api = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=ConfigSettings(configfiles=run_files),
                snakefile=SNAKEFILE,
            )
            workflow_api.dag(DAGSettings(max_checksum_file_size=LARGEST_CHECKSUM_BYTES))
            # The public API plans and runs in one call (`execute_workflow`); there is no public
            # way to the graph alone (upstream issue 13). Snakemake is pinned to a minor version
            # for this reason.
            workflow = workflow_api._workflow
            workflow._prepare_dag(
                forceall=False, ignore_incomplete=True, lock_warn_only=False, nolock=True
            )
            workflow._build_dag()
        except (WorkflowError, RuleException) as error:
            names = ", ".join(map(str, run_files))
            raise SettingsError(f"Snakemake cannot plan {names}: {error}") from error
        yield workflow


def resolve(*run_files: Path) -> tuple[Settings, list[PlannedStage]]:
    """Return the settings and the stages of a run, each stage after those it reads from.

    Args:
        run_files: later ones replace settings of earlier ones; `RUN_FILE` if there are none.

    Raises:
        SettingsError: the run files cannot be planned.
    """
    run_files = run_files or (RUN_FILE,)
    run_plan = RunPlan.of_run_file(*run_files)
    if not inside_dvc_repro():
        write_closures_for_plan()  # as the Snakefile does
    with Origins(run_files).located_errors():
        return run_plan.settings, stages_of_plan(run_plan)


def stages_of_plan(plan: RunPlan) -> list[PlannedStage]:
    """Return the stages of a planned run.

    Raises:
        SettingsError: a raw file that the settings name is not listed.
        ArtifactError: two stages share a folder, or a job has no path for its record.
    """
    stages = [
        PlannedStage(
            name=name_of(node.key),
            rule=jobs[0].rule,
            node=node.name if BY_NAME[node.rule].per_experiment else "",
            folder=Path(jobs[0].outputs["manifest"][0]).parent.as_posix(),
            jobs=tuple(sorted(map(_job_of_plan, jobs), key=lambda job: job.outputs)),
        )
        for node in plan.nodes
        for jobs in [plan.jobs(*node.key)]
    ]
    owners: dict[str, str] = {}
    for stage in stages:
        owner = owners.setdefault(stage.folder, stage.name)
        if owner != stage.name:
            raise ArtifactError(
                f"rules {owner} and {stage.name} both write {stage.folder}/; give each rule a "
                "folder of its own"
            )
    return _in_order(stages)


def _job_of_plan(job: Job) -> PlannedJob:
    record = record_path(Path(job.log))
    if record is None:
        raise ArtifactError(f"rule {job.rule} logs to {job.log}; logs are below logs/")
    inputs = (path for role, files in job.inputs.items() if role != PREFLIGHT for path in files)
    return PlannedJob(
        inputs=tuple(inputs),
        code=(closure_path(job.key.rule).as_posix(),),
        outputs=tuple(path for files in job.outputs.values() for path in files),
        record=record,
    )


def is_manifest(path: str) -> bool:
    """Return whether a file is the manifest of a job."""
    return path.endswith(MANIFEST)


def stage_name(job: Any) -> str:
    """Return the stage of a Snakemake job."""
    node = getattr(job.wildcards, "node", "")
    rule = job.rule.name.partition("-")[0]  # a node with other files has a rule of its own
    return f"{rule}-{node}" if node else rule


def _in_order(stages: Sequence[PlannedStage]) -> list[PlannedStage]:
    """Return stages so that each follows those it reads from; stages without an order by name."""
    owners = {stage.folder: stage.name for stage in stages}
    unmet = {
        stage.name: {owners.get(Path(path).parent.as_posix(), "") for path in stage.inputs} - {""}
        for stage in stages
    }
    waiting = {stage.name: stage for stage in sorted(stages, key=lambda stage: stage.name)}
    ordered: list[PlannedStage] = []
    while waiting:
        ready = next(name for name in waiting if not unmet[name] & waiting.keys())
        ordered.append(waiting.pop(ready))
    return ordered
