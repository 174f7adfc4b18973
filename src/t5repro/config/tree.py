"""Settings as a tree of plain values: dotted keys, merging, recipes and variants of `c4`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.config.origins import FREE_KEYS, read_yaml
from t5repro.config.project_files import project_file
from t5repro.errors import SettingsError, nearest

RECIPES = Path("configs/c4")
VARIANTS = RECIPES / "variants"


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with dotted keys expanded: ``{"a.b": 1}`` becomes ``{"a": {"b": 1}}``.

    Raises:
        SettingsError: a dotted key leads into a mapping whose keys the user chooses.
    """
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, leaf = str(key).split(".")
        if free_keys := sorted(FREE_KEYS.intersection(sections)):
            raise SettingsError(
                f"setting {key!r} is a part of {free_keys[0]!r}, whose keys are free; "
                "write the whole mapping"
            )
        content = nested(value) if isinstance(value, Mapping) and leaf not in FREE_KEYS else value
        for section in reversed([*sections, leaf]):
            content = {section: content}
        merge(tree, content)
    return tree


def merge(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Update `tree` in place, by section. Lists and mappings with free keys are replaced."""
    for key, value in change.items():
        present = tree.get(key)
        if isinstance(value, Mapping) and isinstance(present, dict) and key not in FREE_KEYS:
            merge(present, value)
        else:
            tree[key] = dict(value) if isinstance(value, Mapping) else value


def lookup(tree: Mapping[str, Any], section: str, key: str) -> Any:
    """Return a value of a tree, or None if its section or key is absent."""
    values = tree.get(section)
    return values.get(key) if isinstance(values, Mapping) else None


def recipe(name: str) -> dict[str, Any]:
    """Return the settings of a recipe of `c4`, a file in `configs/c4/`."""
    return _parameter_file("recipe", name, RECIPES)


def variant(name: str | None) -> dict[str, Any]:
    """Return the settings of a variant of `c4`, a file in `configs/c4/variants/`."""
    return _parameter_file("variant", name, VARIANTS) if name else {}


def _parameter_file(kind: str, name: str, folder: Path) -> dict[str, Any]:
    names = sorted(path.stem for path in project_file(folder).glob("*.yaml"))
    if name not in names:
        raise SettingsError(
            f"c4.{kind} is {name!r}; {kind}s in {folder}/ are {names}{nearest(str(name), names)}"
        )
    return {"c4": nested(read_yaml(project_file(folder) / f"{name}.yaml"))}
