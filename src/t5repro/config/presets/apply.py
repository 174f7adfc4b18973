"""Set the values of the presets that a tree of settings uses.

One preset of each group is in force. A preset of an experiment replaces the preset of its run, of
which no value remains, except values that the run file states itself: those win over all presets
(`config.layers`), and of two presets the one whose group comes later in `table.GROUPS`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from t5repro.config.presets.table import GROUPS, LABEL, in_force, named_in, values_of
from t5repro.config.schema import Settings
from t5repro.config.tree import leaves_of, lookup
from t5repro.errors import Keys, SettingsError


@cache
def _baseline() -> dict[Keys, Any]:
    return dict(leaves_of(Settings().model_dump(mode="json")))


def apply_presets(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Set the values of the presets that `change` uses, in place.

    Args:
        tree: complete settings, before `change` applies.
        change: settings of a run file, an experiment or a group of tasks, nested.

    Raises:
        SettingsError: a preset is unknown, contradicts the settings next to it, or has no effect.
    """
    used, present = named_in(change), tree["use"]
    remaining = [name for name in present if not _replaced(name, change)]
    if not used and remaining == present:
        return
    in_use = in_force(used, remaining)
    former_values = dict(leaves_of(values_of(present)))
    new_values = dict(leaves_of(values_of(in_use)))
    own_values = dict(leaves_of(values_of(in_force(used))))
    for name in used:
        _check_effect(name, change)
    for path, value in former_values.items():
        # Another value is the run file's own.
        if lookup(tree, *path) == value:
            _set(tree, path, new_values.get(path, _baseline()[path]))
    for path in own_values:
        _set(tree, path, new_values[path])
    tree["use"] = in_use


def _replaced(name: str, change: Mapping[str, Any]) -> bool:
    """Return whether settings that take the place of a preset's group are stated."""
    replacing = GROUPS[name.partition("/")[0]].replaced_by
    return any(lookup(change, *setting.split(".")) for setting in replacing)


def _check_effect(name: str, change: Mapping[str, Any]) -> None:
    """Refuse a preset next to settings that take its place."""
    values = dict(leaves_of(values_of([name])))
    for setting in GROUPS[name.partition("/")[0]].replaced_by:
        path = tuple(setting.split("."))
        if (value := lookup(change, *path)) and value != values.get(path):
            raise SettingsError(
                f"use names {name!r}, but {setting} is also set; remove one of the two",
                keys=("use",),
            )
    differing = [
        path for path, value in values.items() if path != LABEL and value != _baseline()[path]
    ]
    if differing and all(lookup(change, *path) not in (None, values[path]) for path in differing):
        raise SettingsError(
            f"use names {name!r}, but all of its settings are also set to other values, such as "
            f"{'.'.join(map(str, differing[0]))}, which replace them; remove the preset or these "
            "settings (configs/base.yaml states every setting: use the preset in an experiment)",
            keys=("use",),
        )


def _set(tree: dict[str, Any], path: Keys, value: Any) -> None:
    *sections, key = map(str, path)
    for section in sections:
        tree = tree[section]
    tree[key] = value
