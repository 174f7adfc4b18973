"""The run, and what the rules ask its plan (`t5repro.plan.run_plan`): files, options, resources.

A rule file says which command makes which files with which resources. The plan says which nodes a
run has, what each reads and writes, and which settings its jobs receive.
"""

import sys
from functools import partial

from t5repro.lineage.sources import closure_path
from t5repro.plan import commands
from t5repro.plan import resources as needs
from t5repro.plan.commands import command_of
from t5repro.versions.snakemake_run import SnakemakeRun, with_message

SNAKEMAKE_RUN = SnakemakeRun(workflow, config)
PLAN = SNAKEMAKE_RUN.plan
SETTINGS = PLAN.settings
RUN = SETTINGS.run.name


def inputs_of(rule, node=""):
    """Return an input function: role -> files that a job reads.

    A manifest stands for the files that it lists, unless a storage has to move these.
    """
    read = PLAN.inputs if SNAKEMAKE_RUN.uses_storage else PLAN.watched

    @with_message
    def files(wildcards):
        name, shard = (wildcards.get(key, "") for key in ("node", "shard"))
        paths = read(rule, name or node, shard)
        # A preflight is repeated without a reason to train again.
        return {
            role: [ancient(path) for path in found] if role == "preflight" else found
            for role, found in paths.items()
        }

    return unpack(files)


def outputs_of(rule, node=""):
    """Return role -> files, or their patterns, of a rule with the same files in every node."""
    return PLAN.patterns(rule, node)


def forms_of(rule):
    """Return the rules that stand for a stage with other files in some of its nodes."""
    return with_message(PLAN.forms)(rule, with_earlier=SNAKEMAKE_RUN.uses_storage)


def code_of(rule):
    """Return the file with the hashes of a rule's code, so that edited code reruns the rule."""
    return closure_path(rule).as_posix()


def settings_of(rule):
    """Return a params function for the settings that a job receives, as JSON."""
    return lambda wildcards: PLAN.settings_text(rule, wildcards.get("node", ""))


def params_of(rule, node=""):
    """Return the parameters of a rule's command line: the settings, and functions of the plan."""
    return {
        "settings": settings_of(rule),
        **{name: _param(rule, name, node) for name in commands.params_of(rule)},
    }


def _param(rule, name, node):
    def value(wildcards):
        shard = wildcards.get("shard", "")
        return PLAN.param(rule, name, wildcards.get("node", node), shard)

    return value


def memory(megabytes):
    """Return a resource function: the memory of the first attempt, and as much for each retry.

    Args:
        megabytes: a number, or a function of the settings of the job's node.
    """

    def mem_mb(wildcards, attempt):
        if callable(megabytes):
            return attempt * megabytes(PLAN.settings_at(wildcards.node))
        return attempt * megabytes

    return mem_mb


def start_on_this_machine():
    """Refuse a run that does not fit this machine; print what it will take."""
    if workflow.local_exec:
        from t5repro.estimate.start import start  # a dry run does not need it

        line = with_message(start)(
            PLAN.nodes, SNAKEMAKE_RUN.nodes_to_run, SETTINGS, workflow.cores
        )
        print(line, file=sys.stderr)


def model_memory(rule):
    """Return a resource function: the memory of a job that computes with the model."""
    return memory(partial(needs.model_megabytes, rule))


def model_threads(wildcards):
    """Return the cores of a job that computes with the model."""
    settings = PLAN.settings_at(wildcards.node)
    return needs.model_threads(settings, workflow.resource_settings.cores)
