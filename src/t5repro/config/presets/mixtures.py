"""Mixtures: tasks and how often each is drawn (paper sections 3.5.2 and 3.5.3).

Those with C4 draw examples of the run's corpus, too (`finetune.corpus_examples`); `supervised_*`
are the same mixtures without it.
"""

from dataclasses import dataclass
from typing import Any, Literal

from t5repro.config.presets.preset import Preset
from t5repro.errors import SettingsError
from t5repro.task_groups import ANSWERED_AS, RELEASED_GROUPS
from t5repro.task_table import (
    CNN_DAILYMAIL,
    GLUE_RTE,
    SQUAD,
    SUPER_GLUE_RTE,
    TASKS,
    WMT_EN_DE,
    WMT_EN_FR,
    WMT_EN_RO,
)

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
class Mixture:
    """Tasks and their rates.

    Attributes:
        tasks: tasks that are trained on.
        kind: value of ``finetune.mixture``.
        c4: value of ``finetune.corpus_examples``; 0 if the mixture does not draw the corpus.
        c4_rate: value of ``finetune.corpus_rate``: whether K and T apply to the corpus.
        halves_rte: whether the two RTE count half each where both are drawn.
    """

    tasks: tuple[str, ...]
    kind: Literal["proportional", "equal"] = "proportional"
    c4: float = 0.0
    c4_rate: Literal["limited", "stated"] = "limited"
    halves_rte: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Tasks that are trained on, each followed by the names it is evaluated under."""
        return tuple(name for task in self.tasks for name in (task, *EVALUATED_AS[task]))

    @property
    def weights(self) -> dict[str, float]:
        """Weights that replace the count of a task."""
        is_shared = self.kind == "proportional" and {*RTE_TASKS} <= {*self.tasks}
        return dict.fromkeys(RTE_TASKS, RTE_WEIGHT) if is_shared and self.halves_rte else {}

    @property
    def values(self) -> dict[str, Any]:
        """The settings of the tasks and their rates."""
        rates: dict[str, Any] = {
            "mixture": self.kind,
            "mixture_examples": "released",
            "mixture_weights": self.weights,
        }
        if self.c4:
            rates |= {"corpus_examples": self.c4, "corpus_rate": self.c4_rate}
        return {"tasks": {"names": list(self.names)}, "finetune": rates}


def leave_one_out(group: str) -> tuple[str, ...]:
    """Return all supervised tasks except one group (paper section 3.5.3).

    Raises:
        SettingsError: the group is unknown.
    """
    if group not in RELEASED_GROUPS:
        raise SettingsError(
            f"unknown group of tasks {group!r}; groups are {sorted(RELEASED_GROUPS)}"
        )
    return tuple(name for key, names in RELEASED_GROUPS.items() if key != group for name in names)


SUPERVISED = tuple(name for names in RELEASED_GROUPS.values() for name in names)
LARGE = (WMT_EN_DE.name, WMT_EN_FR.name, CNN_DAILYMAIL.name)

MIXTURES: dict[str, Mixture] = {
    "glue_v002_proportional": Mixture(tuple(RELEASED_GROUPS["glue"])),
    "super_glue_v102_proportional": Mixture(tuple(RELEASED_GROUPS["super_glue"])),
    "large_supervised_equal": Mixture(LARGE, "equal"),
    "large_supervised_proportional": Mixture(LARGE),
    "supervised_equal": Mixture(SUPERVISED, "equal"),
    "supervised_proportional": Mixture(SUPERVISED),
    "supervised_without_glue": Mixture(leave_one_out("glue")),
    "supervised_without_super_glue": Mixture(leave_one_out("super_glue")),
    "supervised_without_cnn_dailymail": Mixture(leave_one_out(CNN_DAILYMAIL.name)),
    "supervised_without_squad": Mixture(leave_one_out(SQUAD.name)),
    "supervised_without_wmt_en_de": Mixture(leave_one_out(WMT_EN_DE.name)),
    "supervised_without_wmt_en_fr": Mixture(leave_one_out(WMT_EN_FR.name)),
    "supervised_without_wmt_en_ro": Mixture(leave_one_out(WMT_EN_RO.name)),
    "en_mix": Mixture(
        (*RELEASED_GROUPS["glue"], *RELEASED_GROUPS["super_glue"], SQUAD.name),
        c4=C4_RATE,
        c4_rate="stated",
        halves_rte=False,
    ),
    "all_equal": Mixture(SUPERVISED, "equal", c4=C4_EXAMPLES),
    "all_proportional": Mixture(SUPERVISED, c4=C4_EXAMPLES),
    "all_mix": Mixture(SUPERVISED, c4=C4_RATE, c4_rate="stated"),
    "leave_one_out_glue": Mixture(leave_one_out("glue"), c4=C4_EXAMPLES),
    "leave_one_out_super_glue": Mixture(leave_one_out("super_glue"), c4=C4_EXAMPLES),
    "leave_one_out_cnn_dailymail": Mixture(leave_one_out(CNN_DAILYMAIL.name), c4=C4_EXAMPLES),
    "leave_one_out_squad": Mixture(leave_one_out(SQUAD.name), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_de": Mixture(leave_one_out(WMT_EN_DE.name), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_fr": Mixture(leave_one_out(WMT_EN_FR.name), c4=C4_EXAMPLES),
    "leave_one_out_wmt_en_ro": Mixture(leave_one_out(WMT_EN_RO.name), c4=C4_EXAMPLES),
}

RELEASED = "released code, t5.data.mixtures (sections 3.5.2 and 3.5.3)"
WITHOUT_C4 = f"{RELEASED}, without C4"
PRESETS = {
    name: Preset(mixture.values, WITHOUT_C4 if name.startswith("supervised_") else RELEASED)
    for name, mixture in MIXTURES.items()
}
