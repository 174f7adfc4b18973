"""The settings of a run, and its choices where the paper and its released code disagree.

Choices with a number come from `decisions.json`, which `make generate` writes from the front
matter of ``docs/decisions``. `UNNUMBERED_CHOICES` are those that the paper itself varies.
"""

import functools
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.config.setting_names import describe
from t5repro.report.experiments import Experiment, flatten, format_value

MAX_VALUE_CHARS = 48  # of a value in the table of choices
# Locations of raw inputs are not properties of a result, and the page must not show local paths.
HIDDEN_PREFIXES = ("run.", "data.", "experiments")


@dataclass(frozen=True)
class Choice:
    """A question that paper and code leave open, and its answer.

    Attributes:
        number: number of the decision; empty for a choice that the paper itself varies.
        topic: the question.
        settings: settings that answer it.
        ours: behaviour of this project; shown if `settings` is empty.
    """

    number: str
    topic: str
    settings: tuple[str, ...]
    ours: str = ""


UNNUMBERED_CHOICES = (
    Choice("", "corruption pattern", ("pretrain.noise_mask",)),
    Choice("", "corruption rate", ("pretrain.noise_density",)),
    Choice("", "sampling rates of tasks", ("finetune.mixture", "finetune.mixture_limit")),
    Choice("", "scored split", ("evaluate.split",)),
    Choice("", "maximum length of an answer in tokens", ("evaluate.max_decode_length",)),
)


@functools.cache
def choices() -> tuple[Choice, ...]:
    """Return all choices: decisions by number, then those that the paper varies."""
    text = importlib.resources.files("t5repro.report").joinpath("decisions.json")
    decisions = json.loads(text.read_text(encoding="utf-8"))
    numbered = (
        Choice(decision["number"], decision["topic"], tuple(decision["settings"]), decision["ours"])
        for decision in decisions
    )
    return (*numbered, *UNNUMBERED_CHOICES)


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        name: dotted name.
        values: its value in each experiment.
        paper: its value in the paper's baseline.
        differs: whether an experiment's value is not the paper's.
        meaning: description of the setting.
    """

    name: str
    values: tuple[str, ...]
    paper: str
    differs: bool
    meaning: str


def all_settings(settings: Settings, experiments: Sequence[Experiment]) -> list[Setting]:
    """Return every setting that can affect a score, with the value of the paper's baseline."""
    resolved = [
        flatten(settings_of_experiment(settings, experiment.name)) for experiment in experiments
    ]
    paper = flatten(Settings())
    return [
        Setting(
            name=name,
            values=tuple(
                ", ".join(map(str, experiment.seeds))
                if name == "seed" and experiment.has_seeds
                else format_value(values[name])
                for experiment, values in zip(experiments, resolved, strict=True)
            ),
            paper=format_value(paper[name]),
            differs=any(values[name] != paper[name] for values in resolved),
            meaning=describe(name),
        )
        for name in resolved[0]
        if not name.startswith(HIDDEN_PREFIXES)
    ]


@dataclass(frozen=True)
class ChoiceInForce:
    """A choice with the values of its settings in this run."""

    number: str
    topic: str
    settings: tuple[Setting, ...]
    ours: str


def choices_in_force(settings: Sequence[Setting]) -> list[ChoiceInForce]:
    """Return every choice with the values of this run; long values are abbreviated.

    Args:
        settings: the result of `all_settings`.
    """
    by_name = {setting.name: setting for setting in settings}
    return [
        ChoiceInForce(
            number=choice.number,
            topic=choice.topic,
            settings=tuple(_abbreviate(by_name[name]) for name in choice.settings),
            ours=choice.ours,
        )
        for choice in choices()
    ]


def _abbreviate(setting: Setting) -> Setting:
    def cell(text: str) -> str:
        return text if len(text) <= MAX_VALUE_CHARS else "see all settings"

    values = tuple(map(cell, setting.values))
    return replace(setting, values=values, paper=cell(setting.paper))


def changed_choices(settings: Settings) -> str:
    """Return the choices with another value than the default, as ``name=value; name=value``."""
    values, defaults = flatten(settings), flatten(Settings())
    names = dict.fromkeys(name for choice in choices() for name in choice.settings)
    texts = {name: format_value(values[name]) for name in names if values[name] != defaults[name]}
    return "; ".join(
        f"{name}={text if len(text) <= MAX_VALUE_CHARS else '(its own)'}"
        for name, text in texts.items()
    )
