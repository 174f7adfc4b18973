"""Paths of the files of nodes."""

from t5repro.lineage.record import LOGS as LOGS_FOLDER
from t5repro.lineage.store import RESULTS
from t5repro.plan.nodes import Key, RunNodes
from t5repro.plan.outputs import last_predictions, names_by_role, names_of

LOGS = LOGS_FOLDER.as_posix()


def path(nodes: RunNodes, key: Key, name: str) -> str:
    """Return the path of a file of a node, or of a folder in the node's folder."""
    return "/".join(filter(None, (RESULTS, nodes.name, *key, name)))


def log_path(nodes: RunNodes, key: Key, shard: str = "") -> str:
    """Return the log of a job."""
    return "/".join(filter(None, (LOGS, nodes.name, *key, shard))) + ".log"


def manifests(nodes: RunNodes, key: Key) -> list[str]:
    """Return the manifests of a node: one, or one for each shard of cleaning."""
    return [path(nodes, key, name) for name in names_by_role(nodes, key)["manifest"]]


def files(nodes: RunNodes, key: Key) -> list[str]:
    """Return the files of a node without its manifests."""
    return [path(nodes, key, name) for name in names_of(nodes, key)]


def by_experiment(nodes: RunNodes, rule: str, name: str) -> dict[str, str]:
    """Return experiment, or fine-tuning, -> a file of its node of `rule`."""
    return {user: path(nodes, nodes.node_of(rule, user), name) for user in nodes.names_of(rule)}


def predictions_of(nodes: RunNodes, experiment: str) -> list[str]:
    """Return the predictions of an experiment with its last weights."""
    return [
        path(nodes, nodes.node_of("evaluate_predict", finetuning), name)
        for finetuning in nodes.finetunings_of(experiment)
        for name in last_predictions(nodes, finetuning)
    ]
