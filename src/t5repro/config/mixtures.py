"""Mixtures by name: which tasks, how often (paper section 3.5.2 and 3.5.3).

`tasks.mixture` chooses one; it sets the settings that `resolve` names and nothing else, so what is
recorded says the tasks and rates themselves. To add a mixture, add an entry to `MIXTURES`.

Source: released code, `t5.data.mixtures`. Its mixtures that hold C4 are listed, and refused: text
of the corpus is drawn in pre-training only. `supervised_*` are those without C4.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from t5repro.errors import SettingsError

GROUPS: dict[str, tuple[str, ...]] = {
    "glue": (
        "glue_cola",
        "glue_sst2",
        "glue_mrpc",
        "glue_qqp",
        "glue_stsb",
        "glue_mnli",
        "glue_qnli",
        "glue_rte",
    ),
    "super_glue": (
        "dpr",
        "super_glue_wsc",
        "super_glue_boolq",
        "super_glue_cb",
        "super_glue_copa",
        "super_glue_multirc",
        "super_glue_record",
        "super_glue_rte",
        "super_glue_wic",
    ),
    "cnn_dailymail": ("cnn_dailymail",),
    "squad": ("squad",),
    "wmt_en_de": ("wmt_en_de",),
    "wmt_en_fr": ("wmt_en_fr",),
    "wmt_en_ro": ("wmt_en_ro",),
}

# Trained on in one file, scored on others: weight 0 in the released mixtures.
SCORED_WITH = {"glue_mnli": ("glue_mnli_matched", "glue_mnli_mismatched")}

RTE_WEIGHT = 1_245.0  # half of 2,490 each, where the RTE of both benchmarks is in a mixture


@dataclass(frozen=True)
class NamedMixture:
    """One mixture.

    Attributes:
        tasks: what is trained on.
        kind: ``finetune.mixture``.
        holds_c4: whether the released one draws from C4, too.
    """

    tasks: tuple[str, ...]
    kind: Literal["proportional", "equal"] = "proportional"
    holds_c4: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What is trained on, and what is scored with it."""
        return tuple(name for task in self.tasks for name in (task, *SCORED_WITH.get(task, ())))

    @property
    def weights(self) -> dict[str, float]:
        """Weights that are neither a count nor a constant of a task."""
        both = {"glue_rte", "super_glue_rte"}
        shared = self.kind == "proportional" and both <= set(self.tasks)
        return dict.fromkeys(sorted(both), RTE_WEIGHT) if shared else {}


def leave_one_out(group: str) -> tuple[str, ...]:
    """Return all supervised tasks but those of one group (paper section 3.5.3).

    Raises:
        SettingsError: the group is unknown.
    """
    if group not in GROUPS:
        raise SettingsError(f"unknown group of tasks {group!r}; groups are {sorted(GROUPS)}")
    return tuple(name for other, names in GROUPS.items() if other != group for name in names)


SUPERVISED = tuple(name for names in GROUPS.values() for name in names)
LARGE = ("wmt_en_de", "wmt_en_fr", "cnn_dailymail")

MIXTURES: dict[str, NamedMixture] = {
    "glue_v002_proportional": NamedMixture(GROUPS["glue"]),
    "super_glue_v102_proportional": NamedMixture(GROUPS["super_glue"]),
    "large_supervised_equal": NamedMixture(LARGE, "equal"),
    "large_supervised_proportional": NamedMixture(LARGE),
    "supervised_equal": NamedMixture(SUPERVISED, "equal"),
    "supervised_proportional": NamedMixture(SUPERVISED),
    "supervised_without_glue": NamedMixture(leave_one_out("glue")),
    "supervised_without_super_glue": NamedMixture(leave_one_out("super_glue")),
    "supervised_without_cnn_dailymail": NamedMixture(leave_one_out("cnn_dailymail")),
    "supervised_without_squad": NamedMixture(leave_one_out("squad")),
    "supervised_without_wmt_en_de": NamedMixture(leave_one_out("wmt_en_de")),
    "supervised_without_wmt_en_fr": NamedMixture(leave_one_out("wmt_en_fr")),
    "supervised_without_wmt_en_ro": NamedMixture(leave_one_out("wmt_en_ro")),
    "en_mix": NamedMixture(
        (*GROUPS["glue"], *GROUPS["super_glue"], *GROUPS["squad"]), holds_c4=True
    ),
    "all_equal": NamedMixture(SUPERVISED, "equal", holds_c4=True),
    "all_proportional": NamedMixture(SUPERVISED, holds_c4=True),
    "all_mix": NamedMixture(SUPERVISED, holds_c4=True),
    "leave_one_out_glue": NamedMixture(leave_one_out("glue"), holds_c4=True),
    "leave_one_out_super_glue": NamedMixture(leave_one_out("super_glue"), holds_c4=True),
    "leave_one_out_cnn_dailymail": NamedMixture(leave_one_out("cnn_dailymail"), holds_c4=True),
    "leave_one_out_squad": NamedMixture(leave_one_out("squad"), holds_c4=True),
    "leave_one_out_wmt_en_de": NamedMixture(leave_one_out("wmt_en_de"), holds_c4=True),
    "leave_one_out_wmt_en_fr": NamedMixture(leave_one_out("wmt_en_fr"), holds_c4=True),
    "leave_one_out_wmt_en_ro": NamedMixture(leave_one_out("wmt_en_ro"), holds_c4=True),
}


def mixture_named(name: str) -> NamedMixture:
    """Return a mixture that fine-tuning can draw.

    Raises:
        SettingsError: there is none of this name, or it holds C4.
    """
    usable = [other for other, mixture in MIXTURES.items() if not mixture.holds_c4]
    if name not in MIXTURES:
        close = difflib.get_close_matches(name, usable, n=1, cutoff=0.4)
        nearest = f"; nearest: {close[0]!r}" if close else ""
        raise SettingsError(f"tasks.mixture is {name!r}; mixtures are {usable}{nearest}")
    if MIXTURES[name].holds_c4:
        raise SettingsError(
            f"tasks.mixture is {name!r}, which draws from C4 beside the tasks; fine-tuning draws "
            f"from tasks only; allowed: {usable}"
        )
    return MIXTURES[name]


def resolve(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the mixture named in a tree of settings stands for.

    Args:
        tree: what a run file, an override or an arm states, nested.

    Raises:
        SettingsError: the mixture cannot be drawn, or the same tree states one of its settings.
    """
    tasks = tree.get("tasks")
    name = tasks.get("mixture") if isinstance(tasks, Mapping) else None
    if not name:
        return {}
    mixture = mixture_named(str(name))
    stands_for: dict[str, dict[str, Any]] = {
        "tasks": {"names": list(mixture.names)},
        "finetune": {
            "mixture": mixture.kind,
            "mixture_examples": "released",
            "mixture_weights": mixture.weights,
        },
    }
    for section, values in stands_for.items():
        stated = tree.get(section)
        for key in sorted(values):
            if isinstance(stated, Mapping) and stated.get(key, values[key]) != values[key]:
                raise SettingsError(
                    f"tasks.mixture {name!r} sets {section}.{key}, which is also stated as "
                    f"{stated[key]!r}; leave one of the two out"
                )
    return stands_for


def without_mixture(change: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an arm that names its tasks itself takes back of the run's named mixture.

    Args:
        change: what the arm states, nested.
        tree: settings of the run.
    """
    tasks = change.get("tasks")
    if not tree["tasks"]["mixture"] or not isinstance(tasks, Mapping) or "names" not in tasks:
        return {}
    return {"tasks": {"mixture": ""}, "finetune": {"mixture_weights": {}}}
