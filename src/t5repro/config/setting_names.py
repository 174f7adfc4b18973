"""Dotted names of settings: all that exist, their meanings, and names that have changed."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from t5repro.config.descriptions import descriptions
from t5repro.config.field import Section
from t5repro.config.schema import Settings

# Former name -> present name. A run file with a former name is refused with the present one.
RENAMED: dict[str, str] = {
    "pretrain.batch_rows": "pretrain.batch_size",
    "finetune.batch_rows": "finetune.batch_size",
    "evaluate.batch_rows": "evaluate.batch_size",
}

# (setting, former value) -> present value.
RENAMED_VALUES: dict[tuple[str, str], str] = {("model.target_marker", "end_mark"): "eos"}


def leaves(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every setting as its dotted name and its pydantic field."""
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from leaves(annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def unrecorded_defaults(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """Yield the names of settings that a dump leaves out where they are the default."""
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            inner = f"{prefix}{name}."
            every = (leaf for leaf, _ in leaves(annotation, inner))
            yield from every if field.exclude_if else unrecorded_defaults(annotation, inner)
        elif field.exclude_if:
            yield f"{prefix}{name}"


def leaf_names() -> list[str]:
    """Return the dotted name of every setting."""
    return [name for name, _ in leaves()]


def section_names() -> list[str]:
    """Return the dotted name of every section, such as `c4.spark`."""
    parts = [name.split(".")[:-1] for name in leaf_names()]
    return sorted({".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)})


def describe(name: str) -> str:
    """Return the meaning of a setting; an empty string for an unknown name."""
    if name not in leaf_names():
        return ""
    *sections, field = name.split(".")
    model: Any = Settings
    for section in sections:
        model = model.model_fields[section].annotation
    return " ".join(descriptions(model).get(field, "").split())
