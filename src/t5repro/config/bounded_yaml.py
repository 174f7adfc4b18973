"""YAML without repeated keys and without numbers that read as others; its aliases have a limit.

YAML 1.1 reads 010 as 8 (octal) and 12:30 as 750 (base 60). PyYAML keeps the last value of a
repeated key silently: of two lists that a merge left below each other one would be lost.

Ten lines of aliases of aliases stand for 10**8 values ("billion laughs"). The parser shares the
nodes, but whoever walks through the values visits each of them.
"""

import re
from typing import Any

import yaml

from t5repro.errors import SettingsError

NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
OTHER_BASE = re.compile(r"[-+]?(0[0-9_]+|[0-9_]+(:[0-9_.]+)+)")
MAX_NODES = 200_000  # the largest run file has a few thousand
MAX_CHARS = 16_000_000  # which PyYAML reads for half a minute


def read_node(text: str, name: str) -> yaml.Node | None:
    """Return the root node of a YAML text; None for an empty one.

    Args:
        text: the YAML.
        name: of the file, for messages.

    Raises:
        SettingsError: it is not YAML, sets a key twice, has a number in base 8 or 60, is too long,
            or its aliases expand to more than `MAX_NODES` values.
    """
    if len(text) > MAX_CHARS:
        raise SettingsError(
            f"{name} has {len(text):,} characters, and at most {MAX_CHARS:,} are read; the files "
            "of a whole crawl are named by c4.crawl_paths"
        )
    try:
        loader = yaml.SafeLoader(text)
        loader.name = name  # in place of "<unicode string>"
        root = loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{name} is not YAML: {error}") from error
    if root is not None and "&" in text:  # without an anchor there is no alias
        _check_expansion(root, name)
    try:
        _check_nodes(root, name, set())
    except RecursionError as error:
        raise SettingsError(f"{name} is nested too deeply") from error
    return root


def set_twice(name: str, line: int, key: str, first_line: int) -> SettingsError:
    """Return the error about a key that a file sets twice."""
    return SettingsError(
        f"{name}:{line}: {key!r} is set twice, first in line {first_line}; keep one of them with "
        "the entries of both, YAML would silently keep the last"
    )


def _check_nodes(node: yaml.Node | None, name: str, visited: set[int]) -> None:
    """Refuse a key that a mapping has twice, and a number that is read as another."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag in NUMBERS and OTHER_BASE.fullmatch(node.value):
            raise SettingsError(
                f"{name}:{node.start_mark.line + 1}: YAML reads {node.value} as "
                f"{yaml.SafeLoader('').construct_object(node)}; write the number without leading "
                "zeros or colons, or text in quotes"
            )
        return
    if node is None or id(node) in visited:
        return
    visited.add(id(node))  # an alias is checked where its anchor is
    if isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            _check_nodes(entry, name, visited)
        return
    first_lines: dict[str, int] = {}
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            line = key.start_mark.line + 1
            if key.value in first_lines:
                raise set_twice(name, line, key.value, first_lines[key.value])
            first_lines[key.value] = line
        _check_nodes(value, name, visited)


def construct(root: yaml.Node, name: str) -> Any:
    """Return the values of a node.

    Args:
        root: the node.
        name: of the file, for messages.

    Raises:
        SettingsError: a value cannot be read, such as a date that does not exist.
    """
    try:
        return yaml.SafeLoader("").construct_document(root)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise SettingsError(f"{name} is not YAML: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:  # of PyYAML, for `!!timestamp x`
        raise SettingsError(
            f"{name} is not YAML: a tag (!!) names another type than the value beside it has; "
            "remove the tag"
        ) from error


def parse_yaml(text: str, name: str) -> Any:
    """Return the values of a YAML text; None for an empty one. See `read_node` and `construct`."""
    root = read_node(text, name)
    return None if root is None else construct(root, name)


def _check_expansion(root: yaml.Node, name: str) -> None:
    try:
        count = _expanded_size(root, {})
    except RecursionError:
        count = MAX_NODES + 1
    if count > MAX_NODES:
        line = root.start_mark.line + 1
        raise SettingsError(
            f"{name}:{line}: its aliases (*name) expand to more than {MAX_NODES:,} values, or "
            "contain themselves; write the values out"
        )


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of nodes below a node, aliased ones once for each alias."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = MAX_NODES + 1  # of an alias inside the node that it names
        children = (
            [child for pair in node.value for child in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes) for child in children)
    return sizes[id(node)]
