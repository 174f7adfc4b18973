"""Mixtures by name: which tasks, how often (paper section 3.5.2 and 3.5.3).

`tasks.mixture` chooses one; it sets the settings that `resolve` names and nothing else, so what is
recorded says the tasks and rates themselves. To add a mixture, add an entry to `MIXTURES`.

Source: released code, `t5.data.mixtures`. Those with C4 draw the run's corpus beside the tasks
(`finetune.corpus_examples`); `supervised_*` are the same without it.
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

C4_EXAMPLES = 364_868_892.0  # pages of English C4, the released code's number of its examples
C4_RATE = 1_000_000.0  # the released `rate_unsupervised`: a rate, whatever the corpus holds

RTE_WEIGHT = 1_245.0  # half of 2,490 each, where the RTE of both benchmarks is in a mixture


@dataclass(frozen=True)
class NamedMixture:
    """One mixture.

    Attributes:
        tasks: what is trained on.
        kind: ``finetune.mixture``.
        c4: ``finetune.corpus_examples``, where the mixture draws the corpus, too; 0: it does not.
        c4_rate: ``finetune.corpus_rate``: whether K and T apply to it.
    """

    tasks: tuple[str, ...]
    kind: Literal["proportional", "equal"] = "proportional"
    c4: float = 0.0
    c4_rate: Literal["limited", "stated"] = "limited"

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
        (*GROUPS["glue"], *GROUPS["super_glue"], *GROUPS["squad"]), c4=C4_RATE, c4_rate="stated"
    ),
    "all_equal": NamedMixture(SUPERVISED, "equal", c4=C4_EXAMPLES),
    "all_proportional": NamedMixture(SUPERVISED, c4=C4_EXAMPLES),
    "all_mix": NamedMixture(SUPERVISED, c4=C4_RATE, c4_rate="stated"),
    "leave_one_out_glue": NamedMixture(leave_one_out("glue"), c4=C4_EXAMPLES),
    "leave_one_out_super_glue": NamedMixture(leave_one_out("super_glue"), c4=C4_EXAMPLES),
    "leave_one_out_cnn_dailymail": NamedMixture(leave_one_out("cnn_dailymail"), c4=C4_EXAMPLES),
    "leave_one_out_squad": NamedMixture(leave_one_out("squad"), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_de": NamedMixture(leave_one_out("wmt_en_de"), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_fr": NamedMixture(leave_one_out("wmt_en_fr"), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_ro": NamedMixture(leave_one_out("wmt_en_ro"), c4=C4_EXAMPLES),
}


def mixture_named(name: str) -> NamedMixture:
    """Return a mixture.

    Raises:
        SettingsError: there is none of this name.
    """
    if name not in MIXTURES:
        close = difflib.get_close_matches(name, MIXTURES, n=1, cutoff=0.4)
        nearest = f"; nearest: {close[0]!r}" if close else ""
        raise SettingsError(f"tasks.mixture is {name!r}; mixtures are {list(MIXTURES)}{nearest}")
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
    stands_for["finetune"] |= _corpus_of(mixture, tree.get("finetune"))
    return stands_for


def _corpus_of(mixture: NamedMixture, stated: Any) -> dict[str, Any]:
    """Return how a mixture draws the corpus; what a run states of that itself goes on top."""
    if not mixture.c4:
        return {}
    own = stated if isinstance(stated, Mapping) else {}
    drawn = {"corpus_examples": mixture.c4, "corpus_rate": mixture.c4_rate}
    return {key: value for key, value in drawn.items() if key not in own}


def without_mixture(change: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an arm with tasks or a mixture of its own takes back of the run's named mixture.

    Args:
        change: what the arm states, nested.
        tree: settings of the run.
    """
    tasks, known = change.get("tasks"), tree["tasks"]["mixture"]
    if not known or not isinstance(tasks, Mapping) or not {"names", "mixture"} & set(tasks):
        return {}
    taken_back: dict[str, Any] = {"mixture_weights": {}}
    if MIXTURES[known].c4:
        taken_back |= {"corpus_examples": 0, "corpus_rate": "limited"}
    return {"tasks": {"mixture": ""}, "finetune": taken_back}
