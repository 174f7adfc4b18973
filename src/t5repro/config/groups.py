"""Groups of tasks that an experiment fine-tunes separately (`finetune.groups`).

Each group has its own fine-tuning, which starts from the pre-training of the experiment and changes
the settings that the group states. An experiment has the scores of all its groups together,
as in the paper (section 3.1.3): a row of its tables is seven fine-tunings.
"""

from collections.abc import Mapping
from typing import Any

from t5repro.config.presets.table import named_in, values_of
from t5repro.config.schema import Settings
from t5repro.config.tree import lookup, merge, nested
from t5repro.errors import SettingsError

ALLOWED = ("tasks.names", "finetune", "evaluate")
# The scores of all groups together have these settings.
SHARED_BY_GROUPS = (
    *("finetune.groups", "evaluate.split", "evaluate.checkpoints", "evaluate.ensemble"),
)


def finetunings(settings: Settings, experiment: str) -> dict[str, str]:
    """Return group -> name of its fine-tuning, also the name of its node.

    Without groups, an experiment has one fine-tuning: its name, of the group "".

    Args:
        settings: settings of the experiment.
        experiment: its name.
    """
    groups = settings.finetune.groups
    return {group: f"{experiment}_{group}" for group in groups} or {"": experiment}


def tasks_of_groups(groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the tasks of all groups, in their order.

    Raises:
        SettingsError: a group names no tasks, or two groups share one.
    """
    group_of: dict[str, str] = {}
    for group, values in groups.items():
        if not isinstance(values, Mapping):
            raise SettingsError(
                f"finetune.groups.{group} is {values!r}; it must map settings to values, such as "
                "tasks.names: [squad]"
            )
        names = _task_names(nested(values))
        if not names:
            raise SettingsError(
                f"finetune.groups.{group} names no tasks; set its tasks.names, or use a preset "
                "of mixtures"
            )
        for name in names:
            if name in group_of:
                raise SettingsError(
                    f"finetune.groups.{group} and finetune.groups.{group_of[name]} share the task "
                    f"{name!r}; a task is fine-tuned in one group"
                )
            group_of[name] = group
    return list(group_of)


def _task_names(change: Mapping[str, Any]) -> Any:
    """Return the tasks that a tree of settings states or takes from a preset; None without any."""
    names = lookup(change, "tasks", "names")
    return names or lookup(values_of(named_in(change)), "tasks", "names")


def apply_groups(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Set what follows from stated groups, or from stated tasks, in place.

    The tasks of a run or experiment with groups are the tasks of its groups. An experiment with
    tasks of its own drops the groups of its run.

    Args:
        tree: complete settings.
        change: nested settings of a run file, an experiment or a group.

    Raises:
        SettingsError: `tasks.names` differs from the tasks of the groups.
    """
    groups = lookup(change, "finetune", "groups")
    own_names = lookup(change, "tasks", "names")
    if not isinstance(groups, Mapping) or not groups:
        if own_names is not None or _task_names(change):
            merge(tree, {"finetune": {"groups": {}}})
        return
    names = tasks_of_groups(groups)
    if own_names and set(own_names) != set(names):
        unmatched = sorted(set(own_names) ^ set(names))
        raise SettingsError(
            f"tasks.names and the tasks of finetune.groups differ in {unmatched}; leave "
            "tasks.names out, or set tasks of its own in the change of an experiment, which "
            "replace the groups"
        )
    merge(tree, {"tasks": {"names": own_names or names}})


def check_group(group: str, change: Mapping[str, Any]) -> None:
    """Refuse a group that changes settings of its experiment.

    Args:
        group: its name.
        change: its settings, nested.

    Raises:
        SettingsError: it does.
    """
    values = {key: value for key, value in change.items() if key != "use"}
    merge(values, values_of(named_in(change)))
    for name in _leaves(values):
        allowed = any(name == prefix or name.startswith(f"{prefix}.") for prefix in ALLOWED)
        if not allowed or name.startswith(SHARED_BY_GROUPS):
            raise SettingsError(
                f"finetune.groups.{group} changes {name}; a group may change {', '.join(ALLOWED)} "
                f"(but not {', '.join(SHARED_BY_GROUPS)})"
            )


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names of the settings in a tree, down to their section."""
    return [
        name
        for key, value in tree.items()
        for name in (
            _leaves(value, f"{prefix}{key}.")
            if isinstance(value, Mapping) and not prefix
            else [f"{prefix}{key}"]
        )
    ]


def drop_other_tasks(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Limit settings that name tasks of the experiment to the tasks of the group."""
    names = tree["tasks"]["names"]
    if not lookup(change, "finetune", "mixture_weights"):
        weights = tree["finetune"]["mixture_weights"]
        tree["finetune"]["mixture_weights"] = {k: v for k, v in weights.items() if k in names}
    if not lookup(change, "evaluate", "beam_tasks"):
        beam = tree["evaluate"]["beam_tasks"]
        tree["evaluate"]["beam_tasks"] = [name for name in beam if name in names]
