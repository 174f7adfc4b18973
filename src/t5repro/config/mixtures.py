"""The named mixtures: tasks and how often each is drawn (paper sections 3.5.2 and 3.5.3).

`tasks.mixture` names one. `mixture_settings` replaces it by the settings of the tasks and their
rates, so that records contain those and not the name. To add a mixture, add an entry to `MIXTURES`.

Source: released code, `t5.data.mixtures`. The mixtures with C4 draw examples of the run's corpus,
too (`finetune.corpus_examples`); `supervised_*` are the same mixtures without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from t5repro.errors import SettingsError, nearest
from t5repro.task_table import (
    ANSWERED_AS,
    CNN_DAILYMAIL,
    GLUE_RTE,
    RELEASED_GROUPS,
    SQUAD,
    SUPER_GLUE_RTE,
    TASKS,
    WMT_EN_DE,
    WMT_EN_FR,
    WMT_EN_RO,
)

GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(tasks) for group, tasks in RELEASED_GROUPS.items()
}

# Tasks that are trained on under one name and evaluated under others, which have weight 0 in the
# released mixtures. Diagnostic sets, which have no validation split, are in no mixture.
EVALUATED_AS = {
    trained.name: tuple(
        task.name
        for task in TASKS
        if trained.name in ANSWERED_AS.get(task.name, ()) and "validation" in task.files
    )
    for trained in TASKS
}

C4_EXAMPLES = 364_868_892.0  # pages of English C4, its examples in the released code
C4_RATE = 1_000_000.0  # the released `rate_unsupervised`, independent of the size of the corpus

# The RTE of GLUE and of SuperGLUE are the same 2,490 examples; a mixture of both counts half each.
RTE_TASKS = (GLUE_RTE.name, SUPER_GLUE_RTE.name)
RTE_WEIGHT = 1_245.0


@dataclass(frozen=True)
class NamedMixture:
    """One mixture.

    Attributes:
        tasks: tasks that are trained on.
        kind: value of ``finetune.mixture``.
        c4: value of ``finetune.corpus_examples``; 0 if the mixture does not draw the corpus.
        c4_rate: value of ``finetune.corpus_rate``: whether K and T apply to the corpus.
    """

    tasks: tuple[str, ...]
    kind: Literal["proportional", "equal"] = "proportional"
    c4: float = 0.0
    c4_rate: Literal["limited", "stated"] = "limited"

    @property
    def names(self) -> tuple[str, ...]:
        """Tasks that are trained on, each followed by the names it is evaluated under."""
        return tuple(name for task in self.tasks for name in (task, *EVALUATED_AS[task]))

    @property
    def weights(self) -> dict[str, float]:
        """Weights that replace the count of a task."""
        shared = self.kind == "proportional" and {*RTE_TASKS} <= {*self.tasks}
        return dict.fromkeys(RTE_TASKS, RTE_WEIGHT) if shared else {}


def leave_one_out(group: str) -> tuple[str, ...]:
    """Return all supervised tasks but those of one group (paper section 3.5.3).

    Raises:
        SettingsError: the group is unknown.
    """
    if group not in GROUPS:
        raise SettingsError(f"unknown group of tasks {group!r}; groups are {sorted(GROUPS)}")
    return tuple(name for key, names in GROUPS.items() if key != group for name in names)


SUPERVISED = tuple(name for names in GROUPS.values() for name in names)
LARGE = (WMT_EN_DE.name, WMT_EN_FR.name, CNN_DAILYMAIL.name)

MIXTURES: dict[str, NamedMixture] = {
    "glue_v002_proportional": NamedMixture(GROUPS["glue"]),
    "super_glue_v102_proportional": NamedMixture(GROUPS["super_glue"]),
    "large_supervised_equal": NamedMixture(LARGE, "equal"),
    "large_supervised_proportional": NamedMixture(LARGE),
    "supervised_equal": NamedMixture(SUPERVISED, "equal"),
    "supervised_proportional": NamedMixture(SUPERVISED),
    "supervised_without_glue": NamedMixture(leave_one_out("glue")),
    "supervised_without_super_glue": NamedMixture(leave_one_out("super_glue")),
    "supervised_without_cnn_dailymail": NamedMixture(leave_one_out(CNN_DAILYMAIL.name)),
    "supervised_without_squad": NamedMixture(leave_one_out(SQUAD.name)),
    "supervised_without_wmt_en_de": NamedMixture(leave_one_out(WMT_EN_DE.name)),
    "supervised_without_wmt_en_fr": NamedMixture(leave_one_out(WMT_EN_FR.name)),
    "supervised_without_wmt_en_ro": NamedMixture(leave_one_out(WMT_EN_RO.name)),
    "en_mix": NamedMixture(
        (*GROUPS["glue"], *GROUPS["super_glue"], SQUAD.name), c4=C4_RATE, c4_rate="stated"
    ),
    "all_equal": NamedMixture(SUPERVISED, "equal", c4=C4_EXAMPLES),
    "all_proportional": NamedMixture(SUPERVISED, c4=C4_EXAMPLES),
    "all_mix": NamedMixture(SUPERVISED, c4=C4_RATE, c4_rate="stated"),
    "leave_one_out_glue": NamedMixture(leave_one_out("glue"), c4=C4_EXAMPLES),
    "leave_one_out_super_glue": NamedMixture(leave_one_out("super_glue"), c4=C4_EXAMPLES),
    "leave_one_out_cnn_dailymail": NamedMixture(leave_one_out(CNN_DAILYMAIL.name), c4=C4_EXAMPLES),
    "leave_one_out_squad": NamedMixture(leave_one_out(SQUAD.name), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_de": NamedMixture(leave_one_out(WMT_EN_DE.name), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_fr": NamedMixture(leave_one_out(WMT_EN_FR.name), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_ro": NamedMixture(leave_one_out(WMT_EN_RO.name), c4=C4_EXAMPLES),
}


def mixture_named(name: str) -> NamedMixture:
    """Return a mixture.

    Raises:
        SettingsError: no mixture has this name.
    """
    if name not in MIXTURES:
        raise SettingsError(
            f"tasks.mixture is {name!r}; mixtures are {list(MIXTURES)}{nearest(name, MIXTURES)}"
        )
    return MIXTURES[name]


def mixture_settings(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the mixture that a tree of settings names.

    Args:
        tree: nested settings of a run file, an override or an experiment.

    Raises:
        SettingsError: the mixture is unknown, or the tree sets one of its settings otherwise.
    """
    tasks = tree.get("tasks")
    name = tasks.get("mixture") if isinstance(tasks, Mapping) else None
    if not name:
        return {}
    mixture = mixture_named(str(name))
    replacement: dict[str, dict[str, Any]] = {
        "tasks": {"names": list(mixture.names)},
        "finetune": {
            "mixture": mixture.kind,
            "mixture_examples": "released",
            "mixture_weights": mixture.weights,
        },
    }
    for section, values in replacement.items():
        explicit = tree.get(section)
        for key in sorted(values):
            if isinstance(explicit, Mapping) and explicit.get(key, values[key]) != values[key]:
                raise SettingsError(
                    f"tasks.mixture {name!r} sets {section}.{key}, which is also set to "
                    f"{explicit[key]!r}; remove one of the two"
                )
    replacement["finetune"] |= _corpus_settings(mixture, tree.get("finetune"))
    return replacement


def _corpus_settings(mixture: NamedMixture, finetune: Any) -> dict[str, Any]:
    """Return the settings of the corpus in a mixture, except those that the run sets itself."""
    if not mixture.c4:
        return {}
    explicit = finetune if isinstance(finetune, Mapping) else {}
    values = {"corpus_examples": mixture.c4, "corpus_rate": mixture.c4_rate}
    return {key: value for key, value in values.items() if key not in explicit}


def reset_mixture(change: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that reset the run's mixture for an experiment with tasks of its own.

    Args:
        change: nested settings that the experiment changes.
        tree: settings of the run.
    """
    tasks, mixture = change.get("tasks"), tree["tasks"]["mixture"]
    if not mixture or not isinstance(tasks, Mapping) or not {"names", "mixture"} & set(tasks):
        return {}
    finetune: dict[str, Any] = {"mixture_weights": {}}
    if MIXTURES[mixture].c4:
        finetune |= {"corpus_examples": 0, "corpus_rate": "limited"}
    return {"tasks": {"mixture": ""}, "finetune": finetune}
