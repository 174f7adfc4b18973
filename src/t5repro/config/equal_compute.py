"""Experiments at equal compute: steps of pre-training that follow from `pretrain.flops`."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from t5repro.config.flops import step_flops
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import RunVocab
from t5repro.config.tree import lookup
from t5repro.errors import SettingsError


def check_budget(change: Mapping[str, Any]) -> None:
    """Refuse a tree of settings that states both steps and operations of pre-training.

    Raises:
        SettingsError: it does.
    """
    flops, steps = (lookup(change, "pretrain", name) for name in ("flops", "steps"))
    if flops and steps is not None:
        raise SettingsError(
            f"pretrain.steps is {steps} and pretrain.flops {flops}, from which the steps follow; "
            "remove one of the two",
            keys=("pretrain", "flops"),
        )


def set_steps(tree: dict[str, Any], earlier_flops: float = 0) -> None:
    """Set the steps of pre-training that take most nearly `pretrain.flops` operations.

    Invalid settings are left to the validation of the whole tree.

    Args:
        tree: complete settings.
        earlier_flops: operations of the earlier phases of the pre-training.

    Raises:
        SettingsError: one step takes more than twice as many operations as the phases leave.
    """
    if not lookup(tree, "pretrain", "flops"):
        return
    try:
        pretrain = PretrainSettings.model_validate(tree["pretrain"])
        model = ModelSettings.model_validate(tree["model"])
        vocab = RunVocab.model_validate(tree["vocab"])
    except ValidationError:
        return
    step = step_flops(model, pretrain, embedding_rows=vocab.embedding_rows)
    steps = round((pretrain.flops - earlier_flops) / step)
    if steps < 1:
        earlier = f"its earlier phases take {earlier_flops:.3g} and " if earlier_flops else ""
        raise SettingsError(
            f"pretrain.flops is {pretrain.flops:g}, but {earlier}one step takes {step:.3g} "
            f"operations; allowed is {earlier_flops + step:.3g} or more, or set pretrain.steps "
            "to 0",
            keys=("pretrain", "flops"),
        )
    tree["pretrain"]["steps"] = steps
