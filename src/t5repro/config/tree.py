"""Settings as a tree of plain values: dotted keys, merging."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from t5repro.config.origins import FREE_KEYS
from t5repro.errors import Keys, SettingsError


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with dotted keys expanded: ``{"a.b": 1}`` becomes ``{"a": {"b": 1}}``.

    Raises:
        SettingsError: a dotted key leads into a mapping with keys of the user.
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


def merged(trees: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of several run files as one tree; later ones replace earlier ones.

    Raises:
        SettingsError: see `nested`.
    """
    tree: dict[str, Any] = {}
    for values in trees:
        change = nested(values)
        _remove_other_length(tree, change)
        merge(tree, change)
    return tree


def _remove_other_length(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Remove the steps of pre-training that a change replaces by a budget, or the other way."""
    flops, steps = (lookup(change, "pretrain", name) for name in ("flops", "steps"))
    earlier = tree.get("pretrain")
    if isinstance(earlier, dict):
        if flops:
            earlier.pop("steps", None)
        elif steps is not None:
            earlier.pop("flops", None)


def merge(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Update `tree` in place, by section. Lists and mappings with free keys are replaced."""
    for key, value in change.items():
        if isinstance(value, Mapping) and key not in FREE_KEYS:
            section = tree.get(key)
            if not isinstance(section, dict):
                section = tree[key] = {}
            merge(section, value)
        else:
            tree[key] = dict(value) if isinstance(value, Mapping) else value


def lookup(tree: Mapping[str, Any], *keys: str | int) -> Any:
    """Return a value of a tree, or None if it or one of its sections is absent."""
    value: Any = tree
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def leaves_of(tree: Mapping[str, Any], keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield path and value of every setting in a tree."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and key not in FREE_KEYS:
            yield from leaves_of(value, (*keys, key))
        else:
            yield (*keys, key), value
