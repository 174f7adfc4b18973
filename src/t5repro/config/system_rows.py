"""Which published row an experiment stands in: of the systems by settings, of T5 by its `row`.

A configuration of `published/system_tables.json` names presets and changes, and the changes of
earlier phases of pre-training, if there are any. An experiment has it if network, pre-training and
method of fine-tuning are equal. Not compared are text and vocabulary, of which the state of the row
says what stands in, what papers select on the validation split, what is not read
(`config.unread`), and what changes no result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from t5repro.config.experiments import EARLIER_PRETRAINING
from t5repro.config.layers import apply_layers, validated
from t5repro.config.schema import Settings
from t5repro.config.tree import leaves_of, nested
from t5repro.config.unread import reason_unread
from t5repro.published.tables import system_rows, system_tables_content
from t5repro.task_table import BY_NAME

PHASES = "phases of pre-training"
SECTIONS = {"model", "pretrain", "finetune", "evaluate"}
NOT_COMPARED = (
    "evaluate.[!e]*",  # all but the ensemble
    "model.published",  # a label
    # Only where a training stops to save, or which of equal trainings it is
    "*.micro_batches",
    "*.checkpoint_every_steps",
    "*.log_every_steps",
    "*.keep_checkpoints",
    "*.repeat",
    "pretrain.validation_*",
    "pretrain.chunk_tokens",
    EARLIER_PRETRAINING,  # its settings are compared instead of its name
    # The share of the steps is compared, which replaces them
    "*.warmup_steps",
    # The papers select them for each task on the validation split
    "finetune.steps",
    "finetune.batch_size",
    "finetune.inputs_length",
    "finetune.targets_length",
    "finetune.learning_rate.*",
    "finetune.groups*",
    "finetune.mixture*",
    "finetune.task_dropout*",
)


@dataclass(frozen=True)
class Placement:
    """Where an experiment stands in the systems' tables.

    Attributes:
        row: the configuration of its rows, or the full name of a row without one; empty for none.
        differences: setting -> (value of the experiment, value of the row), where they differ.
    """

    row: str = ""
    differences: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


NO_ROW = Placement()


def placement(settings: Settings, row: str, earlier: Sequence[Settings] = ()) -> Placement:
    """Return where an experiment stands: where its settings are equal, else where `row` says.

    Args:
        settings: of the experiment.
        row: its `row`.
        earlier: of the experiments whose pre-training it continues, the first phase first.
    """
    values = compared(settings, earlier)
    for name in system_tables_content()["configurations"]:
        if not _differences(values, settings_of_configuration(name)):
            return Placement(name)
    key = system_rows().get(row, "")
    if key not in system_tables_content()["configurations"]:
        return Placement(key)  # of a row that cannot be had, or of none
    return Placement(key, _differences(values, settings_of_configuration(key)))


def _differences(
    values: Mapping[str, Any], published: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return setting -> its value and the published one, where they differ."""
    # Steps that follow from a number of operations depend on the size of the vocabulary.
    ignored = "pretrain.steps" if published["pretrain.flops"] else "pretrain.flops"
    names = dict.fromkeys((*published, *values))  # of another objective, one has more settings
    return {
        setting: (values.get(setting), published.get(setting))
        for setting in names
        if setting != ignored and values.get(setting) != published.get(setting)
    }


@cache
def settings_of_configuration(name: str) -> Mapping[str, Any]:
    """Return the compared settings of a configuration.

    Raises:
        SettingsError: a preset or a setting of it does not exist.
    """
    configuration = system_tables_content()["configurations"][name]
    shared = {"use": configuration["use"], **configuration["change"]}
    *earlier, last = [
        # Any name: with one, what a further phase reads is read.
        _settings_of({**shared, **phase, EARLIER_PRETRAINING: "earlier" if number else ""})
        for number, phase in enumerate((*configuration.get("phases", ()), {}))
    ]
    return compared(last, earlier)


def _settings_of(change: Mapping[str, Any]) -> Settings:
    """Return the settings of an experiment with a change, and a task that every network answers."""
    tree = Settings().model_dump(mode="json")
    apply_layers(tree, nested(change))
    task = next(name for name, facts in BY_NAME.items() if facts.answer == "label")
    tree["tasks"] |= {"names": [task], "segments": True}
    return validated(tree)


def compared(settings: Settings, earlier: Sequence[Settings] = ()) -> dict[str, Any]:
    """Return dotted setting -> value, of the settings that make a configuration.

    Args:
        settings: of an experiment.
        earlier: of the earlier phases of its pre-training; what differs there is compared, too.
    """
    values = _compared(settings)
    for number, phase in enumerate(earlier, start=1):
        values |= {
            f"phase {number}: {setting}": value
            for setting, value in _compared(phase).items()
            if setting.startswith("pretrain.") and value != values.get(setting)
        }
    return {**values, PHASES: len(earlier) + 1}


def _compared(settings: Settings) -> dict[str, Any]:
    sections = settings.model_dump(mode="json", include=SECTIONS)
    leaves = {".".join(map(str, path)): value for path, value in leaves_of(sections)}
    return {
        setting: value
        for setting, value in sorted(leaves.items())
        if not any(fnmatchcase(setting, pattern) for pattern in NOT_COMPARED)
        and not reason_unread(setting, settings)
    }
