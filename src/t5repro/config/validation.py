"""Validation of settings, with errors that state the setting, its value and the cure.

A setting and those beside it are checked in its section (`sections`). Settings of several sections
are checked together in `schema.Settings`, of a family of networks in `family_checks`, and of
experiments that read each other in `dependencies`. What depends on the machine is checked by
the job: the batch is divisible by the replicas in `train/compiled_model.py`.
"""

import contextlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from t5repro.config.credentials import check_no_credentials
from t5repro.config.field import Section
from t5repro.config.sections.c4 import Engine
from t5repro.config.sections.tasks import OwnTask
from t5repro.config.setting_names import (
    RENAMED,
    RENAMED_VALUES,
    describe,
    leaf_names,
    section_names,
)
from t5repro.config.stage_settings import stage_model
from t5repro.errors import Keys, SettingsError, nearest

Model = TypeVar("Model", bound=Section)
UNKNOWN, MISSING = "extra_forbidden", "missing"  # pydantic's names of faults


def validate(
    model: type[Model],
    values: Any,
    *,
    label: str = "",
    keys: Keys = (),
    entries: Mapping[Keys, Keys] | None = None,
    unchecked: Any = None,
) -> Model:
    """Return validated settings.

    Args:
        model: class of the settings.
        values: settings as a tree of plain values.
        label: beginning of the message, such as ``experiment 'a': ``.
        keys: path of `values` in the run file.
        entries: path of a list entry in `values` -> its path in the run file, where they differ.
        unchecked: part of `values` that was not checked for credentials; all of them by default.

    Raises:
        SettingsError: a setting is unknown, missing, contains a credential or has an invalid value.
    """
    try:
        # First: other messages print the value.
        check_no_credentials(values if unchecked is None else unchecked, keys=keys)
    except SettingsError as error:
        path = _path_in_run_file(error.keys, entries or {})
        raise SettingsError(f"{label}{error}", keys=path) from None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _settings_error(error, label, keys, entries or {}) from error


def parse_stage(rule: str, text: str) -> Any:
    """Return the typed settings of a stage from the JSON that its job received.

    Raises:
        SettingsError: the text is not JSON, or not settings of that stage.
    """
    _check_json(text)
    try:
        return stage_model(rule).model_validate_json(text)
    except ValidationError as error:
        raise _settings_error(error, f"--settings of {rule}: ") from error


def parse_engine(text: str) -> Engine:
    """Return the engine of `c4` from the JSON that a job received.

    Raises:
        SettingsError: the text is not JSON, or not settings of an engine.
    """
    _check_json(text)
    try:
        return Engine.model_validate_json(text)
    except ValidationError as error:
        raise _settings_error(error, "--engine: ") from error


def _check_json(text: str) -> None:
    """Refuse a credential in JSON; text that is not JSON is refused by pydantic."""
    with contextlib.suppress(ValueError):
        check_no_credentials(json.loads(text))


def _settings_error(
    error: ValidationError,
    label: str,
    prefix: Keys = (),
    entries: Mapping[Keys, Keys] | None = None,
) -> SettingsError:
    """Return the error of all faults, each with the path of its setting in the run file."""
    faults = error.errors()
    unknown = [fault for fault in faults if fault["type"] == UNKNOWN]
    # First: a misspelt key is also a missing one.
    places = {fault["loc"][:-1] for fault in unknown}
    problems = [
        fault
        for fault in faults
        if fault["type"] not in (UNKNOWN, MISSING)
        or (fault["type"] == MISSING and fault["loc"][:-1] not in places)
    ]
    messages = []
    for fault in (*unknown, *problems):
        path = _path_in_run_file((*prefix, *fault["loc"]), entries or {})
        messages.append(SettingsError(f"{label}{_message(fault, path)}", keys=path))
    first, *further = messages
    return SettingsError(first.message, keys=first.keys, further=further)


def _path_in_run_file(path: Keys, entries: Mapping[Keys, Keys]) -> Keys:
    for expanded, original in entries.items():
        if path[: len(expanded)] == expanded:
            return (*original, *path[len(expanded) :])
    return path


def _message(fault: ErrorDetails, path: Keys) -> str:
    name, value = ".".join(map(str, path)), fault["input"]
    text = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == UNKNOWN:
        if name in RENAMED:
            return f"setting {name!r} is now called {RENAMED[name]!r}; rename it"
        return f"unknown setting {name!r}{nearest(name, _similar_settings(path))}"
    if not name:
        return text
    if fault["type"] == "value_error" and isinstance(value, Mapping):
        return f"{name}: {text}"
    if fault["type"] == MISSING:
        return f"setting {name!r} is missing"
    if isinstance(value, str) and (name, value) in RENAMED_VALUES:
        new_value = RENAMED_VALUES[name, value]
        return f"setting {name!r} is {value!r}, which is now called {new_value!r}"
    meaning = describe(name)
    explanation = f"; it means: {meaning}" if meaning else ""
    return f"setting {name!r} is {value!r}; {text}{explanation}"


def _similar_settings(path: Keys) -> list[str]:
    """Return the names to suggest for an unknown one: inside a user's task, the keys of a task."""
    if path[:2] != ("tasks", "own") or len(path) < 4:
        return [*section_names(), *leaf_names()]
    return [".".join([*map(str, path[:3]), key]) for key in OwnTask.model_fields]
