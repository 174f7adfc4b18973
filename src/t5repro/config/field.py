"""Base class of the sections of settings, types of names, and a helper of validators."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class Pattern:
    """What a text must match, for pydantic; an error says it in words.

    Attributes:
        pattern: regular expression of the whole text.
        allowed: what it allows.
    """

    pattern: str
    allowed: str

    def check(self, text: str) -> str:
        """Return a text that matches.

        Raises:
            ValueError: it does not.
        """
        if not re.fullmatch(self.pattern, text):
            raise ValueError(f"allowed: {self.allowed}")
        return text

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "pattern": self.pattern}


# A folder has the names of an experiment and of a group of tasks; file systems allow 255 bytes.
Name = Annotated[
    str,
    StringConstraints(max_length=100),
    Pattern("^[a-z0-9][a-z0-9_]*$", "small letters, digits and _, such as 'my_run'"),
]
ExperimentOrNone = Annotated[
    str, Pattern("^([a-z][a-z0-9_]*)?$", "the name of an experiment: small letters, digits and _")
]
LARGEST_NUMBER = 2**53  # up to which every reader of JSON keeps whole numbers


class Section(BaseModel):
    """Base of all sections: frozen, no unknown keys.

    The string below a field describes it (`config.descriptions`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _check_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name in _fields_of_numbers(cls):
            _check_numbers_of(value)
        return value


@cache
def _fields_of_numbers(section: type[BaseModel]) -> frozenset[str]:
    types = {name: _types(field.annotation) for name, field in section.model_fields.items()}
    return frozenset(name for name, of in types.items() if {int, float} & of and bool not in of)


def _types(annotation: Any) -> set[Any]:
    parts = get_args(annotation)
    return {kind for part in parts for kind in _types(part)} if parts else {annotation}


def _check_numbers_of(value: Any) -> None:
    """Refuse true, which Python takes for 1, and numbers that no later stage can hold."""
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number; YAML reads yes, no, on, off so")
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise ValueError(f"a number is at most {LARGEST_NUMBER:,}")
    if isinstance(value, (list, tuple, dict)):
        for entry in value.values() if isinstance(value, dict) else value:
            _check_numbers_of(entry)


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
