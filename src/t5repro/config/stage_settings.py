"""Settings of one stage, selected from the settings of the run.

A job receives exactly the fields of its stage's class, so a changed setting reruns only the stages
that read it.
"""

import importlib
from collections.abc import Iterable
from functools import cache
from typing import Any

from t5repro.config.field import Section
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import Engine
from t5repro.config.sections.finetune import FinetuneStep
from t5repro.stages import BY_NAME

# These settings affect no byte of the outputs. Jobs receive them in other ways, so that a change
# reruns nothing.
NOT_RECEIVED = {
    "c4": frozenset(Engine.model_fields),
    "run": frozenset({"check_memory", "loggers", "resume_changed", "samples"}),
}


@cache
def stage_model(stage: str) -> type[Section]:
    """Return the class of the settings that jobs of a stage receive."""
    module, _, name = BY_NAME[stage].settings.rpartition(".")
    model: type[Section] = getattr(importlib.import_module(f"t5repro.config.{module}"), name)
    return model


def stage_settings(settings: Settings, stage: str) -> dict[str, Any]:
    """Return the settings that `stage` receives, as plain JSON values."""
    return settings_of_stages(settings, [stage])[stage]


def step_settings(settings: Settings, stage: str) -> Any:
    """Return the typed settings of a training for the cost of a step without its data.

    Its job learns from the rows how many options an own task has; here the run file says so.
    """
    model = FinetuneStep if stage == "finetune" else stage_model(stage)
    return model.model_validate(_select(settings.model_dump(mode="json"), model))


def settings_of_stages(settings: Settings, stages: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return stage -> the settings that it receives, as plain JSON values."""
    values = settings.model_dump(mode="json")
    return {
        stage: received(stage, {"settings": values})
        if stage == "report"
        else _select(values, stage_model(stage))
        for stage in stages
    }


def engine_settings(settings: Settings) -> dict[str, Any]:
    """Return the engine of `c4`, as plain JSON values."""
    return {name: settings.c4.model_dump(mode="json")[name] for name in Engine.model_fields}


def received(stage: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a stage without those that no job receives.

    Only the settings of `report` contain them: it shows all settings, and the schema adds the
    defaults when the job parses them.

    Args:
        stage: name of the stage.
        values: settings of the stage as plain JSON values, with defaults.
    """
    if stage != "report":
        return values
    settings = dict(values["settings"])
    for section, names in NOT_RECEIVED.items():
        settings[section] = {k: v for k, v in settings[section].items() if k not in names}
    return {**values, "settings": settings}


def _select(values: dict[str, Any], model: type[Section]) -> dict[str, Any]:
    """Return the values of the fields of `model`, at every depth.

    A field may be left out of the values where it is the default (`exclude_if`).
    """
    selected: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name not in values:
            continue
        value, annotation = values[name], field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            value = _select(value, annotation)
        selected[name] = value
    return selected
