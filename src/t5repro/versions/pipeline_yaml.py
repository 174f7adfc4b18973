"""The text of `dvc.yaml`, for people: stages are paragraphs, a list of one word is one line."""

import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

STAGES = "stages"


class _Dumper(yaml.SafeDumper):
    """Writes a list of one word on the line of its key."""


def _list_node(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.Node:
    is_short = len(values) == 1 and isinstance(values[0], str)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=is_short)


_Dumper.add_representer(list, _list_node)


def to_yaml(content: Mapping[str, Any]) -> str:
    """Return the content of `dvc.yaml` as text; each stage and each section is a paragraph."""
    stages = [
        textwrap.indent(_dumped({name: entry}), "  ") for name, entry in content[STAGES].items()
    ]
    sections = [_dumped({name: value}) for name, value in content.items() if name != STAGES]
    return f"{STAGES}:\n" + "\n".join([*stages, *sections])


def _dumped(content: Mapping[str, Any]) -> str:
    # Without a limit, because a command on two lines is hard to copy.
    text: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, width=float("inf"), allow_unicode=True
    )
    return text
