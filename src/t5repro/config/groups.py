"""Groups of tasks that an experiment fine-tunes separately (`finetune.groups`).

Each group has its own fine-tuning, which starts from the pre-training of the experiment and changes
the settings that the group states. The scores of all groups together are those of the experiment,
as in the paper (section 3.1.3): a row of its tables is seven fine-tunings.
"""

from collections.abc import Mapping
from typing import Any

from t5repro.config.mixtures import mixture_named, mixture_settings, reset_mixture
from t5repro.config.schema import Settings
from t5repro.config.tree import lookup, merge, nested
from t5repro.config.validation import validate
from t5repro.errors import SettingsError

ALLOWED = ("tasks.names", "tasks.mixture", "finetune", "evaluate")
# Settings of the experiment, from which its groups are joined again.
OF_EXPERIMENT = ("finetune.groups", "evaluate.split", "evaluate.checkpoints", "evaluate.ensemble")


def finetunings(settings: Settings, experiment: str) -> dict[str, str]:
    """Return group -> name of its fine-tuning, also the name of its node.

    Without groups, an experiment has one fine-tuning: its name, of the group "".

    Args:
        settings: settings of the experiment.
        experiment: its name.
    """
    groups = settings.finetune.groups
    return {group: f"{experiment}_{group}" for group in groups} or {"": experiment}


def settings_of_group(settings: Settings, group: str) -> Settings:
    """Return the settings of the fine-tuning of one group.

    Args:
        settings: settings of the experiment.
        group: name of the group; "" for an experiment without groups.

    Raises:
        SettingsError: the group changes a setting that it may not change, or to an invalid value.
    """
    if not group:
        return settings
    change = nested(settings.finetune.groups[group])
    _check_allowed(group, change)
    tree = settings.model_dump(mode="json", exclude={"experiments"})
    merge(tree, {"finetune": {"groups": {}}})
    merge(tree, reset_mixture(change, tree))
    merge(tree, change)
    merge(tree, mixture_settings(change))
    _leave_out_other_tasks(tree, change)
    try:
        changed = validate(Settings, tree, label=f"finetune.groups.{group}: ", unchecked={})
    except SettingsError as error:
        error.keys = ("finetune", "groups", group, *error.keys)
        raise
    return changed.model_copy(update={"experiments": settings.experiments})


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
        change = nested(values)
        mixture = lookup(change, "tasks", "mixture")
        names = mixture_named(str(mixture)).names if mixture else lookup(change, "tasks", "names")
        if not names:
            raise SettingsError(
                f"finetune.groups.{group} names no tasks; set its tasks.names or tasks.mixture"
            )
        for name in names:
            if name in group_of:
                raise SettingsError(
                    f"finetune.groups.{group} and finetune.groups.{group_of[name]} share the task "
                    f"{name!r}; a task is fine-tuned in one group"
                )
            group_of[name] = group
    return list(group_of)


def group_tasks(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that follow from groups, or from tasks, that a tree of settings sets.

    The tasks of a run or experiment with groups are theirs. An experiment with tasks of its own
    does without the groups of its run.

    Args:
        tree: nested settings of a run file, an override or an experiment.

    Raises:
        SettingsError: `tasks.names` or `tasks.mixture` names other tasks than the groups.
    """
    groups = lookup(tree, "finetune", "groups")
    tasks = tree.get("tasks")
    explicit = isinstance(tasks, Mapping) and {"names", "mixture"} & set(tasks)
    if not isinstance(groups, Mapping) or not groups:
        return {"finetune": {"groups": {}}} if explicit else {}
    names = tasks_of_groups(groups)
    if lookup(tree, "tasks", "mixture"):
        raise SettingsError(
            "tasks.mixture and finetune.groups are both set; groups name their own mixtures, "
            "remove one of the two"
        )
    stated = lookup(tree, "tasks", "names")
    if stated and set(stated) != set(names):
        others = sorted(set(stated) ^ set(names))
        raise SettingsError(
            f"tasks.names and the tasks of finetune.groups differ in {others}; leave tasks.names "
            "out, or set tasks of its own in the change of an experiment, which replace the groups"
        )
    return {"tasks": {"names": stated or names}}


def _check_allowed(group: str, change: Mapping[str, Any]) -> None:
    for name in _leaves(change):
        allowed = any(name == start or name.startswith(f"{start}.") for start in ALLOWED)
        if not allowed or name.startswith(OF_EXPERIMENT):
            raise SettingsError(
                f"finetune.groups.{group} changes {name}; a group may change {', '.join(ALLOWED)} "
                f"(but not {', '.join(OF_EXPERIMENT)})"
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


def _leave_out_other_tasks(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Limit settings that name tasks of the experiment to those of the group."""
    names = tree["tasks"]["names"]
    if not lookup(change, "finetune", "mixture_weights"):
        weights = tree["finetune"]["mixture_weights"]
        tree["finetune"]["mixture_weights"] = {k: v for k, v in weights.items() if k in names}
    if not lookup(change, "evaluate", "beam_tasks"):
        beam = tree["evaluate"]["beam_tasks"]
        tree["evaluate"]["beam_tasks"] = [name for name in beam if name in names]
