"""
Settings of the run and helper functions of the rules: nodes, files, settings of a job.

A node is the output of a rule for one or more experiments. Experiments share a node if their
settings of the rule and of all earlier rules are equal; the node has the name of the first of them.
"""

import json
import os
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from t5repro.config import experiments, load, origins, task_files as inventory
from t5repro.config.stage_settings import stage_settings
from t5repro.data import crawl_lists, fetch, paths as raw_paths
from t5repro.errors import T5ReproError
from t5repro.lineage import packages, run_lock, workflow_files
from t5repro.versions import rehydrate
from t5repro.versions import seal
from t5repro.versions import sigterm
from t5repro.versions import snakemake_graph
from t5repro.lineage.sources import closure_path, write_closures
from t5repro.stages import BY_NAME, VERSIONED


def load_run():
    """Return the settings of the run, or stop Snakemake with the message of the error."""
    if not config:
        raise WorkflowError(
            "no run file: use --profile local, --profile tpu or --configfile configs/NAME.yaml"
        )
    source = workflow.config_settings
    # Jobs record the run files; the settings that they receive do not name them.
    os.environ[workflow_files.VARIABLE] = workflow_files.describe_run(
        source.configfiles, source.config
    )
    try:
        with origins.Origins(source.configfiles, source.config).located_errors():
            settings = load.load_settings(config)
            for experiment in settings.experiments:
                changed = experiments.settings_of_experiment(settings, experiment.name)
                inventory.start_files(changed)
                inventory.vocabulary_files(changed)
                for task in changed.tasks.names:
                    inventory.task_files(settings, task)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    if missing := fetch.missing_files(settings.data):
        raise WorkflowError("\n".join(["raw files are missing:", *missing]))
    return settings


if workflow.is_main_process:
    if not snakemake_graph.inside_dvc_repro():
        write_closures()
    rehydrate.rehydrate_if_needed()

SETTINGS = load_run()
RUN = SETTINGS.run.name
# A resource and not a parameter: it decides from which checkpoint an interrupted training resumes,
# so another value reruns nothing.
RESUME = "--resume-changed" if SETTINGS.run.resume_changed else ""
EXPERIMENTS = [experiment.name for experiment in SETTINGS.experiments]


@cache
def settings_at(node):
    """Return the settings of the experiment that gives a node its name."""
    return experiments.settings_of_experiment(SETTINGS, node)


@cache
def settings_text(rule, node):
    return json.dumps(stage_settings(settings_at(node), rule), sort_keys=True)


def settings_of(rule):
    """Return a params function for the settings that a job of `rule` receives, as JSON."""

    def text(wildcards):
        return settings_text(rule, getattr(wildcards, "node", EXPERIMENTS[0]))

    return text


@cache
def nodes_of(rule):
    """Return experiment -> its node of `rule`."""
    return experiments.nodes_by_experiment(SETTINGS, rule)


def node_of(rule, experiment):
    """Return the node of `rule` that an experiment uses."""
    return nodes_of(rule)[experiment]


def of(rule, name):
    """Return an input function for file `name` of the node of `rule` that a job reads."""

    def path(wildcards):
        return f"results/{RUN}/{rule}/{node_of(rule, wildcards.node)}/{name}"

    return path


def by_experiment(rule, name):
    """Return experiment -> file `name` of its node of `rule`."""
    return {
        experiment: f"results/{RUN}/{rule}/{node_of(rule, experiment)}/{name}"
        for experiment in EXPERIMENTS
    }


def code_of(rule):
    """Return the file with the hashes of a rule's code, so that edited code reruns the rule."""
    return closure_path(rule).as_posix()


def raw_path(name):
    """Return the path of a raw file."""
    return raw_paths.raw_path(SETTINGS.data, name).as_posix()


def pairs(paths):
    """Return arguments NAME=FILE for the command line."""
    return [f"{name}={path}" for name, path in paths.items()]


def examples_of(split_of):
    """Return an input function for the examples of every task of the node's mixture."""

    def paths(wildcards):
        settings = settings_at(wildcards.node)
        split = split_of(settings)
        return [
            f"results/{RUN}/tasks/{task}/{split}.jsonl"
            for task in settings.tasks.names
            if split in inventory.task_files(SETTINGS, task)
        ]

    return paths


def manifests_of(split_of):
    """Return an input function for the manifests of those examples, which have their hashes."""

    def paths(wildcards):
        return [
            Path(path).with_name("manifest.json").as_posix()
            for path in examples_of(split_of)(wildcards)
        ]

    return paths


def training_threads(wildcards):
    """Return the cores of a job that computes with the model: all of them, except on a CPU.

    There a job uses `devices.intra_op_threads`, so several jobs share the cores.
    """
    devices = settings_at(wildcards.node).devices
    return devices.intra_op_threads if devices.kind == "cpu" else workflow.cores


def begin_run():
    """Lock the checkout, so that no other run starts until this process ends."""
    global project
    try:
        project = run_lock.acquire()
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    sigterm.handle_sigterm_in_thread(on_signal=begin_no_more_jobs)
    if not snakemake_graph.inside_dvc_repro():  # a stage of DVC has few jobs
        packages.installed()  # reads changed packages once, and not in every job at the same time


def begin_no_more_jobs():
    """Make the scheduler start no more jobs."""
    workflow.scheduler._user_kill = "graceful"


def end_run():
    """Unlock the checkout and record the finished stages in dvc.lock."""
    project.close()
    try:
        print(seal.seal_run(SETTINGS), file=sys.stderr)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
