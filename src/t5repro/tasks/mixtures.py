"""How often each task is drawn in a mixture (paper section 3.5.2).

Which tasks a named mixture has is in `config.mixtures`.
"""

import math
from collections.abc import Mapping
from typing import Literal

from t5repro.errors import SettingsError
from t5repro.tasks.registry import TASKS


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


def stated_share(
    counts: Mapping[str, float], rate: float, *, limit: float, temperature: float
) -> float:
    """Return the share of one more member whose rate is stated, neither limited nor tempered.

    Args:
        counts: examples of each other member, drawn in proportion.
        rate: the stated rate; above 0.
        limit: K, of the others.
        temperature: T, of the others.

    Source: released code, `t5.data.mixtures.rate_unsupervised`.
    """
    from scipy.special import expit

    shares = mixing_rates(counts, kind="proportional", limit=limit, temperature=temperature)
    name = max(shares, key=shares.__getitem__)
    # One rate and its share say what all rates add up to; logarithms keep the power in range.
    total = math.log(min(counts[name], limit)) / temperature - math.log(shares[name])
    return float(expit(math.log(rate) - total))


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


def mixture_counts(
    counted: Mapping[str, int],
    *,
    examples: Literal["rows", "released"],
    weights: Mapping[str, float],
) -> dict[str, float]:
    """Return the examples that a mixture counts for each task.

    Args:
        counted: task -> training rows at hand; a task of no rows must not be in it.
        examples: ``rows`` as counted; ``released`` takes the constants of the released GLUE and
            SuperGLUE mixtures where a task has one.
        weights: task -> examples it counts for, whatever it has.

    Raises:
        SettingsError: a weight is for a task that has no training rows.
    """
    if unknown := sorted(set(weights) - set(counted)):
        raise SettingsError(
            f"finetune.mixture_weights names {unknown}, which have no training rows; "
            f"allowed: {sorted(counted)}"
        )
    counts: dict[str, float] = {}
    for name, rows in counted.items():
        constant = TASKS[name].train_rows if examples == "released" and name in TASKS else None
        counts[name] = weights.get(name, float(constant or rows))
    return counts
