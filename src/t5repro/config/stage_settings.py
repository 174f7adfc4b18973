"""The settings that the jobs of a stage receive, taken from those of the run.

A job receives exactly the fields that its stage's class names, so a changed setting reruns the
stages that read it and no other.
"""

import importlib
from functools import cache
from typing import Any

from t5repro.config.field import Section
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import Engine
from t5repro.stages import BY_NAME

# Decide no byte: passed to jobs outside their settings, so that another value reruns nothing.
NOT_RECEIVED = {"c4": frozenset(Engine.model_fields), "run": frozenset({"resume_changed"})}


@cache
def stage_model(stage: str) -> type[Section]:
    """Return the class of the settings that jobs of a stage receive."""
    module, _, name = BY_NAME[stage].settings.rpartition(".")
    model: type[Section] = getattr(importlib.import_module(f"t5repro.config.{module}"), name)
    return model


def stage_settings(settings: Settings, stage: str) -> dict[str, Any]:
    """Return the part of `settings` that `stage` receives, as plain JSON values."""
    values = settings.model_dump(mode="json")
    if stage == "report":
        return received(stage, {"settings": values})
    return _narrow(values, stage_model(stage))


def engine_settings(settings: Settings) -> dict[str, Any]:
    """Return the engine of `c4`, as plain JSON values."""
    return {name: settings.c4.model_dump(mode="json")[name] for name in Engine.model_fields}


def received(stage: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a stage's settings without those that no job receives.

    Only `report`, which shows all settings, could hold them: the schema fills in their defaults
    when its job parses what it received.

    Args:
        stage: name of the stage.
        values: its settings as plain JSON values, defaults filled in.
    """
    if stage != "report":
        return values
    shown = dict(values["settings"])
    for section, names in NOT_RECEIVED.items():
        shown[section] = {k: v for k, v in shown[section].items() if k not in names}
    return {**values, "settings": shown}


def _narrow(values: dict[str, Any], model: type[Section]) -> dict[str, Any]:
    """Keep the fields that `model` names, at every depth."""
    kept: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        value, inner = values[name], field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            value = _narrow(value, inner)
        kept[name] = value
    return kept
