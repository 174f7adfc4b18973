"""How often each task is drawn in a mixture (paper section 3.5.2).

To add a mixture, add an entry to `MIXTURES`.
"""

from collections.abc import Mapping
from typing import Literal

from t5repro.errors import SettingsError
from t5repro.tasks.registry import task_named

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

MIXTURES: dict[str, tuple[str, ...]] = {
    "glue_v002_proportional": GROUPS["glue"],
    "super_glue_v102_proportional": GROUPS["super_glue"],
    "large_supervised": ("wmt_en_de", "wmt_en_fr", "cnn_dailymail"),
    "all_supervised": tuple(name for group in GROUPS.values() for name in group),
}


def mixing_rates(
    counts: Mapping[str, float],
    *,
    kind: Literal["proportional", "equal"],
    limit: float,
    temperature: float,
    scale: float = 1.0,
) -> dict[str, float]:
    """Return the share of each task in a mixture; shares add up to 1.

    A task's rate is ``min(examples * scale, limit) ** (1 / temperature)``, in this order.

    Args:
        counts: examples of each task.
        kind: ``proportional`` as above; ``equal`` gives all tasks one rate.
        limit: K of the paper; examples from which a task counts no more.
        temperature: T of the paper; 1 leaves the rates alone, infinity makes them equal.
        scale: multiplies every count.

    Raises:
        SettingsError: there is no task, a count, the limit, the temperature or the scale is not
            above zero, or `kind` is unknown.

    Source: paper section 3.5.2; released code, `seqio.utils.mixing_rate_num_examples`.
    """
    _check(counts, kind, {"limit": limit, "temperature": temperature, "scale": scale})
    if kind == "equal":
        return dict.fromkeys(counts, 1.0 / len(counts))
    # Dividing by the largest first keeps the power away from overflow; shares do not change.
    sizes = {name: min(count * scale, limit) for name, count in counts.items()}
    largest = max(sizes.values())
    rates = {name: (size / largest) ** (1.0 / temperature) for name, size in sizes.items()}
    total = sum(rates.values())
    return {name: rate / total for name, rate in rates.items()}


def _check(counts: Mapping[str, float], kind: str, factors: Mapping[str, float]) -> None:
    if kind not in ("proportional", "equal"):
        raise SettingsError(
            f"finetune.mixture is {kind!r}; allowed: 'proportional' or 'equal'; choose one of them"
        )
    if not counts:
        raise SettingsError("a mixture has no task; name at least one that has training rows")
    for name, count in counts.items():
        if not count > 0:
            raise SettingsError(
                f"a mixture holds task {name!r} with {count} training rows; allowed: at least one; "
                "leave the task out of the mixture"
            )
    for name, factor in factors.items():
        if not factor > 0:
            raise SettingsError(f"the mixture's {name} is {factor}; allowed: above 0; correct it")


def mixture_counts(tasks: tuple[str, ...], counted: Mapping[str, int]) -> dict[str, int]:
    """Return the examples that the released mixtures count for each task.

    Args:
        tasks: names of tasks; those that are only evaluated are left out.
        counted: training rows at hand, for tasks without a constant in the released code.

    Raises:
        SettingsError: a task is unknown, or has neither a constant nor counted rows.
    """
    counts: dict[str, int] = {}
    for name in tasks:
        constant = task_named(name).train_rows
        if constant == 0:
            continue
        if constant is None and name not in counted:
            raise SettingsError(
                f"no training rows are counted for task {name!r}; counted: {sorted(counted)}; "
                "prepare its training files, or leave it out of the mixture"
            )
        counts[name] = counted[name] if constant is None else constant
    return counts


def leave_one_out(group: str) -> tuple[str, ...]:
    """Return all supervised tasks but those of one group (paper section 3.5.3).

    Raises:
        SettingsError: the group is unknown.
    """
    if group not in GROUPS:
        raise SettingsError(f"unknown group of tasks {group!r}; groups are {sorted(GROUPS)}")
    return tuple(name for other, names in GROUPS.items() if other != group for name in names)
