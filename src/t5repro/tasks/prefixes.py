"""The common parts of a task's inputs, from its examples: beginning and names of fields."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

PREFIX = re.compile(r".*:\s", re.DOTALL)
FIELD = re.compile(r"(?<!\S)(\S+):(?=\s|$)")


def shared_prefix(inputs: Sequence[str]) -> str:
    """Return the beginning that all inputs share, up to a colon and a space: ``"sst2 sentence: "``.

    It is empty if they share none, or for a single input: its beginning would be its text.
    """
    match = PREFIX.match(_common_beginning(inputs)) if len(inputs) > 1 else None
    return match[0] if match else ""


def _common_beginning(texts: Sequence[str]) -> str:
    pairs = zip(min(texts), max(texts), strict=False)  # the first and the last in order
    return "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def field_names(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the fields in inputs: ``("sentence1", "sentence2")``.

    A name is a word with a colon that each input has once; of a single input none is known.
    """
    field_counts = [Counter(FIELD.findall(text)) for text in inputs]
    if len(field_counts) < 2:
        return ()
    return tuple(
        name for name in field_counts[0] if all(counts[name] == 1 for counts in field_counts)
    )


def fields_of(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return name -> text of the fields of an input; what stands before the first has no field."""
    if not names:
        return {"inputs": text}
    pattern = "|".join(map(re.escape, names))
    parts = re.split(rf"(?<!\S)({pattern}):(?=\s|$)", text)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))
