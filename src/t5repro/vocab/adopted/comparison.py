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


def check_equal(made: Mapping[str, Any], path: Path, source: Path) -> None:
    """Refuse a ``tokenizer.json`` that encodes text otherwise than the files next to it.

    Args:
        made: definition from these files.
        path: file of the other definition.
        source: file of the pieces, for messages.

    Raises:
        ArtifactError: `tokenizers` cannot read it.
        VocabularyError: they differ; names the first difference.
    """
    stated = read_definition(path)
    for section in SECTIONS:
        difference = _difference(made[section], stated[section], section)
        if difference:
            place, ours, theirs = difference
            raise VocabularyError(
                f"{path} has {place} {_short(theirs)}, {source} and tokenizer_config.json make "
                f"{_short(ours)}; they must agree: get the folder again, or remove the file that "
                "is not meant"
            )


def _difference(ours: Any, theirs: Any, place: str) -> tuple[str, Any, Any] | None:
    """Return place and values of the first difference; None if there is none."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        names = [name for name in {**ours, **theirs} if name not in NOT_COMPARED]
        pairs = [(f"{place}.{name}", ours.get(name), theirs.get(name)) for name in names]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [
            (f"{place}[{number}]", left, right)
            for number, (left, right) in enumerate(zip(ours, theirs, strict=True))
        ]
    elif isinstance(ours, float) and isinstance(theirs, float):
        # A score that JSON has in other digits.
        return None if math.isclose(ours, theirs, rel_tol=1e-6) else (place, ours, theirs)
    else:
        # No prefix and an empty one are the same.
        return None if (ours or None) == (theirs or None) else (place, ours, theirs)
    found = (_difference(left, right, name) for name, left, right in pairs)
    return next(filter(None, found), None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 100 else f"{text[:100]}..."
