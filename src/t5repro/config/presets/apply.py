"""Set the values of the presets that a tree of settings uses.

One preset of each group is in force. A preset of an experiment replaces the preset of its run, of
which no value remains, except values that the run file states itself.
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


def apply_presets(tree: dict[str, Any], stated: Mapping[str, Any]) -> None:
    """Set the values of the presets that `stated` uses, in place.

    Args:
        tree: complete settings, without those of `stated`.
        stated: settings of a run file, an experiment or a group of tasks, nested.

    Raises:
        SettingsError: a preset is unknown, contradicts the settings next to it, or has no effect.
    """
    named, present = named_in(stated), tree["use"]
    remaining = [name for name in present if not _replaced(name, stated)]
    if not named and remaining == present:
        return
    new = in_force(named, remaining)
    old_values = dict(leaves_of(values_of(present)))
    new_values = dict(leaves_of(values_of(new)))
    own_values = dict(leaves_of(values_of(in_force(named))))
    for name in named:
        _check_effect(name, stated)
    for path, value in old_values.items():
        # Another value is the run file's own.
        if lookup(tree, *path) == value:
            _set(tree, path, new_values.get(path, _baseline()[path]))
    for path in own_values:
        _set(tree, path, new_values[path])
    tree["use"] = new


def _replaced(name: str, stated: Mapping[str, Any]) -> bool:
    """Return whether settings that take the place of a preset's group are stated."""
    replacing = GROUPS[name.partition("/")[0]].replaced_by
    return any(lookup(stated, *setting.split(".")) for setting in replacing)


def _check_effect(name: str, stated: Mapping[str, Any]) -> None:
    """Refuse a preset next to settings that take its place."""
    values = dict(leaves_of(values_of([name])))
    for setting in GROUPS[name.partition("/")[0]].replaced_by:
        path = tuple(setting.split("."))
        if (value := lookup(stated, *path)) and value != values.get(path):
            raise SettingsError(
                f"use names {name!r}, but {setting} is also set; remove one of the two",
                keys=("use",),
            )
    changed = [
        path for path, value in values.items() if path != LABEL and value != _baseline()[path]
    ]
    if changed and all(lookup(stated, *path) not in (None, values[path]) for path in changed):
        raise SettingsError(
            f"use names {name!r}, but all of its settings are also set to other values, such as "
            f"{'.'.join(map(str, changed[0]))}, which replace them; remove the preset or these "
            "settings (configs/base.yaml states every setting: use the preset in an experiment)",
            keys=("use",),
        )


def _set(tree: dict[str, Any], path: Keys, value: Any) -> None:
    *sections, key = map(str, path)
    for section in sections:
        tree = tree[section]
    tree[key] = value
