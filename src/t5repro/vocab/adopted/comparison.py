"""Compares a definition that `tokenizers` runs with that of a `tokenizer.json`.

Truncation, padding and the template of rows are not compared: the settings of a run decide them.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError, VocabularyError

SECTIONS = ("normalizer", "pre_tokenizer", "model")
# Offsets are ours, and older files do not have the other.
NOT_COMPARED = {"trim_offsets", "use_regex"}


def read_definition(path: Path) -> dict[str, Any]:
    """Return the definition of a ``tokenizer.json`` in today's form.

    Raises:
        ArtifactError: `tokenizers` cannot read it.
    """
    import tokenizers

    try:
        values: dict[str, Any] = json.loads(tokenizers.Tokenizer.from_file(str(path)).to_str())
    except Exception as error:  # `tokenizers` raises no class of its own
        raise ArtifactError(
            f"{path} is not a definition of tokenizers ({error}); get it again"
        ) from error
    return values


def check_equal(definition: Mapping[str, Any], path: Path, source: Path) -> None:
    """Refuse a ``tokenizer.json`` that encodes text otherwise than the files next to it.

    Args:
        definition: definition from these files.
        path: file of the other definition.
        source: file of the pieces, for messages.

    Raises:
        ArtifactError: `tokenizers` cannot read it.
        VocabularyError: they differ; names the first difference.
    """
    other_definition = read_definition(path)
    for section in SECTIONS:
        difference = _difference(definition[section], other_definition[section], section)
        if difference:
            location, own_value, other_value = difference
            raise VocabularyError(
                f"{path} has {location} {_short(other_value)}, {source} and tokenizer_config.json "
                f"make {_short(own_value)}; they must agree: get the folder again, or remove the "
                "file that is not meant"
            )


def _difference(own_value: Any, other_value: Any, location: str) -> tuple[str, Any, Any] | None:
    """Return place and values of the first difference; None if there is none."""
    if isinstance(own_value, Mapping) and isinstance(other_value, Mapping):
        names = [name for name in {**own_value, **other_value} if name not in NOT_COMPARED]
        pairs = [
            (f"{location}.{name}", own_value.get(name), other_value.get(name)) for name in names
        ]
    elif (
        isinstance(own_value, list)
        and isinstance(other_value, list)
        and len(own_value) == len(other_value)
    ):
        pairs = [
            (f"{location}[{number}]", own_entry, other_entry)
            for number, (own_entry, other_entry) in enumerate(
                zip(own_value, other_value, strict=True)
            )
        ]
    elif isinstance(own_value, float) and isinstance(other_value, float):
        # A score that JSON has in other digits.
        return (
            None
            if math.isclose(own_value, other_value, rel_tol=1e-6)
            else (location, own_value, other_value)
        )
    else:
        # No prefix and an empty one are the same.
        return (
            None
            if (own_value or None) == (other_value or None)
            else (location, own_value, other_value)
        )
    differences = (
        _difference(own_entry, other_entry, name) for name, own_entry, other_entry in pairs
    )
    return next(filter(None, differences), None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 100 else f"{text[:100]}..."
