"""Foreign text for a terminal: URLs of the crawl, and names in files that somebody else wrote."""

import re

# All but tab and newline, and the marks that turn the reading direction.
CONTROL_CHARACTERS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]"
)


def printable(text: str) -> str:
    r"""Return a text with ``\x1b`` and the like in place of characters that act on a terminal."""
    return CONTROL_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], text)
