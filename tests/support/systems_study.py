"""What is read of the search of the rates of the systems before T5."""

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
    """Return system -> rate of the stage -> experiment that tried it, the first one first.

    The rates of fine-tuning were tried with the best one of pre-training, which may be another than
    the first.
    """
    found: dict[str, dict[float, str]] = {}
    for system in NAMES:
        names = [
            system,
            *(name for name in _experiments() if name.startswith(system + INFIX[stage])),
        ]
        if stage == "finetune":
            best = _rate("pretrain", names[-1])
            names[0] = trainings_of_search("pretrain").get(system, {}).get(best, system)
        found[system] = {_rate(stage, name): name for name in names}
        assert len(found[system]) == len(names), system
    if stage == "pretrain":
        del found["mt_dnn"]  # has BERT's
    return found


def _experiments() -> list[str]:
    return [one.name for one in settings_of(SEARCH).experiments]


def _rate(stage: Stage, experiment: str) -> float:
    rate: float = getattr(experiment_settings(SEARCH, experiment), stage).learning_rate.factor
    return rate


def chosen(system: str) -> str:
    """Return the experiment of the search with the best rates of both stages."""
    best, _ = neighbours(losses_of_search("finetune")[system])
    return trainings_of_search("finetune")[system][best]


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
