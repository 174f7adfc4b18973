"""The one reader of numbers in rows and predictions."""

import math
import re

# ASCII digits only: `float` also reads "1_1", "nan", "infinity" and digits of other scripts, which
# are no numbers of a table.
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number_of(text: str) -> float | None:
    """Return the finite number that a text spells, spaces around it aside; None if it is none."""
    stripped = text.strip(" \t\r\n")
    if not NUMBER.fullmatch(stripped):
        return None
    value = float(stripped)
    return value if math.isfinite(value) else None
