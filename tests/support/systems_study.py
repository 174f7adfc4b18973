"""What is read of the committed study of the systems before T5, and of the search of its rates."""

from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Literal

from study_results import experiment_settings, held_out_losses, settings_of, training_losses

from t5repro.config.presets.systems import PRESETS

SYSTEMS, SEARCH = "desk_systems", "desk_rates"
NAMES = ("t5", *PRESETS)
Stage = Literal["pretrain", "finetune"]
INFIX: Mapping[Stage, str] = {"pretrain": "_pretraining_", "finetune": "_finetuning_"}


def trainings_of_search(stage: Stage) -> Mapping[str, dict[float, str]]:
    """Return system -> rate of the stage -> experiment that tried it, the chosen one first."""
    found: dict[str, dict[float, str]] = {name: {} for name in NAMES}
    for name in (one.name for one in settings_of(SEARCH).experiments):
        system, infix, _ = name.partition(INFIX[stage])
        if infix or system in found:
            rate = getattr(experiment_settings(SEARCH, name), stage).learning_rate.factor
            assert rate not in found[system], name
            found[system][rate] = name
    if stage == "pretrain":
        del found["mt_dnn"]  # has BERT's
    return found


@cache
def losses_of_search(stage: Stage) -> Mapping[str, dict[float, float]]:
    """Return system -> rate of the stage -> the loss by which the rule chooses, in that order."""
    return {
        system: dict(sorted((rate, _loss(stage, name)) for rate, name in tried.items()))
        for system, tried in trainings_of_search(stage).items()
    }


def _loss(stage: Stage, experiment: str) -> float:
    """Return the last loss on held-out text, or the mean of the last quarter of fine-tuning."""
    if stage == "pretrain":
        return held_out_losses(SEARCH, experiment)[-1]
    losses = training_losses(SEARCH, stage, experiment)
    return fmean(loss for step, loss in losses.items() if step > 0.75 * max(losses))


def neighbours(tried: Mapping[float, float]) -> tuple[float, list[float]]:
    """Return the rate of least loss, and the losses with half of it, with it and with its double.

    Raises:
        ValueError: the least loss has no worse one on one of its sides.
    """
    rates = sorted(tried)
    best = min(rates, key=tried.__getitem__)
    place = rates.index(best)
    if place in (0, len(rates) - 1):
        raise ValueError(f"{best} is at an end of {rates}")
    return best, [tried[rate] for rate in rates[place - 1 : place + 2]]


def rate_table() -> list[list[str]]:
    """Return of each system both rates that the rule chose, each with three losses."""
    rows = []
    for system in NAMES:
        cells = []
        for stage in INFIX:
            if tried := losses_of_search(stage).get(system):
                best, losses = neighbours(tried)
                cells += [f"{best:g}", *(f"{loss:.3f}" for loss in losses)]
            else:
                cells += ["BERT's", "", "", ""]
        rows.append([f"`{system}`", *cells])
    return rows
