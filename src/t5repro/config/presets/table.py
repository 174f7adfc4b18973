"""The table of presets: all groups, in the order in which their values are set.

To add a preset, add an entry to the dictionary of its group; nothing else registers it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from t5repro.config.presets import cleaning, corpora, machines, mixtures, objectives, sizes, systems
from t5repro.config.presets.preset import Preset, PresetGroup
from t5repro.config.tree import lookup, merge
from t5repro.errors import Keys, SettingsError, nearest

# A later group replaces values of an earlier one: a corpus may be without rules for lines, and a
# machine may train the network of another size.
GROUPS: dict[str, PresetGroup] = {
    "cleaning": PresetGroup("rules for pages and duplicates of C4", cleaning.PRESETS),
    "c4": PresetGroup("languages and selection of the pages of C4", corpora.PRESETS),
    "machines": PresetGroup("sizes of a run for a kind of machine", machines.PRESETS),
    "objectives": PresetGroup("objectives of later work", objectives.PRESETS),
    "systems": PresetGroup("training of the systems before T5", systems.PRESETS),
    "sizes": PresetGroup("shapes of the network", sizes.PRESETS),
    "mixtures": PresetGroup(
        "tasks and their rates", mixtures.PRESETS, replaced_by=("tasks.names", "finetune.groups")
    ),
}


# Former setting -> group of presets.
FORMER = {
    "c4.recipe": "cleaning",
    "c4.variant": "c4",
    "system": "systems",
    "model.published": "sizes",
    "tasks.mixture": "mixtures",
}
LABEL: Keys = ("model", "published")  # name of the size, for the records of jobs


def names() -> list[str]:
    """Return the names of all presets, as `use` names them."""
    return [f"{group}/{name}" for group in GROUPS for name in GROUPS[group].presets]


def preset(name: str) -> Preset:
    """Return a preset.

    Raises:
        SettingsError: no preset has this name.
    """
    group, _, short_name = name.partition("/")
    if group in GROUPS and short_name in GROUPS[group].presets:
        return GROUPS[group].presets[short_name]
    presets = (
        [f"{group}/{preset_name}" for preset_name in GROUPS[group].presets]
        if group in GROUPS
        else []
    )
    allowed = (
        f"presets of {group} are {presets}"
        if presets
        else f"presets begin with {', '.join(f'{preset_name}/' for preset_name in GROUPS)}"
    )
    raise SettingsError(
        f"use names {name!r}; {allowed}{nearest(name, presets or names())}; `t5repro config "
        "presets` prints what each sets",
        keys=("use",),
    )


def in_force(used: Iterable[str], present: Iterable[str] = ()) -> list[str]:
    """Return the presets that are in force after others are named: one of each group, in order.

    Args:
        used: presets that a run file, an experiment or a group of tasks uses.
        present: presets in force until then.

    Raises:
        SettingsError: a preset is unknown, or two named ones are of the same group.
    """
    by_group: dict[str, str] = {}
    for name in used:
        preset(name)
        group = name.partition("/")[0]
        if group in by_group:
            raise SettingsError(
                f"use names {by_group[group]!r} and {name!r}, which replace each other; keep one",
                keys=("use",),
            )
        by_group[group] = name
    implied = [used_name for name in by_group.values() for used_name in preset(name).uses]
    for name in (*implied, *present):
        by_group.setdefault(name.partition("/")[0], name)
    return [by_group[group] for group in GROUPS if group in by_group]


def values_of(presets: Iterable[str]) -> dict[str, Any]:
    """Return the nested settings of presets; later ones replace values of earlier ones."""
    values: dict[str, Any] = {}
    for name in presets:
        merge(values, preset(name).values)
    return values


def named_in(change: Mapping[str, Any]) -> list[str]:
    """Return the presets that a tree of settings uses.

    Raises:
        SettingsError: `use` is not a list of names, or a former setting names a preset.
    """
    value = change.get("use")
    _refuse_former(change, value if isinstance(value, list) else [])
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise SettingsError(
            f"use is {value!r}; it must be a list of presets, such as [systems/bert]", keys=("use",)
        )
    return value


def preset_of(group: str, presets: Iterable[str]) -> str:
    """Return the name in its group of the preset of a group; empty if there is none."""
    return next((n.partition("/")[2] for n in presets if n.startswith(f"{group}/")), "")


def _refuse_former(change: Mapping[str, Any], used: Collection[str]) -> None:
    """Refuse a setting that named a preset, except the label of a size that is used."""
    for setting, group in FORMER.items():
        path = tuple(setting.split("."))
        value = lookup(change, *path)
        if value and (path != LABEL or f"{group}/{value}" not in used):
            presets = GROUPS[group].presets
            suggestion = "" if value in presets else nearest(str(value), presets)
            raise SettingsError(
                f"{setting} is {value!r}, but presets are named in use; write use: "
                f"[{group}/{value}]{suggestion}",
                keys=path,
            )
