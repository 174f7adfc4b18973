"""Base class of the sections of settings, types of names, and a helper of validators."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_]*$")]


class Section(BaseModel):
    """Base of all sections: frozen, no unknown keys.

    The string below a field describes it (`config.descriptions`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def repeated(values: Iterable[Any]) -> list[Any]:
    """Return the values that occur more than once, sorted."""
    counts = Counter(values)
    return sorted(value for value, count in counts.items() if count > 1)


def check_names(setting: str, names: Sequence[str], *, required: bool = False) -> None:
    """Raise ValueError if a list repeats a name, or if it is required and empty."""
    if required and not names:
        raise ValueError(f"{setting} is empty; name at least one")
    if twice := repeated(names):
        raise ValueError(f"{setting} contains {twice} more than once; names must differ")
