"""The base of every section of settings, the types of names, and what validators share."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-z]{2})?$")]


class Section(BaseModel):
    """Base of all settings: frozen, unknown keys refused, described by the string below a field."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


def repeated(values: Iterable[Any]) -> list[Any]:
    """Return the values that occur more than once, sorted."""
    listed = list(values)
    return sorted({value for value in listed if listed.count(value) > 1})
