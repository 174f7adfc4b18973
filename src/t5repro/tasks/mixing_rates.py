"""How often each task of a mixture is drawn (paper section 3.5.2).

`config.presets.mixtures` says which tasks a named mixture has. This module imports no task, so that
an edited task does not rerun `finetune` unless its examples change.
"""

import math
from collections.abc import Mapping
from typing import Literal

from t5repro.errors import SettingsError
from t5repro.task_groups import RELEASED_GROUPS

RELEASED_TRAIN_ROWS = {
    task: rows
    for tasks in RELEASED_GROUPS.values()
    for task, rows in tasks.items()
    if rows is not None
}


def mixing_rates(
    counts: Mapping[str, float],
    *,
    kind: Literal["proportional", "equal"],
    limit: float,
    temperature: float,
) -> dict[str, float]:
    """Return the share of each task in a mixture; shares add up to 1.

    A task's rate is ``min(examples, limit) ** (1 / temperature)``.

    Args:
        counts: examples of each task.
        kind: ``proportional`` as above; ``equal`` gives all tasks one rate.
        limit: K of the paper; the largest number of examples that counts.
        temperature: T of the paper; 1 leaves the rates unchanged, infinity makes them equal.

    Raises:
        SettingsError: the mixture is empty; a count, the limit or the temperature is not above
            zero; or `kind` is unknown.

    Source: paper section 3.5.2; released code, `seqio.utils.mixing_rate_num_examples`.
    """
    _check_mixture(counts, kind, {"limit": limit, "temperature": temperature})
    if kind == "equal":
        return dict.fromkeys(counts, 1.0 / len(counts))
    # Dividing by the largest first keeps the power from overflowing; shares do not change.
    sizes = {name: min(count, limit) for name, count in counts.items()}
    largest = max(sizes.values())
    rates = {name: (size / largest) ** (1.0 / temperature) for name, size in sizes.items()}
    total = sum(rates.values())
    return {name: rate / total for name, rate in rates.items()}


def fixed_rate_share(
    counts: Mapping[str, float], rate: float, *, limit: float, temperature: float
) -> float:
    """Return the share of one more member with a fixed rate, to which K and T do not apply.

    Args:
        counts: examples of each other member, drawn in proportion.
        rate: the fixed rate; above 0.
        limit: K of these members.
        temperature: T of these members.

    Source: released code, `t5.data.mixtures.rate_unsupervised`.
    """
    from scipy.special import expit

    shares = mixing_rates(counts, kind="proportional", limit=limit, temperature=temperature)
    name = max(shares, key=shares.__getitem__)
    # The total of all rates is one member's rate divided by its share; logarithms keep the power
    # in range.
    log_total = math.log(min(counts[name], limit)) / temperature - math.log(shares[name])
    return float(expit(math.log(rate) - log_total))


def _check_mixture(counts: Mapping[str, float], kind: str, factors: Mapping[str, float]) -> None:
    if kind not in ("proportional", "equal"):
        raise SettingsError(
            f"finetune.mixture is {kind!r}; allowed: 'proportional' or 'equal'; choose one of them"
        )
    if not counts:
        raise SettingsError("a mixture has no task; name at least one that has training rows")
    for name, count in counts.items():
        if not count > 0:
            raise SettingsError(
                f"a mixture contains task {name!r} with {count} training rows; allowed: at least "
                "one; remove the task from the mixture"
            )
    for name, factor in factors.items():
        if not factor > 0:
            raise SettingsError(f"the mixture's {name} is {factor}; allowed: above 0; correct it")


def mixture_counts(
    row_counts: Mapping[str, int],
    *,
    examples: Literal["rows", "released"],
    weights: Mapping[str, float],
) -> dict[str, float]:
    """Return the number of examples that a mixture counts for each task.

    Args:
        row_counts: task -> training rows; only tasks that have some.
        examples: ``rows`` as counted; ``released`` takes the constants of the released GLUE and
            SuperGLUE mixtures for the tasks that have one.
        weights: task -> number that replaces its count.

    Raises:
        SettingsError: a weight is for a task that has no training rows.
    """
    if unknown := sorted(set(weights) - set(row_counts)):
        raise SettingsError(
            f"finetune.mixture_weights names {unknown}, which have no training rows; "
            f"allowed: {sorted(row_counts)}"
        )
    counts = dict(row_counts)
    if examples == "released":
        counts |= {
            name: RELEASED_TRAIN_ROWS[name] for name in counts if name in RELEASED_TRAIN_ROWS
        }
    return {name: weights.get(name, float(count)) for name, count in counts.items()}
