"""The order in which settings replace each other.

The baseline of `schema` is changed by the run file with the command line, then by an experiment,
then by a group of its tasks. Each of them applies `LAYERS`, later ones over earlier ones.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from t5repro.config.equal_compute import check_budget, set_steps
from t5repro.config.groups import apply_groups
from t5repro.config.own_text import apply_own_text
from t5repro.config.presets.apply import apply_presets
from t5repro.config.schema import Settings
from t5repro.config.tree import lookup, merge
from t5repro.config.validation import validate
from t5repro.errors import Keys


class Layer(NamedTuple):
    """Settings with one place in the order.

    Attributes:
        title: their origin, for the settings page.
        apply: sets them in a tree of complete settings, given the settings that are stated.
    """

    title: str
    apply: Callable[[dict[str, Any], Mapping[str, Any]], None]


def _apply_stated(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    check_budget(change)
    if lookup(change, "pretrain", "steps") is not None:
        tree["pretrain"]["flops"] = 0  # stated steps replace a budget
    merge(tree, {key: value for key, value in change.items() if key != "use"})


LAYERS = (
    Layer("the presets in `use`", apply_presets),
    Layer("consequences of own text (`corpus.files`)", apply_own_text),
    Layer("stated settings", _apply_stated),
    Layer("tasks of the groups (`finetune.groups`)", apply_groups),
)


def apply_layers(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Apply the settings of a run file, an experiment or a group of tasks, in place.

    Args:
        tree: complete settings, changed by earlier sources.
        change: nested settings.

    Raises:
        SettingsError: the settings contradict each other.
    """
    for layer in LAYERS:
        layer.apply(tree, change)


def validated(
    tree: dict[str, Any],
    *,
    label: str = "",
    entries: Mapping[Keys, Keys] | None = None,
    unchecked: Any = None,
    earlier_flops: float = 0,
) -> Settings:
    """Return validated settings, with the steps of a budget; see `validate` and `set_steps`.

    Raises:
        SettingsError: a setting is unknown or invalid.
    """
    set_steps(tree, earlier_flops)
    return validate(Settings, tree, label=label, entries=entries, unchecked=unchecked)
