"""
Settings of the run and helper functions of the rules: nodes, files, settings of a job.

A node is the output of a rule for one or more experiments. Experiments share a node if their
settings of the rule and of all earlier rules are equal; the node has the name of the first of them.
The rules `finetune` and `evaluate_predict` have a node for each group of tasks of an experiment.
"""

import json
import os
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from t5repro.config import experiments, load, origins, task_files as inventory
from t5repro.config.dependencies import finetuning_named
from t5repro.config.groups import finetunings
from t5repro.config.own_text import files_of_tasks, text_files
from t5repro.config.sections.c4 import PUNKT_FILES, corpus_files, languages_to_train
from t5repro.config.sections.corpus import row_files
from t5repro.config.logger_packages import check_logger_packages
from t5repro.config.stage_settings import stage_settings
from t5repro.data import crawl_lists, fetch, paths as raw_paths
from t5repro.errors import T5ReproError
from t5repro.lineage import packages, run_lock, workflow_files
from t5repro.versions import plain_params
from t5repro.versions import rehydrate
from t5repro.versions import remote_storage
from t5repro.versions import seal
from t5repro.versions import sigterm
from t5repro.versions import snakemake_graph
from t5repro.model.sizes import parameter_count
from t5repro.lineage.sources import closure_path, write_closures_for_plan
from t5repro.stages import BY_NAME, OF_CORPUS, VERSIONED


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
            inventory.check_listed_files(settings)
            check_logger_packages(settings)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    missing = fetch.missing_files(settings.data)
    if missing and not STORAGE:  # Snakemake finds those that the storage lacks
        raise WorkflowError("\n".join(["raw files are missing:", *missing]))
    return settings


STORAGE = remote_storage.is_used(workflow)
if STORAGE:
    try:
        remote_storage.link_to_checkout(workflow)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None

plain_params.compare_params_without_pandas()
if workflow.is_main_process:
    if not snakemake_graph.inside_dvc_repro():
        write_closures_for_plan()
    rehydrate.rehydrate_if_needed()

SETTINGS = load_run()
RUN = SETTINGS.run.name
# Resources and not parameters: the checkpoint from which an interrupted training resumes, the
# loggers and the samples change no result, so other values rerun nothing.
LOGGERS = json.dumps(
    [logger.model_dump(mode="json") for logger in SETTINGS.run.loggers]
)
RESUME = "--resume-changed" if SETTINGS.run.resume_changed else ""
HOST_THREADS = 8  # feed an accelerator; a profile changes them with set-threads
EXPERIMENTS = [experiment.name for experiment in SETTINGS.experiments]


# Returns the settings of the experiment or fine-tuning that gives a node its name.
settings_at = experiments.settings_by_name(SETTINGS)

# Fine-tuning -> its experiment and group of tasks; without groups, they have one name.
FINETUNINGS = {
    name: (experiment, group)
    for experiment in EXPERIMENTS
    for group, name in finetunings(settings_at(experiment), experiment).items()
}


def finetunings_of(experiment):
    """Return the fine-tunings of an experiment: one, or one for each group of tasks."""
    return list(finetunings(settings_at(experiment), experiment).values())


@cache
def settings_text(rule, node):
    """Return the settings of a job as JSON: of its node, or of the run if it has none."""
    settings = SETTINGS if node is None else settings_at(node)
    return json.dumps(stage_settings(settings, rule), sort_keys=True)


def settings_of(rule):
    """Return a params function for the settings that a job of `rule` receives, as JSON."""

    def text(wildcards):
        return settings_text(rule, getattr(wildcards, "node", None))

    return text


@cache
def nodes_of(rule):
    """Return experiment or fine-tuning -> its node of `rule`."""
    return experiments.nodes_by_experiment(SETTINGS, rule, settings_at)


def distinct_nodes(rule):
    """Return the nodes of `rule`, in the order of the experiments."""
    return list(dict.fromkeys(nodes_of(rule).values()))


def required_nodes(rule):
    """Return the nodes of `rule` that an experiment reads, directly or not.

    An experiment with given weights and vocabulary reads no corpus, one with own text no crawl.
    """
    readers = [name for name in nodes_of(rule) if requires(settings_at(name), rule)]
    return list(dict.fromkeys(node_of(rule, name) for name in readers))


def requires(settings, rule):
    """Return whether an experiment with these settings reads what `rule` writes."""
    if rule in OF_CORPUS and not settings.reads_corpus:
        return False
    if rule == "sentences" and not settings.pretrain.reads_sentences:
        return False
    of_crawl = {"c4_punkt": True, "c4_clean": True, "corpus": False}.get(rule)
    return of_crawl is None or of_crawl is not bool(settings.corpus.files)


def node_of(rule, name):
    """Return the node of `rule` that an experiment or a fine-tuning uses."""
    nodes = nodes_of(rule)
    return nodes[name] if name in nodes else nodes[FINETUNINGS[name][0]]


def of(rule, name):
    """Return an input function for file `name` of the node of `rule` that a job reads."""

    def path(wildcards):
        return f"results/{RUN}/{rule}/{node_of(rule, wildcards.node)}/{name}"

    return path


def punkt_names(settings):
    """Return the names of the Punkt parameters that a run trains."""
    return [
        f"{language}/{name}"
        for language in languages_to_train(settings.c4)
        for name in PUNKT_FILES
    ]


def training_names(rule):
    """Return a function for the names of the files of a training."""

    def names(settings):
        steps = getattr(settings, rule).kept_steps
        kept = [f"step-{step}/weights.safetensors" for step in steps]
        return ["weights.safetensors", "optimizer.safetensors", "history.csv", *kept]

    return names


def earlier_steps(settings):
    """Return the steps whose kept weights predict in addition to the last ones."""
    if settings.evaluate.checkpoints == "last":
        return []
    return sorted(settings.finetune.kept_steps)[:-1]


def task_predictions(settings):
    """Return the names of the predictions with the last weights."""
    split = settings.evaluate.split
    return [
        f"{task}.jsonl"
        for task in settings.tasks.names
        if split in inventory.task_files(SETTINGS, task)
    ]


def prediction_names(settings):
    """Return the names of the predictions of a node, those of kept checkpoints included."""
    folders = ["", *(f"step-{step}/" for step in earlier_steps(settings))]
    return [
        f"{folder}{name}" for folder in folders for name in task_predictions(settings)
    ]


def decision_names(settings):
    """Return the names of the decisions: those of the cleaned files."""
    if settings.corpus.files:
        return row_files(settings.corpus)
    return [
        f"{shard:05d}{part}.parquet"
        for shard in range(settings.c4.clean_shards)
        for part in PARTS
    ]


# Rule -> function from settings to the names of its files, for rules whose settings decide them.
NAMES = {
    "c4_punkt": punkt_names,
    "corpus": lambda settings: row_files(settings.corpus),
    "c4_dedup": decision_names,
    "c4": lambda settings: corpus_files(settings.c4),
    "pretrain": training_names("pretrain"),
    "finetune": training_names("finetune"),
    "evaluate_predict": prediction_names,
}


@cache
def names_of(rule, node):
    """Return the names of the files that a node of `rule` has besides its manifest."""
    return NAMES[rule](settings_at(node))


def files_at(rule, experiment):
    """Return the files, without the manifest, of the node of `rule` that an experiment uses."""
    node = node_of(rule, experiment)
    return [f"results/{RUN}/{rule}/{node}/{name}" for name in names_of(rule, node)]


def files_of(rule):
    """Return an input function for the files of the node of `rule` that a job reads."""

    def paths(wildcards):
        return files_at(rule, wildcards.node)

    return paths


def rules_by_files(rule):
    """Return name, pattern of nodes and output patterns of every rule that stands for `rule`.

    Outputs cannot depend on a wildcard, so the nodes with the same files have a rule: those of the
    first node `rule` itself, all others `<rule>-<the first node of them>`.
    """
    nodes_by_names = {}
    for node in distinct_nodes(rule):
        nodes_by_names.setdefault(tuple(names_of(rule, node)), []).append(node)
    return [
        (
            f"{rule}-{nodes[0]}" if index else rule,
            "|".join(nodes),
            [f"<results>/{rule}/{{node}}/{name}" for name in names],
        )
        for index, (names, nodes) in enumerate(nodes_by_names.items())
    ]


def by_experiment(rule, name):
    """Return experiment -> file `name` of its node of `rule`."""
    return {
        experiment: f"results/{RUN}/{rule}/{node_of(rule, experiment)}/{name}"
        for experiment in nodes_of(rule)
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


def example_manifests_of(split_of):
    """Return an input function for the manifests of those examples, which have their hashes."""

    def paths(wildcards):
        return [
            Path(path).with_name("manifest.json").as_posix()
            for path in examples_of(split_of)(wildcards)
        ]

    return paths


def training_threads(wildcards):
    """Return the cores of a job that computes with the model: all of them, except on a CPU.

    There a job uses `devices.intra_op_threads`, so several jobs share the cores. An executor of a
    cluster knows no number of cores; a job then gets `HOST_THREADS`.
    """
    devices = settings_at(wildcards.node).devices
    if devices.kind == "cpu":
        return devices.intra_op_threads
    return workflow.resource_settings.cores or HOST_THREADS


def memory(megabytes):
    """Return a resource function: the memory of the first attempt, and as much again for each retry."""

    def mem_mb(wildcards, attempt):
        return megabytes * attempt

    return mem_mb


def model_memory(wildcards, attempt):
    """Return the memory of a job that computes with the model, in MB.

    Libraries and batches take 1 GB; weights, gradients, slots and a copy for the checkpoint take 4
    bytes each for a parameter.
    """
    settings = settings_at(wildcards.node)
    parameters = parameter_count(settings.model, settings.vocab.vocab_size)
    return attempt * (1500 + 16 * parameters // 1_000_000)


def sample_memory(wildcards, attempt):
    """Return the memory of the training of a vocabulary, in MB."""
    characters = settings_at(wildcards.node).vocab.sample_chars
    return attempt * (500 + 40 * characters // 1_000_000)


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


def use_storage():
    """Let the storage move the records too; give it the inputs that no rule writes."""
    remote_storage.store_records(workflow)
    if workflow.is_main_process:
        code = [closure_path(name).as_posix() for name in BY_NAME]
        try:
            remote_storage.upload(workflow, ["withdrawn/pages.yaml", *code, *RAW_FILES])
        except T5ReproError as error:
            raise WorkflowError(str(error)) from None


def download_files():
    """Bring what the jobs have written into this checkout, if they ran on other machines."""
    if STORAGE:
        remote_storage.download(workflow)


def end_run():
    """Unlock the checkout and record the finished stages in dvc.lock."""
    download_files()
    project.close()
    try:
        dag = workflow.dag_settings
        whole = set(dag.targets) <= {"all"} and not (dag.until or dag.omit_from)
        print(seal.seal_run(SETTINGS, whole=whole), file=sys.stderr)
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    if STORAGE:
        # Snakemake's metadata has the paths of the storage; a local run needs others.
        rehydrate.SNAPSHOT.unlink(missing_ok=True)
