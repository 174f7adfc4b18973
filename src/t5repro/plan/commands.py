"""The command line of each rule, made from the job of its stage."""

from collections.abc import Iterator

from t5repro.jobs.fields import JobField, Place, fields_of
from t5repro.jobs.table import JOBS
from t5repro.lineage.store import RESULTS, WORK
from t5repro.plan.nodes import Key, RunNodes
from t5repro.plan.options import OPTIONS
from t5repro.plan.paths import LOGS

ROOTS = {"folder": RESULTS, "work": WORK, "logs": LOGS}
# Where Snakemake has the values of the other fields that a job does not read.
LISTS = {"output": "output", "resource": "resources", "wildcard": "wildcards"}


def command_of(rule: str) -> str:
    """Return the command line of a rule, with Snakemake's fields in place of values."""
    options = (_option(rule, field) for field in fields_of(JOBS[rule]))
    return (
        f"t5repro stage {rule} --settings {{params.settings:q}} {' '.join(options)} --log {{log:q}}"
    )


def params_of(rule: str) -> Iterator[str]:
    """Yield the names of the parameters in the command line of a rule, except its settings."""
    return (field.name for field in fields_of(JOBS[rule]) if source_of(rule, field) == "params")


def param(nodes: RunNodes, key: Key, name: str, shard: str) -> str | list[str]:
    """Return a parameter of the command line of a job: words of the plan, or a folder."""
    if name in OPTIONS.get(key.rule, {}):
        return OPTIONS[key.rule][name](nodes, key)
    (root,) = (
        ROOTS[field.role.kind]
        for field in fields_of(JOBS[key.rule])
        if field.name == name and isinstance(field.role, Place)
    )
    return "/".join(filter(None, (root, nodes.name, *key, shard)))


def _option(rule: str, field: JobField) -> str:
    value = f"{source_of(rule, field)}.{field.name}"
    if field.type is bool:  # the resource is the option, or empty
        return f"{{{value}}}"
    return f"{field.option} {{{value}{'' if field.type is int else ':q'}}}"


def source_of(rule: str, field: JobField) -> str:
    """Return which of Snakemake's lists has the value of a field: ``input``, ``params``, ..."""
    if field.name in OPTIONS.get(rule, {}):
        return "params"
    if isinstance(field.role, Place):
        return LISTS.get(field.role.kind, "params")
    return "input"
