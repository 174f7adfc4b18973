"""How the inputs of a task begin, from its examples: ``"sst2 sentence: "``."""

import re
from collections.abc import Sequence
from itertools import takewhile

PREFIX = re.compile(r".*:\s", re.DOTALL)


def shared_prefix(inputs: Sequence[str]) -> str:
    """Return the beginning that all inputs share, up to a colon and a space.

    It is empty if they share none, or for a single input: its beginning would be its text.
    """
    match = PREFIX.match(_common_beginning(inputs)) if len(inputs) > 1 else None
    return match[0] if match else ""


def _common_beginning(texts: Sequence[str]) -> str:
    pairs = zip(min(texts), max(texts), strict=False)  # the first and the last in order
    return "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
