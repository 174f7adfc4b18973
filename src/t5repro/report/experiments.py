"""The experiments of a report: arms of the run file, grouped over their seeds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

from t5repro.config.experiments import continuing, pretraining_phases, settings_of_experiment
from t5repro.config.groups import finetunings
from t5repro.config.origins import FREE_KEYS
from t5repro.config.presets.table import preset_of
from t5repro.config.schema import Experiment as Entry
from t5repro.config.schema import Settings
from t5repro.config.setting_names import unrecorded_defaults
from t5repro.config.system_rows import NO_ROW, Placement, placement
from t5repro.report.published_scores import rows_named

NO_PRETRAINING_CHANGE = {"pretrain.steps": 0}


@dataclass(frozen=True)
class Experiment:
    """One experiment of the page.

    An arm is one entry of `experiments` in the run file: one training with one seed.

    Attributes:
        name: name of the first arm.
        arms: arms that differ only in the seed.
        seeds: the seed of each arm.
        style: number of its colour.
        changes: dotted setting -> value it changes; without the seed if there are several arms.
        row: row of the paper that it reproduces.
        paper_row: that row with the tables that print it.
        system: system before T5, by its preset; empty for T5.
        placement: its row in the tables of these systems.
    """

    name: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    style: int = 0
    changes: Mapping[str, str] = field(default_factory=dict)
    row: str = ""
    paper_row: str = ""
    system: str = ""
    placement: Placement = NO_ROW

    @property
    def has_seeds(self) -> bool:
        """Whether there are several seeds, so that numbers are means."""
        return len(self.arms) > 1


def group_arms(settings: Settings, arms: Sequence[str]) -> list[Experiment]:
    """Return the experiments of the page, in the order of their first arms.

    Arms with equal settings and different seeds that reproduce the same row of the paper are one
    experiment.

    Args:
        settings: settings of the run.
        arms: names of the scored arms.
    """
    entries = {entry.name: entry for entry in settings.experiments}
    groups: list[tuple[tuple[str, str], dict[int, str]]] = []
    first_arms: dict[str, str] = {}
    for arm in arms:
        resolved = settings_of_experiment(settings, arm)
        # Compared resolved: two entries may reach the same settings by different changes.
        values = resolved.model_dump(mode="json", exclude={"seed", "experiments"})
        # Each seed may continue the training of its own seed: other arms of one experiment.
        key = (json.dumps(continuing(values, first_arms)), entries[arm].row)
        # A second arm with the same seed is a repetition, which must not enter a mean over seeds.
        group = next(
            (
                by_seed
                for group_key, by_seed in groups
                if group_key == key and resolved.seed not in by_seed
            ),
            None,
        )
        if group is None:
            group = {}
            groups.append((key, group))
        group[resolved.seed] = arm
        first_arms[arm] = next(iter(group.values()))
    return [
        _experiment(settings, by_seed, entries[next(iter(by_seed.values()))], style)
        for style, (_, by_seed) in enumerate(groups)
    ]


def _experiment(
    settings: Settings, by_seed: Mapping[int, str], entry: Entry, style: int
) -> Experiment:
    """Return the experiment of the arms of some seeds, of which `entry` is the first."""
    resolved = settings_of_experiment(settings, entry.name)
    *earlier, _ = pretraining_phases(settings, entry.name)
    return Experiment(
        name=entry.name,
        arms=tuple(by_seed.values()),
        seeds=tuple(by_seed),
        style=style,
        changes={
            setting: format_value(value)
            for setting, value in entry.change.items()
            if setting != "seed" or len(by_seed) == 1
        },
        row=entry.row,
        paper_row=paper_row_title(entry.row),
        system=preset_of("systems", resolved.use),
        placement=placement(
            resolved, entry.row, [settings_of_experiment(settings, name) for name in earlier]
        ),
    )


def histories_by_arm(
    settings: Settings, pretrain: Mapping[str, Path], finetune: Mapping[str, Path]
) -> dict[str, dict[str, Path]]:
    """Return arm -> phase -> history, the phases ``pretrain`` and ``finetune``.

    With groups of tasks there is a phase for each, such as ``finetune_glue``.

    Args:
        settings: settings of the run.
        pretrain: arm -> ``history.csv`` of its pre-training.
        finetune: arm, or its fine-tuning on a group of tasks -> ``history.csv``.
    """
    histories = {arm: {"pretrain": path} for arm, path in pretrain.items()}
    for arm, phases in histories.items():
        for group, name in finetunings(settings_of_experiment(settings, arm), arm).items():
            phases[f"finetune_{group}" if group else "finetune"] = finetune[name]
    return histories


def histories_of_phase(
    histories: Mapping[str, Mapping[str, Path]], phase: str
) -> dict[str, dict[str, Path]]:
    """Return arm -> name of the line -> history; fine-tuning can have a line for each group."""
    return {
        arm: {
            arm + name.removeprefix(phase): path
            for name, path in paths.items()
            if name.startswith(phase)
        }
        for arm, paths in histories.items()
    }


def paper_row_title(name: str) -> str:
    """Return the name of a row with the tables of T5 that print it.

    The name of another system's row contains its table.
    """
    tables = [str(row.table) for row in rows_named(name)]
    if not tables:
        return f"“{name}”" if name else ""
    return f"“{name}” of {'table' if len(tables) == 1 else 'tables'} {', '.join(tables)}"


def format_value(value: Any) -> str:
    """Return the value of a setting as text."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def introduction(settings: Settings, experiments: int, tasks: int) -> str:
    """Return the first sentences of the page: number of experiments and tasks, size of the run."""
    origin = "own text" if settings.corpus.files else "the crawl"
    beginning = f"It is pre-trained for {settings.pretrain.steps:,} and"
    if settings.pretrain.start_from and not settings.pretrain.steps:
        origin = "given weights"
        beginning = f"Its weights are those of {settings.pretrain.start_from}, and it is"
    return (
        f"{counted(experiments, 'experiment')} on {counted(tasks, 'task')}, from {origin} to the "
        f"scores. The model has {model_size(settings)}. {beginning} fine-tuned for "
        f"{settings.finetune.steps:,} steps, unless an experiment changes this."
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def model_size(settings: Settings) -> str:
    """Return the size of the model in words."""
    model = settings.model
    return (
        f"{model.num_encoder_layers} + {model.num_decoder_layers} layers of width {model.d_model}"
        f" and {settings.vocab.vocab_size:,} word pieces"
    )


def difference_title(settings: Settings, experiments: Sequence[Experiment]) -> str:
    """Return the title of the difference of the first two experiments; empty if there is one."""
    if len(experiments) < 2:
        return ""
    names = [experiment.name for experiment in experiments[:2]]
    first, second = (flatten(settings_of_experiment(settings, name)) for name in names)
    # Known by the settings and not by names, which the user chooses.
    changed = {key: value for key, value in second.items() if first[key] != value}
    if changed == NO_PRETRAINING_CHANGE:
        return "gain from pre-training"
    return f"{names[0]} − {names[1]}"


def flatten(settings: Settings) -> dict[str, Any]:
    """Return dotted setting -> value; a mapping with free keys is one value."""
    leaves: dict[str, Any] = {}

    def walk(tree: Mapping[str, Any], prefix: str) -> None:
        for key, value in tree.items():
            name = prefix + key
            if isinstance(value, dict) and key not in FREE_KEYS:
                walk(value, name + ".")
            else:
                leaves[name] = value

    walk(settings.model_dump(mode="json"), "")
    for name in unrecorded_defaults():
        leaves.setdefault(name, attrgetter(name)(settings))
    return leaves
