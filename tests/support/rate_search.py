"""What is read of the search of the rates of the systems before T5."""

from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Literal

from study_results import SEARCH, experiment_settings, held_out_losses, settings_of, training_losses

from t5repro.config.presets.systems import PRESETS

SYSTEM_NAMES = ("t5", *PRESETS)
PRETRAINED_AS = {"mt_dnn": "bert"}  # one training for both
Stage = Literal["pretrain", "finetune"]
INFIX: Mapping[Stage, str] = {"pretrain": "_pretraining_", "finetune": "_finetuning_"}


@cache
def trainings_of_search(stage: Stage) -> Mapping[str, dict[float, str]]:
    """Return system -> rate of the stage -> experiment that tried it, the first one first.

    The rates of fine-tuning were tried with the best rate of pre-training, which may be another
    than the first.
    """
    if stage == "pretrain":
        searched = (name for name in SYSTEM_NAMES if name not in PRETRAINED_AS)
        return {name: _tried(stage, name, name) for name in searched}
    pretrained = trainings_of_search("pretrain")
    found = {}
    for system in SYSTEM_NAMES:
        best = _rate("pretrain", _further(stage, system)[-1])
        first = pretrained[system][best] if system in pretrained else system
        found[system] = _tried(stage, system, first)
    return found


def _tried(stage: Stage, system: str, first: str) -> dict[float, str]:
    """Return rate -> experiment that tried it, for the first one and all further ones."""
    names = [first, *_further(stage, system)]
    tried = {_rate(stage, name): name for name in names}
    assert len(tried) == len(names), system
    return tried


def _further(stage: Stage, system: str) -> list[str]:
    """Return the experiments that try a further rate of the stage."""
    names = (one.name for one in settings_of(SEARCH).experiments)
    return [name for name in names if name.startswith(system + INFIX[stage])]


def _rate(stage: Stage, experiment: str) -> float:
    rate: float = getattr(experiment_settings(SEARCH, experiment), stage).learning_rate.factor
    return rate


@cache
def losses_of_search(stage: Stage) -> Mapping[str, dict[float, float]]:
    """Return system -> rate of the stage, rising -> the loss by which the rule chooses."""
    return {
        system: {rate: _loss(stage, name) for rate, name in sorted(tried.items())}
        for system, tried in trainings_of_search(stage).items()
    }


def _loss(stage: Stage, experiment: str) -> float:
    """Return the last loss on held-out text, or the mean of the last quarter of fine-tuning."""
    if stage == "pretrain":
        return held_out_losses(SEARCH, experiment)[-1]
    losses = training_losses(SEARCH, stage, experiment)
    return fmean(loss for step, loss in losses.items() if step > 0.75 * max(losses))


def best_rate(tried: Mapping[float, float]) -> float:
    """Return the rate of least loss."""
    return min(tried, key=tried.__getitem__)


def has_ended(tried: Mapping[float, float]) -> bool:
    """Return whether the best rate has a worse one on either side."""
    return min(tried) < best_rate(tried) < max(tried)


def pretraining_rate_table() -> list[list[str]]:
    """Return of each system its best rate, and the losses with half of it, with it and twice it."""
    rows = []
    for system, tried in losses_of_search("pretrain").items():
        best = best_rate(tried)
        losses = [f"{tried[times * best]:.3f}" for times in (0.5, 1, 2)]
        rows.append([f"`{system}`", f"{best:g}", *losses])
    return rows


# Of the systems before T5.
FINETUNING_RATES = (6.25e-5, 1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3)


def finetuning_rate_table() -> list[list[str]]:
    """Return of each system before T5 the losses with each rate that was tried."""
    rows = []
    for system, tried in losses_of_search("finetune").items():
        if system != "t5":
            assert set(tried) <= set(FINETUNING_RATES), system
            losses = [f"{tried[rate]:.3f}" if rate in tried else "" for rate in FINETUNING_RATES]
            rows.append([f"`{system}`", *losses])
    return rows
