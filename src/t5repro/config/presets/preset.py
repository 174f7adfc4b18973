"""A preset, and a group of presets of which one is in force at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """A named fragment of settings.

    Attributes:
        values: nested settings.
        source: where the values are published.
        uses: presets of other groups that it brings along, unless `use` names others of them.
    """

    values: Mapping[str, Any]
    source: str
    uses: tuple[str, ...] = ()


@dataclass(frozen=True)
class PresetGroup:
    """Presets that replace each other.

    Attributes:
        title: the settings of its presets.
        presets: name in the group -> preset.
        replaced_by: settings that take the place of the group: an experiment that sets one of them
            drops the preset of its run.
    """

    title: str
    presets: Mapping[str, Preset]
    replaced_by: tuple[str, ...] = ()
