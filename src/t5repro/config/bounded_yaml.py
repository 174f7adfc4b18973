"""YAML with a limit on what its aliases expand to.

Ten lines of aliases of aliases stand for 10**8 values ("billion laughs"). The parser shares the
nodes, but whoever walks through the values visits each of them.
"""

from typing import Any

import yaml

from t5repro.errors import SettingsError

MAX_NODES = 200_000  # the largest run file has a few thousand


def read_node(text: str, name: str) -> yaml.Node | None:
    """Return the root node of a YAML text; None for an empty one.

    Args:
        text: the YAML.
        name: of the file, for messages.

    Raises:
        SettingsError: it is not YAML, or its aliases expand to more than `MAX_NODES` values.
    """
    try:
        loader = yaml.SafeLoader(text)
        loader.name = name  # in place of "<unicode string>"
        root = loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{name} is not YAML: {error}") from error
    if root is not None and "&" in text:  # without an anchor there is no alias
        _check_expansion(root, name)
    return root


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
