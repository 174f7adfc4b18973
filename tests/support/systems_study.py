"""What is read of the committed study of the systems before T5, and of the search of its rates."""

from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Literal

from study_results import (
    experiment_settings,
    held_out,
    held_out_losses,
    history,
    manifest,
    scores_by_experiment,
    settings_of,
    training_losses,
)

from t5repro.config.presets.systems import PRESETS
from t5repro.report.titles import format_mean

SYSTEMS, SEARCH = "desk_systems", "desk_rates"
NAMES = ("t5", *PRESETS)
Stage = Literal["pretrain", "finetune"]
KEYS = ("glue_sst2.accuracy", "glue_qqp.accuracy", "glue_qqp.f1")
INFIX: Mapping[Stage, str] = {"pretrain": "_pretraining_", "finetune": "_finetuning_"}


def trainings_of_search(stage: Stage) -> Mapping[str, dict[float, str]]:
    """Return system -> rate of the stage -> experiment that tried it, the first one first.

    The rates of fine-tuning were tried with the best one of pre-training, which may be another than
    the first.
    """
    found: dict[str, dict[float, str]] = {name: {} for name in NAMES}
    for system in NAMES:
        names = [
            system,
            *(name for name in _experiments() if name.startswith(system + INFIX[stage])),
        ]
        if stage == "finetune" and _rate("pretrain", names[-1]) != _rate("pretrain", system):
            del names[0]
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


def pretrained_as(system: str) -> str:
    return "bert" if system == "mt_dnn" else system


def targets_seen(system: str) -> int:
    """Return the targets of all steps of the first seed's pre-training."""
    return sum(int(row["tokens"]) for row in history(SYSTEMS, "pretrain", pretrained_as(system)))


def system_table() -> list[list[str]]:
    """Return of each system its size, what it saw and learnt, and its scores."""
    rows = []
    for system in NAMES:
        pretrained = pretrained_as(system)
        counters = manifest(SYSTEMS, "pretrain", pretrained)["counters"]
        scores = scores_by_experiment(SYSTEMS)
        rows.append(
            [
                f"`{system}`",
                f"{counters['parameters']:,}",
                f"{targets_seen(system) / 1e6:.1f}",
                format_mean(held_out(SYSTEMS, pretrained), digits=3),
                *(format_mean(scores[system, key], digits=2) for key in KEYS),
            ]
        )
    return rows
