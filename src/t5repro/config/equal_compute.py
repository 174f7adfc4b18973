"""Experiments at equal compute: steps of pre-training that follow from `pretrain.flops`."""

from collections.abc import Mapping
from typing import Any

from t5repro.config.flops import step_flops
from t5repro.config.schema import Settings
from t5repro.config.tree import lookup
from t5repro.errors import SettingsError


def check_budget(stated: Mapping[str, Any]) -> None:
    """Refuse a tree of settings that states steps and operations of pre-training.

    Raises:
        SettingsError: it does.
    """
    flops, steps = (lookup(stated, "pretrain", name) for name in ("flops", "steps"))
    if flops and steps is not None:
        raise SettingsError(
            f"pretrain.steps is {steps} and pretrain.flops {flops}, from which the steps follow; "
            "remove one of the two",
            keys=("pretrain", "flops"),
        )


def steps_of_budget(settings: Settings) -> int:
    """Return the steps of pre-training that take most nearly `pretrain.flops` operations.

    Raises:
        SettingsError: one step takes more than twice as many.
    """
    step = step_flops(
        settings.model, settings.pretrain, embedding_rows=settings.vocab.embedding_rows
    )
    steps = round(settings.pretrain.flops / step)
    if not steps:
        raise SettingsError(
            f"pretrain.flops is {settings.pretrain.flops:g}, but one step takes {step:.3g} "
            f"operations; allowed is {step:.3g} or more, or set pretrain.steps to 0",
            keys=("pretrain", "flops"),
        )
    return steps
