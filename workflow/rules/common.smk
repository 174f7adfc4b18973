"""
Settings of the run, and what rules ask of them: nodes, files, the settings of a job.

An experiment's node of a rule is called after the first experiment with equal settings so far,
so experiments share what they have in common (`t5repro/stages.py`).
"""

import json
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from t5repro.config import load, origins, task_files as inventory
from t5repro.config.stage_settings import stage_settings
from t5repro.data import crawl_lists, fetch, paths as raw_paths
from t5repro.errors import T5ReproError
from t5repro.lineage import run_lock
from t5repro.versions import rehydrate
from t5repro.versions import seal
from t5repro.versions import sigterm
from t5repro.lineage.sources import closure_path, write_closures
from t5repro.stages import BY_NAME, VERSIONED


def load_run():
    """Return the settings of the run, or stop Snakemake with the reason alone."""
    if not config:
        raise WorkflowError(
            "no run file: use --profile local, --profile tpu or --configfile configs/NAME.yaml"
        )
    stated = workflow.config_settings
    try:
        with origins.Origins(stated.configfiles, stated.config).naming():
            settings = load.load_settings(config)
            for arm in settings.experiments:
                own = load.settings_of_experiment(settings, arm.name)
                inventory.start_files(own)
                inventory.vocabulary_files(own)
                for task in own.tasks.names:
                    inventory.task_files(settings, task)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    if missing := fetch.missing_files(settings.data):
        raise WorkflowError("\n".join(["raw files are missing:", *missing]))
    return settings


if workflow.is_main_process:
    write_closures()
    rehydrate.rehydrate_if_needed()

SETTINGS = load_run()
RUN = SETTINGS.run.name
EXPERIMENTS = [arm.name for arm in SETTINGS.experiments]


@cache
def settings_at(node):
    """Return the settings of the experiment that a node is called after."""
    return load.settings_of_experiment(SETTINGS, node)


@cache
def settings_text(rule, node):
    return json.dumps(stage_settings(settings_at(node), rule), sort_keys=True)


def settings_of(rule):
    """Return a params function: the settings that a job of `rule` reads, as JSON."""

    def text(wildcards):
        return settings_text(rule, getattr(wildcards, "node", EXPERIMENTS[0]))

    return text


@cache
def node_of(rule, experiment):
    return load.node_of(SETTINGS, rule, experiment)


def of(rule, name):
    """Return an input function: file `name` of the node of `rule` that this job builds on."""

    def path(wildcards):
        return f"results/{RUN}/{rule}/{node_of(rule, wildcards.node)}/{name}"

    return path


def by_experiment(rule, name):
    """Return experiment -> file `name` of its node of `rule`."""
    return {
        arm: f"results/{RUN}/{rule}/{node_of(rule, arm)}/{name}" for arm in EXPERIMENTS
    }


def code_of(rule):
    """Return the file that stands for a rule's code: edited code reruns its rule."""
    return closure_path(rule).as_posix()


def raw_path(name):
    """Return where a raw file lies."""
    return raw_paths.raw_path(SETTINGS.data, name).as_posix()


def pairs(named):
    """Return NAME=FILE words for the command line."""
    return [f"{name}={path}" for name, path in named.items()]


def examples_of(split_of):
    """Return an input function: examples of every task of the node's mixture."""

    def paths(wildcards):
        settings = settings_at(wildcards.node)
        split = split_of(settings)
        return [
            f"results/{RUN}/tasks/{task}/{split}.jsonl"
            for task in settings.tasks.names
            if split in inventory.task_files(SETTINGS, task)
        ]

    return paths


def begin_run():
    """Keep other runs out of this checkout until this process ends."""
    global project
    try:
        project = run_lock.acquire()
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    sigterm.handle_sigterm_in_thread(on_signal=begin_no_more_jobs)


def begin_no_more_jobs():
    """Set the mark that the scheduler looks at before it begins a job."""
    workflow.scheduler._user_kill = "graceful"


def end_run():
    """Let others in, and write what was built into dvc.lock; refuse by name what was not."""
    project.close()
    try:
        print(seal.seal_run(SETTINGS), file=sys.stderr)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
