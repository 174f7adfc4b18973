"""A run of Snakemake: what happens before the rules are read, when jobs start, and at the end."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from snakemake.exceptions import WorkflowError

from t5repro.config.load import load_settings
from t5repro.config.logger_packages import check_logger_packages
from t5repro.config.notes import notes
from t5repro.config.origins import Origins
from t5repro.config.schema import Settings
from t5repro.config.task_files import check_listed_files, raw_files
from t5repro.config.tree import merged
from t5repro.config.withdrawn import PAGES, check_finished
from t5repro.data.fetch import check_date, files_to_fetch, missing_files
from t5repro.data.paths import raw_path
from t5repro.errors import RawDataError, SettingsError, T5ReproError
from t5repro.lineage import packages, run_lock, workflow_files
from t5repro.lineage.command_leftovers import remove_leftovers_of_commands
from t5repro.lineage.sources import closure_path, write_closures_for_plan
from t5repro.lineage.withdrawal_history import require_withdrawals
from t5repro.plan.memory import machine_bytes
from t5repro.plan.nodes import Key
from t5repro.plan.run_plan import RunPlan
from t5repro.plan.run_plan import stage_name as name_of
from t5repro.progress import announce, printable
from t5repro.stages import BY_NAME
from t5repro.versions import (
    asked_once,
    output_index,
    plain_params,
    power_loss,
    rehydrate,
    remote_storage,
    seal,
    sigterm,
    slurm_states,
)
from t5repro.versions.checkout_faults import AT_START
from t5repro.versions.job_errors import print_hidden_errors, print_job_errors
from t5repro.versions.last_screen import last_screen
from t5repro.versions.snakemake_graph import PLANNING, inside_dvc_repro, stage_name

MEMORY = "mem_mb"
# What jobs read and no rule writes, besides the raw files.
INPUTS_OF_CHECKOUT = (PAGES, *map(closure_path, BY_NAME))
FORMER_RESOURCE, RESOURCE = "tpu_slices", "accelerators"
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class RunError(WorkflowError):  # type: ignore[misc]  # Snakemake has no types
    """An error of which the message says all.

    Below the message of an error Snakemake lists the lines of rule files that it came through.
    """

    @property
    def __traceback__(self) -> None:
        return None

    @__traceback__.setter
    def __traceback__(self, traceback: object) -> None:
        """Take what a context manager sets when it lets the error through."""


def with_message(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a function that stops Snakemake with the message of an error."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except T5ReproError as error:
            print_hidden_errors()
            raise RunError(printable(str(error))) from None

    return call


class SnakemakeRun:
    """A run: its plan, and what Snakemake does besides its jobs.

    Args:
        workflow: Snakemake's workflow.
        config: the settings that Snakemake read from run files and command line.

    Raises:
        WorkflowError: a setting is invalid, or raw files are missing.
    """

    @with_message
    def __init__(self, workflow: Any, config: Mapping[str, Any]) -> None:
        self._workflow = workflow
        print_hidden_errors()
        refuse_former_resource(workflow.resource_settings)
        self.uses_storage = remote_storage.is_used(workflow)
        if self.uses_storage:
            remote_storage.link_to_checkout(workflow)
        plain_params.compare_params_without_pandas()
        output_index.use_quick_output_index()
        asked_once.ask_once()
        if workflow.is_main_process:
            check_finished()
            require_withdrawals()
            if not inside_dvc_repro():
                write_closures_for_plan()
            if not workflow.output_settings.dryrun:
                power_loss.set_damaged_aside()
            rehydrate.rehydrate_if_needed()
        self.settings, values = self._load(config)
        if workflow.is_main_process and PLANNING not in os.environ:
            for check in AT_START:
                for fault in check(Path(), self.settings):
                    announce(fault)
        self.plan = RunPlan(self.settings, lambda: load_settings(values, keep_withdrawn=True))

    def _load(self, config: Mapping[str, Any]) -> tuple[Settings, Mapping[str, Any]]:
        """Return the settings of the run, and the values of the run files that they are from."""
        if not config:
            raise SettingsError(
                "no run file: use --profile local, --profile tpu or --configfile configs/NAME.yaml"
            )
        source = self._workflow.config_settings
        # Jobs record the run files; the settings that they receive do not name them.
        os.environ[workflow_files.VARIABLE] = workflow_files.describe_run(
            source.configfiles, source.config
        )
        origins = Origins(source.configfiles, source.config)
        with origins.located_errors():
            # Snakemake also merges mappings whose keys are free, which a later run file replaces.
            if config == source.overwrite_config:
                config = merged([*origins.values, source.config])
            settings = load_settings(config)
            check_listed_files(settings)
            check_logger_packages(settings)
        missing = missing_files(settings.data, check_dates=self._workflow.is_main_process)
        if missing and not self.uses_storage:  # Snakemake finds those that the storage lacks
            raise RawDataError("\n".join(["raw files are missing:", *missing]))
        if self._workflow.is_main_process:
            for path in filter(Path.is_file, INPUTS_OF_CHECKOUT):
                check_date(path)
        return settings, config

    @property
    def to_fetch(self) -> list[str]:
        """The raw files to copy or download.

        Existing files are not outputs of the rule: Snakemake deletes the outputs of a failed job.
        """
        if self._workflow.remote_exec and self.uses_storage:
            return []
        return self._raw_paths(files_to_fetch(self.settings.data))

    def use_storage(self) -> None:
        """Let a storage move the records too; give it the inputs that no rule writes."""
        if not self.uses_storage:
            return
        remote_storage.store_records(self._workflow)
        if self._workflow.is_main_process:
            own = [path.as_posix() for path in INPUTS_OF_CHECKOUT]
            raw = self._raw_paths(raw_files(self.settings))
            with_message(remote_storage.upload)(self._workflow, [*own, *raw])

    def _raw_paths(self, names: Any) -> list[str]:
        return [raw_path(self.settings.data, name).as_posix() for name in names]

    @property
    def nodes_to_run(self) -> list[Key]:
        """The nodes that have jobs to run."""
        stages = {stage_name(job) for job in self._workflow.dag.needrun_jobs()}
        return [node.key for node in self.plan.nodes if name_of(node.key) in stages]

    @with_message
    def begin(self) -> None:
        """Lock the checkout, so that no other run starts until this process ends."""
        self._job_errors = print_job_errors(self._workflow.output_settings)
        self._lock = run_lock.acquire()
        share_memory(self._workflow)
        slurm_states.read_all_states(self._workflow)
        for note in notes(self.settings):
            announce(note)
        remove_leftovers_of_commands(Path())
        power_loss.note_begin()
        sigterm.handle_sigterm_in_thread(on_signal=self._begin_no_more_jobs)
        if not inside_dvc_repro():  # a stage of DVC has few jobs
            packages.installed()  # reads changed packages once, and not in every job at once

    def _begin_no_more_jobs(self) -> None:
        self._workflow.scheduler._user_kill = "graceful"

    def _download(self) -> None:
        """Bring what the jobs have written into this checkout, if they ran on other machines."""
        if self.uses_storage:
            remote_storage.download(self._workflow)

    def fail(self) -> None:
        """Bring what the jobs have written into this checkout, and name the failed ones."""
        self._download()
        self._job_errors.print_again()

    @with_message
    def end(self) -> None:
        """Unlock the checkout and record the finished stages in dvc.lock."""
        self._download()
        power_loss.note_end()
        self._lock.close()
        dag = self._workflow.dag_settings
        has_all_targets = set(dag.targets) <= {"all"} and not (dag.until or dag.omit_from)
        print(printable(seal.seal_run(self.settings, whole=has_all_targets)), file=sys.stderr)
        if has_all_targets:
            print(printable(last_screen(self.plan)), file=sys.stderr)
        if self.uses_storage:
            # Snakemake's metadata has the paths of the storage; a local run needs others.
            rehydrate.SNAPSHOT.unlink(missing_ok=True)


def share_memory(workflow: Any) -> None:
    """Let jobs run at the same time on this machine only if its memory has room for all of them.

    A limit of the user (``--resources mem_mb=N``) stays. A job that needs more than there is runs
    alone, if it runs: `run.check_memory` decides that.
    """
    if not workflow.local_exec or MEMORY in workflow.global_resources:
        return
    limit = int(machine_bytes() / 1_000_000)
    needs = (job.resources.get(MEMORY, 0) for job in workflow.dag.needrun_jobs())
    limit = max([limit, *needs])
    workflow.register_resource(MEMORY, limit)  # after the scheduler has made its list of limits
    workflow.scheduler.global_resources[MEMORY] = limit


def refuse_former_resource(settings: Any) -> None:
    """Refuse a profile with the former name of a resource, which would limit nothing.

    Raises:
        SettingsError: an option sets it.
    """
    of_rules = settings.overwrite_resources.values()
    for resources in (settings.resources, settings.default_resources or {}, *of_rules):
        if FORMER_RESOURCE in resources:
            raise SettingsError(
                f"the resource {FORMER_RESOURCE} is called {RESOURCE} now; rename it in the "
                "profile, or on the command line"
            )
