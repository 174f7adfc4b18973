"""Base class of the sections of settings, types of names, and a helper of validators."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-z]{2})?$")]


class Section(BaseModel):
    """Base of all sections: frozen, no unknown keys.

    The string below a field describes it (`config.descriptions`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def repeated(values: Iterable[Any]) -> list[Any]:
    """Return the values that occur more than once, sorted."""
    counts = Counter(values)
    return sorted(value for value, count in counts.items() if count > 1)
