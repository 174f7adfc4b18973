"""Names and values of settings."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from t5repro.config.origins import FREE_KEYS
from t5repro.config.schema import Settings

from .tree import PLACEHOLDER, Missing, Tree, matches


def setting(tree: Tree, name: str, value: str | None = None) -> Iterator[Missing]:
    """Yield a setting that does not exist, or a value outside a closed list."""
    names = tree.settings
    if "*" in name or PLACEHOLDER.search(name):
        if not matches(names, PLACEHOLDER.sub("*", name)):
            yield "setting", name, names
        return
    if any(key in FREE_KEYS for key in name.split(".")[:-1]):
        return  # the run file invents what follows
    if name not in names:
        yield "setting", name, names
    elif value and names[name] is not None and not PLACEHOLDER.search(value):
        allowed = _choices(names[name].annotation)
        for word in value.split(" | "):
            if allowed and word.strip("\"'") not in allowed:
                yield f"value of {name}:", word, allowed


def _choices(annotation: Any) -> set[str]:
    """Return the values of a field that has a closed list of words; nothing for other fields."""
    if get_origin(annotation) is Literal:
        return {str(value) for value in get_args(annotation)}
    arms = [arm for arm in get_args(annotation) if arm is not type(None)]
    lists = [_choices(arm) for arm in arms]
    closed = bool(lists) and all(lists) and get_origin(annotation) not in (list, dict, tuple)
    return set().union(*lists) | {"null", "None"} if closed else set()


def mapping(tree: Tree, values: dict[Any, Any], section: str = "") -> Iterator[Missing]:
    """Check the keys of a run file, or of the part that a document shows."""
    for key, value in values.items():
        name = f"{section}.{key}" if section else str(key)
        if not section and str(key).partition(".")[0] not in Settings.model_fields:
            continue
        if name == "experiments" and isinstance(value, list):
            for experiment in value:
                yield from mapping(tree, dict(experiment).get("change") or {})
                for change in (dict(experiment).get("for_each") or {}).values():
                    yield from mapping(tree, change)
        elif isinstance(value, dict) and key not in FREE_KEYS and tree.settings.get(name) is None:
            yield from mapping(tree, value, name)
        else:
            yield from setting(tree, name, value if isinstance(value, str) else None)
