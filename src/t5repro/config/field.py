"""What every section of settings is made of."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_]*$")]


class Section(BaseModel):
    """Base of all settings: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def setting(value: Any, meaning: str, **bounds: Any) -> Any:
    """Declare a setting with its baseline value, its meaning and its allowed range."""
    if isinstance(value, list | dict | Section):
        return Field(
            default_factory=lambda: value.copy() if isinstance(value, list | dict) else value,
            description=meaning,
            **bounds,
        )
    return Field(default=value, description=meaning, **bounds)
